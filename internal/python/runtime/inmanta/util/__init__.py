"""Small helpers that modules use."""

import datetime
import enum
import hashlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from inmanta._fallback import lacking


class _HasStep(type):
    """Make isinstance look at the class alone; the object may be a view on the model and must not be asked.

    The views are not subclasses, because then every compile would import this module.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        own = (base for base in subclass.__mro__ if base.__module__.startswith("inmanta."))
        return any("json_serialization_step" in base.__dict__ for base in own)


class JSONSerializable(metaclass=_HasStep):
    """An object that can return a simpler value to represent it in JSON."""

    def json_serialization_step(self) -> Any:
        raise NotImplementedError()


def _simpler(o: Any) -> Any:
    """Return a simpler value for o, or NotImplemented."""
    if isinstance(o, JSONSerializable):
        return o.json_serialization_step()
    if isinstance(o, uuid.UUID) or any(
        base.__name__ in ("AnyUrl", "Url", "SecretStr") and base.__module__.startswith("pydantic")
        for base in type(o).__mro__
    ):
        return str(o)
    if hasattr(o, "to_dict"):
        return o.to_dict()
    if isinstance(o, enum.Enum):
        return o.name
    if isinstance(o, Exception):
        return str(o)
    if hasattr(type(o), "model_dump"):
        return o.model_dump(by_alias=True)
    if hasattr(type(o), "__dataclass_fields__"):
        import dataclasses

        return dataclasses.asdict(o)
    return NotImplemented


def internal_json_encoder(o: object) -> Any:
    """Serve as ``default`` of json.dumps, for text that stays in this program or model."""
    if isinstance(o, datetime.datetime):  # without a zone it is in the zone of this machine
        return (o if o.tzinfo is not None else o.astimezone()).isoformat(timespec="microseconds")
    simpler = _simpler(o)
    if simpler is not NotImplemented:
        return simpler
    raise TypeError(f"{o!r} is not JSON serializable")


def api_boundary_json_encoder(o: object, tz_aware: bool = True) -> Any:
    """Serve as ``default`` of json.dumps, for text that leaves this program. Unknown values become a marker."""
    from inmanta import const
    from inmanta.execute.util import Unknown

    if isinstance(o, datetime.datetime):
        return datetime_iso_format(o, tz_aware=tz_aware)
    if isinstance(o, Unknown):
        return const.UNKNOWN_STRING
    return internal_json_encoder(o)


def datetime_iso_format(timestamp: datetime.datetime, *, tz_aware: bool = True) -> str:
    """Return ISO 8601 with microseconds.

    A timestamp without a zone is taken as UTC. Without tz_aware the text is in UTC and has no zone.
    """
    if timestamp.tzinfo is None:
        timestamp = timestamp.replace(tzinfo=datetime.timezone.utc)
    if not tz_aware:
        timestamp = timestamp.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return timestamp.isoformat(timespec="microseconds")


def parse_timestamp(timestamp: str) -> datetime.datetime:
    parsed = datetime.datetime.fromisoformat(timestamp)
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=datetime.timezone.utc)


def hash_file(content: bytes) -> str:
    """Return the name of a content in the file store."""
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


def hash_file_streaming(file_handle: Any) -> str:
    digest = hashlib.sha1(usedforsecurity=False)
    while chunk := file_handle.read(1 << 16):
        digest.update(chunk)
    return digest.hexdigest()


def strtobool(val: str) -> bool:
    from inmanta.config import is_bool

    return is_bool(val)


def ensure_directory_exist(directory: str, *subdirs: str) -> str:
    import os

    path = os.path.join(directory, *subdirs)
    os.makedirs(path, exist_ok=True)
    return path


def is_sub_dict(subdct: Mapping[str, Any], dct: Mapping[str, Any]) -> bool:
    return not any(key not in dct or dct[key] != value for key, value in subdct.items())


def groupby(mylist: Sequence[Any], f: Any) -> Any:
    import itertools

    return itertools.groupby(sorted(mylist, key=f), f)


def get_python_package_name_for(module_name: str) -> str:
    return "inmanta-module-" + module_name.replace("_", "-")


def is_call_ok(result: Any) -> bool:
    code = result[0] if isinstance(result, tuple) else result
    return code == 200


__getattr__ = lacking(__name__)
