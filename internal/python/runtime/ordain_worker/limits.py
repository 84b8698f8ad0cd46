"""Limits that the kernel enforces on this process and the programs that it starts."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # every compile imports this module, so it does without typing
if TYPE_CHECKING:
    from typing import Any

STACK = 8 << 20  # what a thread's stack counts, which is more than it uses
BASE = 16  # threads for which there is always room

_statm = -1  # the kernel's figures about our memory
_data = 0  # bytes of data beside the stacks; 0: no limit
_tasks = 0  # processes and threads beside those of agents, if the kernel counts ours alone; 0: no limit
MORE_TASKS = 4096  # threads of agents that there may be at most


def apply(options: dict[str, Any]) -> None:
    """Set the limits that the options of __main__ name."""
    wanted = {name: options.get(name) or 0 for name in ("memory", "data", "file_size", "tasks")}
    if not any(wanted.values()):
        return
    import resource

    if wanted["tasks"] and options.get("tasks_alone") and hasattr(resource, "RLIMIT_NPROC"):
        global _tasks
        _tasks, wanted["tasks"] = wanted["tasks"], 0
        _lower(resource, resource.RLIMIT_NPROC, _tasks + MORE_TASKS)
        allow_threads(0)
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
    """Make room for so many threads, whose stacks the kernel counts as data, and which it counts as tasks."""
    if _tasks:
        import resource

        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        resource.setrlimit(resource.RLIMIT_NPROC, (min(_tasks + BASE + count, hard), hard))
    if not _data:
        return
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    limit = _data + (BASE + count) * STACK
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def nearly_full() -> str:
    """How much data the process has, if that is nearly all that it may have, or an empty string."""
    if not _data:
        return ""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    has = _data_pages() * resource.getpagesize()
    return f"{has >> 20} MiB of {limit >> 20} MiB" if has > limit - limit // 8 else ""


def _data_pages() -> int:
    """Pages of data of the process, or 0 if unknown. The file stays open, because this is called after every task."""
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
    """Let a crash leave no core file, which would contain secrets."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
