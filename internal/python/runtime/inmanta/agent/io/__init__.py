"""Access of older handlers to the machine that they manage, which is always the one they run on."""

from typing import Any

from inmanta._fallback import reach
from inmanta.agent.io.local import IOBase, LocalIO

__all__ = ["IOBase", "LocalIO", "get_io"]

reach(__name__)


def get_io(cache: Any = None, uri: str = "local:", version: int = 0) -> IOBase:
    """The machine that this process runs on; others are reached with mitogen."""
    if not uri.startswith("local:"):
        raise ValueError(f"{uri}: only local: can be reached this way")
    return LocalIO(uri)
