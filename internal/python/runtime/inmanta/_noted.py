"""Exceptions with a note, for advice beside a message that must be the same as in inmanta-core."""

from __future__ import annotations


def noted(exc: BaseException, note: str) -> BaseException:
    """The exception with a note (PEP 678), also in Python 3.10, which has no method for it."""
    exc.__notes__ = [*getattr(exc, "__notes__", ()), note]  # type: ignore[attr-defined]
    return exc
