"""Values that Python has no word for."""

from __future__ import annotations

from inmanta._fallback import lacking


class ReferenceBase:
    """What tells references from other values, for those who need not know more of them."""


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
    """A value that only the outside knows and has not told yet.

    :param source: the object that this value depends on.
    """

    _number = 0  # what tells it from others in the engine, once that knows it

    def __init__(self, source: object = None) -> None:
        self.source = source

    def __iter__(self) -> "object":
        return iter(())


def ensure_hashable(value: object) -> object:
    return value


__getattr__ = lacking(__name__)
