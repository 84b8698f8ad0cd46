"""Decorators that mark a stable API. They do nothing."""

from typing import TypeVar

T = TypeVar("T")


def stable_api(thing: T) -> T:
    thing.__stable_api__ = True
    return thing
