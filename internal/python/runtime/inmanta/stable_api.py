"""Marks for what modules may rely on; they change nothing."""

from typing import TypeVar

T = TypeVar("T")


def stable_api(thing: T) -> T:
    thing.__stable_api__ = True
    return thing
