"""Results of calls to the server."""

from __future__ import annotations

from inmanta._fallback import lacking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional


class Result:
    """The status code and body of an answer."""

    def __init__(self, code: int = 0, result: Optional[dict[str, Any]] = None) -> None:
        self.code = code
        self._body = result

    @property
    def result(self) -> Optional[dict[str, Any]]:
        return self._body

    def get_result(self) -> Optional[dict[str, Any]]:
        return self._body

    def is_ok(self) -> bool:
        return self.code == 200

    def value(self) -> Any:
        return None if self._body is None else self._body.get("data", self._body)


__getattr__ = lacking(__name__)
