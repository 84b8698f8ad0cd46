"""Validation of values against types of pydantic and the standard library."""

import functools
import importlib
import inspect
import re
from collections.abc import Mapping
from typing import Annotated, Any, Optional

from inmanta._fallback import lacking
from inmanta.execute.proxy import DictProxy


class Regex:
    """For Annotated: a string must match the pattern at its start."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._compiled = re.compile(pattern)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import PydanticCustomError, core_schema

        def match(value: str) -> str:  # pydantic's messages name it
            if self._compiled.match(value) is None:
                raise PydanticCustomError(
                    "string_pattern_mismatch", "String should match pattern '{pattern}'", {"pattern": self.pattern}
                )
            return value

        return core_schema.no_info_after_validator_function(match, handler(source))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Regex) and other.pattern == self.pattern

    def __hash__(self) -> int:
        return hash(self.pattern)


def regex_string(regex: str) -> Any:
    """The type of strings that match a pattern at their start."""
    return Annotated[str, Regex(regex)]


_MODULES = ("pydantic.", "datetime.", "ipaddress.", "uuid.")


def parametrize_type(
    base_type: Any, validation_parameters: Optional[Mapping[str, Any]] = None, *, type_name: Optional[str] = None
) -> Any:
    """The type with its parameters. Functions of pydantic such as conint take some, classes take none."""
    options = dict(validation_parameters or {})
    patterns = []
    if "regex" in options and getattr(base_type, "__name__", "") == "constr":
        # Patterns have the meaning of Python's re, not of pydantic.
        pattern = options.pop("regex")
        if pattern is not None:
            patterns.append(Regex(str(pattern)))
    if inspect.isroutine(base_type):
        kind = base_type(**options)
    elif options:
        raise ValueError(f"{type_name or base_type!r} takes no parameters, and got {options}")
    else:
        kind = base_type
    for pattern in patterns:
        kind = Annotated[kind, pattern]
    return kind


@functools.lru_cache(maxsize=512)
def _adapter(fq_type_name: str, parameters: tuple[tuple[str, Any], ...]) -> Any:
    import pydantic

    if not fq_type_name.startswith(_MODULES):
        raise ValueError(
            f"Unknown type {fq_type_name}: types of {', '.join(each[:-1] for each in _MODULES)} can be validated"
        )
    module, _, name = fq_type_name.partition(".")
    kind = getattr(importlib.import_module(module), name)
    return pydantic.TypeAdapter(parametrize_type(kind, dict(parameters), type_name=fq_type_name))


def validate_type(fq_type_name: str, value: Any, validation_parameters: Optional[Mapping[str, Any]] = None) -> None:
    """Raise ValueError or pydantic.ValidationError if value does not belong to the type."""
    if isinstance(validation_parameters, DictProxy):
        validation_parameters = DictProxy.unwrap(validation_parameters)  # type: ignore[assignment]
    parameters = tuple(sorted(validation_parameters.items())) if validation_parameters else ()
    try:
        adapter = _adapter(fq_type_name, parameters)
    except TypeError:  # parameters that cannot be hashed
        adapter = _adapter.__wrapped__(fq_type_name, parameters)
    adapter.validate_python(value)


__getattr__ = lacking(__name__)
