"""Configuration options: sections of names and values."""

from __future__ import annotations

import os
from inmanta._fallback import lacking

GenericAlias = type(list[int])

TYPE_CHECKING = False  # every compile imports this module, so it does without typing
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    import uuid
    from typing import Any, ClassVar, Optional, Union


def _key(section: str, name: str) -> tuple[str, str]:
    return section.strip(), name.strip().replace("_", "-").lower()


class Config:
    """The configuration of this process. Environment variables ``INMANTA_<SECTION>_<NAME>`` take precedence."""

    _values: ClassVar[dict[tuple[str, str], object]] = {}
    _declared: ClassVar[dict[tuple[str, str], Option]] = {}

    @classmethod
    def load_config(cls, *args: object, **kwargs: object) -> None:
        """Does nothing, because the program that started this process passes the configuration."""

    @classmethod
    def load_config_from_dict(cls, input_config: Mapping[str, Mapping[str, Any]]) -> None:
        for section, options in input_config.items():
            for name, value in options.items():
                cls._values[_key(section, name)] = value

    @classmethod
    def config_as_dict(cls) -> dict[str, dict[str, Any]]:
        out: dict[str, dict[str, Any]] = {}
        for (section, name), value in cls._values.items():
            out.setdefault(section, {})[name] = value
        return out

    @classmethod
    def get(cls, section: Optional[str] = None, name: Optional[str] = None, default_value: Any = None) -> Any:
        if section is None or name is None:
            return cls
        option = cls._declared.get(_key(section, name))
        if option is not None:  # it has a default of its own
            return cls.get_for_option(option)
        value = cls.get_raw_value(section, name, None)
        return default_value if value is None else value

    @classmethod
    def get_raw_value(cls, section: str, name: str, default_value: Any) -> Any:
        wanted = f"{section}_{name}".upper()
        variable = "INMANTA_" + "".join(each if each.isalnum() and each.isascii() else "_" for each in wanted)
        if variable in os.environ:
            return os.environ[variable]
        return cls._values.get(_key(section, name), default_value)

    @classmethod
    def get_for_option(cls, option: Option) -> Any:
        value = cls.get_raw_value(option.section, option.name, None)
        return option.get_default_value() if value is None else option.validate(value)

    @classmethod
    def is_set(cls, section: str, name: str) -> bool:
        return cls.get_raw_value(section, name, None) is not None

    @classmethod
    def getboolean(cls, section: str, name: str, default_value: Optional[bool] = None) -> Optional[bool]:
        value = cls.get(section, name, default_value)
        return None if value is None else is_bool(value)

    @classmethod
    def set(cls, section: str, name: str, value: Any) -> None:
        cls._values[_key(section, name)] = value

    @classmethod
    def register_option(cls, option: Option) -> None:
        cls._declared[_key(option.section, option.name)] = option

    @classmethod
    def _reset(cls) -> None:
        cls._values.clear()


def is_str(value: Any) -> str:
    return str(value)


def is_str_opt(value: Any) -> Optional[str]:
    return None if value is None else str(value)


def is_int(value: Union[str, int]) -> int:
    return int(value)


def is_int_opt(value: Union[str, int, None]) -> Optional[int]:
    return None if value is None else int(value)


def is_lower_bounded_int(lower_bound: int) -> Callable[[Union[str, int]], int]:
    """A validator for whole numbers with a lower bound."""

    def validate(value: Union[str, int]) -> int:
        number = int(value)
        if number < lower_bound:
            raise ValueError(f"Value can not be lower than {lower_bound}")
        return number

    return validate


def is_float(value: Union[str, float]) -> float:
    return float(value)


def is_time(value: Union[str, int]) -> int:
    return int(value)


def is_bool(value: Union[bool, str]) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("1", "yes", "true", "on"):
        return True
    if word in ("0", "no", "false", "off"):
        return False
    raise ValueError(f"Not a boolean: {value}")


def is_list(value: Union[str, list[str]]) -> list[str]:
    return list(value) if isinstance(value, list) else [each.strip() for each in value.split(",") if each.strip()]


def is_map(map_in: Union[str, Mapping[str, str]]) -> dict[str, str]:
    from collections.abc import Mapping

    if isinstance(map_in, Mapping):
        return dict(map_in)
    pairs = (each.partition("=") for each in map_in.split(",") if each.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


def is_uuid_opt(value: Any) -> Optional[uuid.UUID]:
    import uuid

    return None if value is None else uuid.UUID(str(value))


class Option:
    """An option: its section and name, default and type."""

    __class_getitem__ = classmethod(GenericAlias)  # for annotations

    def __init__(
        self,
        section: str,
        name: str,
        default: Any,
        documentation: str,
        validator: Callable[[Any], Any] = is_str,
        predecessor_option: Optional[Option] = None,
    ) -> None:
        self.section = section
        self.name = name
        self.default = default
        self.documentation = documentation
        self.validator = validator
        self.predecessor_option = predecessor_option
        Config.register_option(self)

    def get(self) -> Any:
        return Config.get_for_option(self)

    def set(self, value: Any) -> None:
        Config.set(self.section, self.name, value)

    def validate(self, value: Any) -> Any:
        return self.validator(value)

    def get_default_value(self) -> Any:
        return self.default() if callable(self.default) else self.default

    def get_full_name(self) -> str:
        return f"{self.section}.{self.name}"


def _environment(value: Any) -> Any:
    """The id of an environment, or a name if the option holds one."""
    try:
        return is_uuid_opt(value)
    except ValueError:
        return value


Option("config", "environment", None, "The environment that is compiled for", _environment)

__getattr__ = lacking(__name__)
