"""Short tasks run one after the other, long ones side by side.

Only one thread of Python runs at a time. When several have something to do,
each system call of one hands the interpreter to another, and that costs more
than the call. So a task waits for the one before it, but not for long: what
takes its time mostly waits for something itself, and others go on meanwhile.
"""

import threading
import time
from collections.abc import Callable

PATIENCE = 0.002  # seconds that a task waits for its turn
OPEN = 0.1  # seconds for which nobody waits, after a task took too long


class Turns:
    """Who runs next, among the threads of all agents."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._open_until = 0.0

    def take(self, work: Callable[[], None]) -> None:
        """Do work, when it is its turn or the turn before takes too long."""
        turn = self._turn
        if time.monotonic() < self._open_until:
            work()
        elif turn.acquire(timeout=PATIENCE):
            try:
                work()
            finally:
                turn.release()
        else:
            self._turn = threading.Lock()  # who has the other one gives it back to nobody
            self._open_until = time.monotonic() + OPEN
            work()
