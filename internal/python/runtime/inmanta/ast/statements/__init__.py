"""Expressions in the text of the model, for code that inspects the defaults of an entity or a call.

Go evaluates them. The classes here have their text, and the value of constants.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

from inmanta._fallback import lacking
from inmanta.ast import Locatable, Location, Namespace, Range, RuntimeException


class Statement(Locatable):
    """A statement or expression in the text of the model."""

    namespace: Optional[Namespace] = None

    def __init__(self, text: str, source: str) -> None:
        self._text, self._source = text, source

    def pretty_print(self) -> str:
        """Return the text as it is written."""
        return self._source

    def get_namespace(self) -> Optional[Namespace]:
        return self.namespace

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text


class ExpressionStatement(Statement):
    """An expression."""

    _not: Optional[str] = None
    _value: object = None

    def as_constant(self) -> object:
        """Return the value of a constant; raise RuntimeException for other expressions."""
        if self._not is not None:
            raise RuntimeException(None, f"{self._not} is not a constant")
        return self._value


class ReferenceStatement(ExpressionStatement):
    """An expression that consists of others."""


class Literal(ExpressionStatement):
    """A constant."""

    @property
    def value(self) -> object:
        return self._value

    def execute(self, requires: object, resolver: object, queue: object) -> object:
        return self.value

    def execute_direct(self, requires: object) -> object:
        return self.value


_classes: dict[str, type[ExpressionStatement]] = {"Literal": Literal}


def told(described: dict[str, Any], decode: Callable[[Any], Any]) -> ExpressionStatement:
    """Return the expression that Go describes."""
    name = described["class"]
    cls = _classes.get(name)
    if cls is None:
        cls = _classes[name] = type(name, (ReferenceStatement,), {"__doc__": "An expression of this kind."})
    made = cls(described["text"], described.get("source") or described["text"])
    at = described["at"]
    made.set_location(Range(*at) if len(at) > 2 else Location(*at))
    if "name" in described:
        made.name = described["name"]  # type: ignore[attr-defined]
    made._not = described.get("not")
    if made._not is None:
        made._value = decode(described["v"])
    return made


class WrittenCall(Statement):
    """A call as it is written in the model."""

    def __init__(self, described: dict[str, Any], decode: Callable[[Any], Any]) -> None:
        super().__init__(described["text"], described["source"])
        self.arguments = [told(each, decode) for each in described["args"]]
        self.kwargs = {name: told(each, decode) for name, each in described["named"]}
        self.wrapped_kwargs = [told(each, decode) for each in described["splats"]]


__getattr__ = lacking(__name__)
