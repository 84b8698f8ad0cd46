"""Exceptions with a note: what people should know beside the message, which is the reference's."""

from __future__ import annotations


def noted(exc: BaseException, note: str) -> BaseException:
    """The exception, with the note where PEP 678 has notes; Python 3.10 has no method for it."""
    exc.__notes__ = [*getattr(exc, "__notes__", ()), note]  # type: ignore[attr-defined]
    return exc
