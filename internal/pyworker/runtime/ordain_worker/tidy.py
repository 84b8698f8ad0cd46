"""What all tasks of the process share and a handler may leave in disorder.

Handlers are threads of one process: its working directory, its file mode mask
and its file descriptors are everybody's. What one changed is put back when no
task runs; what cannot be put back ends the process, after the task in question
and before the next.
"""

import os
import threading
import time
from typing import Optional

from ordain_worker import limits

EVERY = 0.002  # seconds between two looks at the memory, which the kernel holds to its limit anyway
STRAYS = 200  # threads that handlers may leave running before the process is replaced


def _identity(fd: int) -> Optional[tuple[int, int]]:
    try:
        return os.fstat(fd)[1:3]  # its number and that of its device
    except OSError:
        return None


class Tidy:
    """Remembers how the process was, and looks after each task how it is."""

    def __init__(self, requests: int, replies: int) -> None:
        self._requests, self._replies = requests, replies
        self._known = {fd: _identity(fd) for fd in (requests, replies, 1, 2)}
        self._spare = {fd: os.dup(fd) for fd in (1, 2)}  # not inherited by programs that are started
        self._folder = os.getcwd()
        self._next = 0.0
        self._mask = os.umask(0o022)
        os.umask(self._mask)

    def broken(self) -> bool:
        """Whether replies no longer reach the server: then nothing must be written there."""
        return _identity(self._replies) != self._known[self._replies]

    def check(self, alone: bool, agents: int) -> tuple[list[str], str]:
        """What was put back, and why the process has to be replaced; empty when it need not."""
        notes: list[str] = []
        for fd, name in ((1, "standard output"), (2, "standard error")):
            if _identity(fd) != self._known[fd]:
                os.dup2(self._spare[fd], fd)
                notes.append(f"{name} of the executor had been closed or replaced, and was put back")
        if _identity(self._requests) != self._known[self._requests]:
            return notes, "a handler closed or replaced the file descriptor that its requests come from"
        if alone:
            why = self._put_back(notes)
            if why:
                return notes, why
        strays = threading.active_count() - agents
        if strays > STRAYS:
            return notes, f"handlers left {strays} threads running"
        now = time.monotonic()
        if now < self._next:
            return notes, ""
        self._next = now + EVERY
        full = limits.nearly_full()
        return notes, f"it has {full} of memory, see [agent] executor-memory-max" if full else ""

    def _put_back(self, notes: list[str]) -> str:
        mask = os.umask(self._mask)
        if mask != self._mask:
            notes.append(f"the file mode mask of the executor had been changed to {mask:03o}, and was put back")
        try:
            folder = os.getcwd()
        except OSError:
            folder = "a folder that is gone"
        if folder != self._folder:
            try:
                os.chdir(self._folder)
            except OSError as exc:
                return f"its working directory {self._folder} cannot be entered any more: {exc.strerror}"
            notes.append(f"the working directory of the executor had been changed to {folder}, and was put back")
        return ""
