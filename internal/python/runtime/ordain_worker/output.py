"""What the code prints, told to Go."""

from __future__ import annotations

import io

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Output(io.TextIOBase):
    """Standard output of the code: whole lines, in order.

    They go with the reply that they belong to; each is told at once too, so
    that what was printed is known of code that ends the process.
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
