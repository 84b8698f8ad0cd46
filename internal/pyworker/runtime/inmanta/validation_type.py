"""Validation of values against types of pydantic and the standard library."""

import functools
import importlib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Optional

from inmanta._fallback import lacking


class Regex:
    """For Annotated: a string must match the pattern at its start."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._compiled = re.compile(pattern)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import PydanticCustomError, core_schema

        def check(value: str) -> str:
            if self._compiled.match(value) is None:
                raise PydanticCustomError("regex", "String does not match regex pattern '{pattern}'", {"pattern": self.pattern})
            return value

        return core_schema.no_info_after_validator_function(check, handler(source))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Regex) and other.pattern == self.pattern

    def __hash__(self) -> int:
        return hash(self.pattern)


def regex_string(regex: str) -> Any:
    """The type of strings that match a pattern at their start."""
    return Annotated[str, Regex(regex)]


_MODULES = ("pydantic", "datetime", "ipaddress", "uuid")


@functools.lru_cache(maxsize=512)
def _adapter(fq_type_name: str, parameters: tuple[tuple[str, Any], ...]) -> Any:
    import pydantic

    module, _, name = fq_type_name.rpartition(".")
    if not name or not (module.split(".")[0] in _MODULES or module == "inmanta_plugins" or module.startswith("inmanta_plugins.")):
        raise ValueError(f"Unknown type {fq_type_name}")
    kind = getattr(importlib.import_module(module), name)
    if parameters:
        options = dict(parameters)
        if "regex" in options:
            kind, pattern = None, options.pop("regex")
            return pydantic.TypeAdapter(Annotated[pydantic.constr(**options), Regex(pattern)])
        kind = kind(**options)
    return pydantic.TypeAdapter(kind)


def validate_type(fq_type_name: str, value: Any, validation_parameters: Optional[Mapping[str, Any]] = None) -> None:
    """Raise ValueError or pydantic.ValidationError when value does not belong to the type."""
    parameters = tuple(sorted(validation_parameters.items())) if validation_parameters else ()
    try:
        adapter = _adapter(fq_type_name, parameters)
    except TypeError:  # parameters that cannot be hashed
        adapter = _adapter.__wrapped__(fq_type_name, parameters)
    adapter.validate_python(value)


__getattr__ = lacking(__name__)
