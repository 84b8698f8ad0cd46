"""What the kernel holds this process, and the programs that it starts, to."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # every compile imports this: it has to do without typing
if TYPE_CHECKING:
    from typing import Any

STACK = 8 << 20  # what a thread's stack counts for, which is more than it uses
BASE = 16  # threads that are always allowed for

_statm = -1  # what the kernel says of our memory
_data = 0  # bytes of data beside the stacks; 0: no limit


def apply(options: dict[str, Any]) -> None:
    """Set the limits of the options of __main__."""
    wanted = {name: options.get(name) or 0 for name in ("memory", "data", "file_size", "tasks")}
    if not any(wanted.values()):
        return
    import resource

    for name, kind in (("memory", "RLIMIT_AS"), ("file_size", "RLIMIT_FSIZE"), ("tasks", "RLIMIT_NPROC")):
        if wanted[name] and hasattr(resource, kind):
            _lower(resource, getattr(resource, kind), wanted[name])
    if wanted["data"] and hasattr(resource, "RLIMIT_DATA"):
        global _data
        _data = wanted["data"]
        allow_threads(0)


def _lower(resource: Any, kind: int, limit: int) -> None:
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(kind, (limit, limit))


def allow_threads(count: int) -> None:
    """Make room for the stacks of so many threads: to the kernel they are data like any other."""
    if not _data:
        return
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    limit = _data + (BASE + count) * STACK
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def nearly_full() -> str:
    """How much of its data the process has, when that is nearly all it may have; empty when not."""
    if not _data:
        return ""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    has = _data_pages() * resource.getpagesize()
    return f"{has >> 20} MiB of {limit >> 20} MiB" if has > limit - limit // 8 else ""


def _data_pages() -> int:
    """Pages of data that the process has; 0 where that cannot be told. The file stays open: this is asked after every task."""
    global _statm
    for _ in range(2):
        try:
            if _statm < 0:
                _statm = os.open("/proc/self/statm", os.O_RDONLY)
            numbers = os.pread(_statm, 200, 0).split()
            if len(numbers) == 7:
                return int(numbers[5])
        except (OSError, ValueError):
            pass
        _statm = -1  # a handler closed it, and the number may be that of a file of its own by now
    return 0


def no_core_files() -> None:
    """A process that crashes leaves its last words, not its memory: there are secrets in it."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
