"""Values of the model without a counterpart in Python."""

from __future__ import annotations

from inmanta._fallback import lacking


class ReferenceBase:
    """Base of references, for code that only needs to recognise them."""


class NoneValue:
    """The null of the model, where Python's None would mean "no value"."""

    def __repr__(self) -> str:
        return "null"

    __str__ = __repr__

    def __hash__(self) -> int:
        return hash(None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoneValue)


class AnyType:
    """Stands for any type at all."""


class Unknown:
    """A value that is not known yet, because it comes from outside.

    :param source: the object that this value depends on.
    """

    _number = 0  # its number in the engine, once it has one

    def __init__(self, source: object = None) -> None:
        self.source = source

    def __iter__(self) -> "object":
        return iter(())


def ensure_hashable(value: object) -> object:
    return value


__getattr__ = lacking(__name__)
