"""Values on the wire of the compile role, in both directions.

null, true, 1, 1.5, "text", […]      themselves; a float always has a fraction or an exponent
{"f": "inf"}                         a float that JSON has no word for
{"c": ["1.5", "-0.0"]}               a complex number
{"d": [[key, value], …]}             a dict, in its order
{"i": 7, "t": type, "a": {…}, "e": […]}  an instance; t the first time, a: attributes that Go thinks will be
                                     read, e: names of such relations that are empty
{"u": 7}                             unknown, by its number
{"r": 3, …}                          a reference, which lives here
{"o": 4, …}                          any other Python object, which lives here
{"s": 9, "v": value}                 a value that keeps its identity; later just {"s": 9}
"""

from __future__ import annotations

import itertools
import math

from inmanta.ast import RuntimeException
from inmanta.execute.proxy import DynamicProxy
from inmanta.execute.runtime import EMPTY, Instance
from inmanta.execute.util import NoneValue, ReferenceBase, Unknown
from ordain_worker.frames import class_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from inmanta.references import Reference

NULL = NoneValue()
_numbers = itertools.count(1 << 40)  # numbers of unknowns that Python made; Go counts from 1
_PLAIN = (str, int, float, bool)
# Classes whose subclasses are values of the language too, with the function that makes the plain value.
_BASES = {str: str.__str__, int: int.__index__, float: float.__float__}
# Larger whole numbers are exact here and in Go, because JSON carries any size.
_SAME_KIND_LIMIT = 256


def _shown(value: object, base: type) -> list[str] | None:
    """The str and repr of an object whose class defines them, without addresses, which differ in each run."""
    kind = type(value)
    if kind.__str__ is base.__str__ and kind.__repr__ is base.__repr__:
        return None
    import re

    try:
        return [re.sub(r" at 0x[0-9a-fA-F]+", "", each)[:10_000] for each in (str(value), repr(value))]
    except Exception:
        return None


