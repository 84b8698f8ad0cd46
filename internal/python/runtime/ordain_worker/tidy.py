"""Repairs what handlers leave changed in the process that they share.

Handlers are threads of one process, so its working directory, file mode mask
and file descriptors belong to all of them. What a handler has changed is put
back when no task runs. If that is impossible, the process is replaced after the
task in question and before the next one.
"""

import os
import sys
import threading
import time

from ordain_worker import limits
from ordain_worker.frames import end_now

EVERY = 0.002  # seconds between two checks of memory and threads, which the kernel limits anyway
STRAYS = 200  # threads that handlers may leave running before the process is replaced


class Descriptors:
    """Knows which files some descriptors stand for."""

    def __init__(self, *fds: int) -> None:
        self._known = {fd: self._identity(fd) for fd in fds}

    @staticmethod
    def _identity(fd: int) -> tuple[int, int]:
        return os.fstat(fd)[1:3]  # inode and device

    def lost(self, fd: int) -> bool:
        """Whether a descriptor was closed or stands for another file now."""
        try:
            return self._identity(fd) != self._known[fd]
        except OSError:
            return True


class Tidy:
    """Remembers the state of the process and compares it after each task."""

    def __init__(self, requests: int, replies: int) -> None:
        self._requests, self._replies = requests, replies
        self._descriptors = Descriptors(requests, replies, 1, 2)
        self._spare = {fd: os.dup(fd) for fd in (1, 2)}  # programs that handlers start do not inherit these
        self._folder = os.getcwd()
        self._next = 0.0
        self._mask = os.umask(0o022)
        os.umask(self._mask)

    def check(self, alone: bool, agents: int) -> tuple[list[str], str]:
        """Return notes on what was put back, and why the process must be replaced, or an empty string.

        :param alone: no other task runs.
        :param agents: the number of threads of agents.
        """
        notes: list[str] = []
        why = self._check_descriptors(notes)
        if why:
            return notes, why
        if alone:
            why = self._put_back(notes)
            if why:
                return notes, why
        now = time.monotonic()
        if now < self._next:
            return notes, ""
        self._next = now + EVERY
        strays = threading.active_count() - agents
        if strays > STRAYS:
            return notes, f"handlers left {strays} threads running"
        full = limits.nearly_full()
        return notes, f"it has {full} of memory, see [agent] executor-memory-max" if full else ""

    def _check_descriptors(self, notes: list[str]) -> str:
        if self._descriptors.lost(self._replies):  # nothing may be written there
            sys.__stderr__.write("A handler closed or replaced the file descriptor that replies go through.\n")  # type: ignore[union-attr]
            end_now()
        for fd, name in ((1, "standard output"), (2, "standard error")):
            if self._descriptors.lost(fd):
                os.dup2(self._spare[fd], fd)
                notes.append(f"{name} of the executor had been closed or replaced, and was put back")
        if self._descriptors.lost(self._requests):
            return "a handler closed or replaced the file descriptor that its requests come from"
        return ""

    def _put_back(self, notes: list[str]) -> str:
        mask = os.umask(self._mask)
        if mask != self._mask:
            notes.append(f"the file mode mask of the executor had been changed to {mask:03o}, and was put back")
        try:
            folder = os.getcwd()
        except OSError:
            folder = "a folder that does not exist any more"
        if folder != self._folder:
            try:
                os.chdir(self._folder)
            except OSError as exc:
                return f"its working directory {self._folder} cannot be entered any more: {exc.strerror}"
            notes.append(f"the working directory of the executor had been changed to {folder}, and was put back")
        return ""
