"""What all tasks of the process share and a handler may leave in disorder.

Handlers are threads of one process: its working directory, its file mode mask
and its file descriptors are everybody's. What one changed is put back when no
task runs; what cannot be put back ends the process, after the task in question
and before the next.
"""

import fcntl
import os
import signal
import sys
import threading
import time

from ordain_worker import limits
from ordain_worker.frames import end_now

EVERY = 0.002  # seconds between two looks at memory and threads; the kernel holds both to a limit anyway
STRAYS = 200  # threads that handlers may leave running before the process is replaced


def _identity(fd: int) -> tuple[int, int]:
    return os.fstat(fd)[1:3]  # its number and that of its device


class Marks:
    """Tells whether descriptors are still those of the files that they were of, in a quarter of the time of _identity.

    The kernel keeps a number with each open file: the signal that tells its owner of input, which none of these has.
    No file that is opened later has one. Where the kernel has no such number, _identity decides.
    """

    SIGNALS = signal.SIGURG, signal.SIGCHLD, signal.SIGWINCH, signal.SIGIO  # none of which would do any harm

    def __init__(self, *fds: int) -> None:
        self._known = {fd: _identity(fd) for fd in fds}
        self._marks: dict[int, int] = {}
        self.renew()

    def renew(self) -> None:
        """Mark them anew: somebody else may use that number."""
        try:
            for fd, number in zip(self._known, self.SIGNALS):
                fcntl.fcntl(fd, fcntl.F_SETSIG, number)
            # Two of them may be one open file, which has one number.
            marks = {fd: fcntl.fcntl(fd, fcntl.F_GETSIG) for fd in self._known}
            self._marks = marks if all(marks.values()) else {}
        except (AttributeError, OSError):
            self._marks = {}

    def kept(self) -> bool:
        """Whether all of them are, as far as marks tell."""
        try:
            for fd, mark in self._marks.items():
                if fcntl.fcntl(fd, fcntl.F_GETSIG) != mark:
                    return False
        except OSError:
            return False
        return bool(self._marks)

    def lost(self, fd: int) -> bool:
        """Whether a descriptor was closed or is that of another file."""
        try:
            return _identity(fd) != self._known[fd]
        except OSError:
            return True


class Tidy:
    """Remembers how the process was, and looks after each task how it is."""

    def __init__(self, requests: int, replies: int) -> None:
        self._requests, self._replies = requests, replies
        self._marks = Marks(requests, replies, 1, 2)
        self._spare = {fd: os.dup(fd) for fd in (1, 2)}  # not inherited by programs that are started
        self._folder = os.getcwd()
        self._next = 0.0
        self._mask = os.umask(0o022)
        os.umask(self._mask)

    def check(self, alone: bool, agents: int) -> tuple[list[str], str]:
        """What was put back, and why the process has to be replaced; empty when it need not."""
        notes: list[str] = []
        if not self._marks.kept() and (why := self._descriptors(notes)):
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

    def _descriptors(self, notes: list[str]) -> str:
        if self._marks.lost(self._replies):  # nothing must be written there
            sys.__stderr__.write("A handler closed or replaced the file descriptor that replies go through.\n")  # type: ignore[union-attr]
            end_now()
        for fd, name in ((1, "standard output"), (2, "standard error")):
            if self._marks.lost(fd):
                os.dup2(self._spare[fd], fd)
                notes.append(f"{name} of the executor had been closed or replaced, and was put back")
        if self._marks.lost(self._requests):
            return "a handler closed or replaced the file descriptor that its requests come from"
        self._marks.renew()
        return ""

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