class Codec:
    """Converts values of the model to JSON and back. Keeps every object with a handle alive."""

    def __init__(self) -> None:
        self._instances: dict[int, Instance] = {}
        self._objects: list[object] = [None]  # handles count from 1
        self._handles: dict[int, int] = {}  # id of an object to its handle
        self._equal: dict[Any, int] = {}  # class and arguments of a reference to its handle
        self._same_kind: dict[type, list[int]] = {}
        self._told: set[int] = set()  # references and objects that Go knows already
        self._within = 0  # references whose arguments are encoded
        self._unknowns: dict[int, Unknown] = {}
        self._shared: dict[int, object] = {}
        self._shared_ids: dict[int, int] = {}

    # From Go.

    def decode(self, value: Any) -> Any:
        kind = type(value)
        if kind is str or kind is int or kind is float or kind is bool:
            return value
        if value is None:
            return NULL
        if kind is list:
            return self._decode_list(value)
        return self._decode_tagged(value)

    def _decode_list(self, value: list[Any]) -> list[Any]:
        out = [each if type(each) in _PLAIN else self.decode(each) for each in value]
        if len(out) > 1 and all(type(each) is Instance for each in out):
            for each in out:
                each.siblings = out
        return out

    def _decode_tagged(self, value: dict[str, Any]) -> Any:
        if "i" in value:
            return self._decode_instance(value)
        if "d" in value:
            return {key: each if type(each) in _PLAIN else self.decode(each) for key, each in value["d"]}
        if "s" in value:
            number = value["s"]
            if "v" in value:
                shared = self.decode(value["v"])
                self._shared[number] = shared
                self._shared_ids[id(shared)] = number
            return self._shared[number]
        if "u" in value:
            return self._decode_unknown(value["u"])
        if "r" in value:
            return self._objects[value["r"]]
        if "o" in value:
            return self._objects[value["o"]]
        if "f" in value:
            return float(value["f"])
        if "c" in value:
            return complex(*map(float, value["c"]))
        raise RuntimeError(f"not a value of the protocol: {value!r}")

    def _decode_unknown(self, number: int) -> Unknown:
        known = self._unknowns.get(number)
        if known is None:
            known = self._unknowns[number] = Unknown()
            known._number = number
        return known

    def _decode_instance(self, value: dict[str, Any]) -> Instance:
        number = value["i"]
        instance = self._instances.get(number)
        if instance is None:
            instance = self._instances[number] = Instance(number, value["t"])
            if "of" in value:
                instance.dataclass_self = self._objects[value["of"]]
        for name, each in (value.get("a") or {}).items():
            instance.known[name] = self.decode(each)
        for name in value.get("e") or ():
            instance.known[name] = EMPTY
        return instance

    # To Go.

    def encode(self, value: Any) -> Any:
        kind = type(value)
        if kind is str or kind is int or kind is bool or value is None:
            return value
        if kind is float:
            if math.isfinite(value):
                return value
            return {"f": repr(value)}
        if isinstance(value, NoneValue):
            return None
        if kind is Instance:
            return {"i": value.id}
        if isinstance(value, DynamicProxy):
            return self.encode(value._get_instance())
        if isinstance(value, (list, dict)):
            number = self._shared_ids.get(id(value))
            if number is not None and self._shared[number] is value:
                return {"s": number}
            if isinstance(value, list):
                return [self.encode(each) for each in value]
            return {"d": [[self._key(key, each), self.encode(each)] for key, each in value.items()]}
        if isinstance(value, Unknown):
            if not value._number:
                value._number = next(_numbers)
            return {"u": value._number}
        if isinstance(value, ReferenceBase):
            return self._encode_reference(value)
        if isinstance(value, complex):
            return {"c": [repr(value.real), repr(value.imag)]}
        return self._encode_object(value)

    def _key(self, key: object, value: object) -> str:
        if not isinstance(key, str) and not self._within:  # an argument of a reference may be as it likes
            raise RuntimeException(
                None, f"dict keys should be strings, got {key!r} of type {type(key)} with dict value {value!r}"
            )
        return str.__str__(key) if isinstance(key, str) else str(key)

    def _encode_object(self, value: object) -> dict[str, Any]:
        from ordain_worker.annotations import entities_of

        handle = self._handle(value)
        described: dict[str, Any] = {"o": handle}
        if handle in self._told:
            return described
        self._told.add(handle)
        described["class"] = class_name(type(value))
        entities = entities_of(type(value))
        if not entities:
            self._describe(value, described)
            return described
        import dataclasses

        described["dataclass"] = entities
        described["own"] = ["==", "str", "repr", "hash"]
        described["fields"] = [
            [field.name, self.encode(getattr(value, field.name))]
            for field in dataclasses.fields(value)  # type: ignore[arg-type]
        ]
        return described

    def _describe(self, value: object, described: dict[str, Any]) -> None:
        from ordain_worker import objects

        base = next((each for each in _BASES if isinstance(value, each)), object)
        if base is not object:
            described["base"] = self.encode(_BASES[base](value))
        shown = _shown(value, base)
        if shown is not None:
            described["shown"] = shown
        described.update(objects.describe(value, base))

    def _encode_reference(self, value: Reference[Any]) -> dict[str, Any]:
        import dataclasses

        from inmanta.references import AttributeReference
        from ordain_worker.annotations import model_name

        if not self._within:
            self._complete(value)
            if value._model_type is None:
                value._model_type = model_name(type(value).get_reference_type())
        handle = self._reference_handle(value)
        described: dict[str, Any] = {"r": handle}
        if handle in self._told:
            return described
        self._told.add(handle)
        described["type"] = getattr(value, "type", class_name(type(value)))
        gives = type(value).get_reference_type()
        described["of"] = model_name(gives)
        self._within += 1
        try:
            described["args"] = [[name, self.encode(each)] for name, each in value.arguments.items()]
        finally:
            self._within -= 1
        if gives is not None and dataclasses.is_dataclass(gives):
            described["fields"] = [
                [field.name, self.encode(AttributeReference(reference=value, attribute_name=field.name))]
                for field in dataclasses.fields(gives)
            ]
        return described

    def _complete(self, value: Reference[Any]) -> None:
        """Refuse a reference that the model cannot hold."""
        if "_model" not in value.__dict__:  # its class does not call ours
            raise AttributeError(f"{type(value).__name__!r} object has no attribute '_model_type'")
        if type(value).get_reference_type() is None:
            raise RuntimeException(
                None,
                f"Could not determine the reference type of {value!r}, make sure the reference extends "
                "Reference[concrete_type] or override `get_reference_type`",
            )

    def _reference_handle(self, value: Reference[Any]) -> int:
        """The handle of this reference or an equal one, because equal references are one value of the model."""
        from inmanta.references import Reference

        known = self._handles.get(id(value))
        if known is not None and self._objects[known] is value:
            return known
        key: Any = None
        try:
            # A class with an __eq__ of its own may have more state than its arguments.
            if type(value).__eq__ is not Reference.__eq__:
                raise TypeError
            key = (type(value), tuple(value.arguments.items()))
            known = self._equal.get(key)
        except TypeError:  # arguments without a hash
            key = None
            for handle in reversed(self._same_kind.get(type(value), ())):
                if self._objects[handle] == value:
                    known = handle
                    break
        if known is None:
            known = self._handle(value)
            if key is not None:
                self._equal[key] = known
            else:
                same = self._same_kind.setdefault(type(value), [])
                same.append(known)
                del same[:-_SAME_KIND_LIMIT]
        return known

    def _handle(self, value: object) -> int:
        known = self._handles.get(id(value))
        if known is not None and self._objects[known] is value:
            return known
        self._objects.append(value)
        handle = len(self._objects) - 1
        self._handles[id(value)] = handle
        return handle
