"""Sends to Go what the code prints."""

from __future__ import annotations

import io

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Output(io.TextIOBase):
    """Standard output of the code, as whole lines in order.

    Lines are part of the reply to which they belong. They are also sent at once,
    so that Go knows them if the code ends the process.
    """

    def __init__(self, tell: Callable[[str, Any], None]) -> None:
        self._tell = tell
        self._text = ""
        self._lines: list[str] = []

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def write(self, text: str) -> int:
        *lines, self._text = (self._text + text).split("\n")
        if lines:
            self._lines += lines
            self._tell("printed", {"lines": lines})
        return len(text)

    def take(self, all: bool = False) -> list[str]:
        if all and self._text:
            self.write("\n")
        lines, self._lines = self._lines, []
        return lines
