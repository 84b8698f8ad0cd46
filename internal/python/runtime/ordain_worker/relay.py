"""Decides which of the agents' threads reads requests and which runs next.

Python runs only one thread at a time, and switching between threads takes longer
than a short task. So one thread has the *lead*: it reads requests, runs those of
its own agent, and passes the lead on with a request of another agent:

    main ─ work for a ─▶ a runs, reads on ─ work for b ─▶ b runs, reads on ─ …
      ▲                                                            │
      └── no request for a moment, a task asks the server, or ─────┘
          main takes the lead back because a task takes long

So short tasks follow each other without a thread that only reads, and without
two threads that compete for the interpreter. A task that takes long mostly waits
for something. Others then run beside it without the lead, each in the thread of
its agent.
"""

import os
import time
import traceback
from _thread import allocate_lock, get_ident
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Optional

from inmanta.agent.executor import Worker

Work = Callable[[], object]

PATIENCE = 0.002  # seconds between two checks of the lead; a task that has it at both loses it
QUIET = 0.003  # seconds without a request after which main gets the lead back
TURN = 50  # tasks that an agent runs in a row while others wait
OPEN = 0.1  # seconds after a long task during which tasks run without the lead


class Seat:
    """The thread of an agent, and the work for it."""

    def __init__(self, thread: Worker) -> None:
        self.thread = thread
        self.todo: deque[Work] = deque()
        self.queued = False  # it is in the relay's queue of seats with work
        self.apart = 0  # its tasks that run, or will run, without the lead


class Relay:
    """Passes the lead on.

    :param read: ``read(seconds)`` waits for requests, forever for None, and calls ``give`` with each. It returns
        False if there was none.
    :param slow: called when a task takes long.
    :param look: called before each task that runs with the lead.
    """

    def __init__(
        self,
        read: Callable[[Optional[float]], bool],
        slow: Callable[[], object] = lambda: None,
        look: Callable[[], object] = lambda: None,
    ) -> None:
        self._read = read
        self._slow = slow
        self._look = look
        self._process = os.getpid()
        self._lock = allocate_lock()
        self._back = allocate_lock()  # released when main gets the lead back
        self._back.acquire()
        self._leader: Optional[Seat] = None  # None for main
        self._runs = 0  # id of the thread that runs a task with the lead, or 0
        self._count = 0  # tasks that have begun with the lead
        self._waiting: deque[Seat] = deque()  # seats with work, in the order in which it came
        self._open_until = 0.0

    def give(self, seat: Seat, work: Work) -> None:
        """Add work for the thread of a seat. Only the thread that reads calls this."""
        if seat.apart:
            self._give_apart(seat, work)
            return
        seat.todo.append(work)
        if not seat.queued:
            seat.queued = True
            self._waiting.append(seat)

    def leads(self) -> bool:
        """Whether this thread runs a task with the lead."""
        return self._runs == get_ident()

    def step_aside(self) -> None:
        """Give up the lead if this thread has it. It is about to wait for a reply, which another thread must read."""
        if self._runs == get_ident():
            with self._lock:
                if self._runs == get_ident():
                    self._take()
                    self._back.release()

    def run(self) -> None:
        """The main thread's loop, which does not end."""
        while True:
            if not self._waiting:
                self._read(None)
            while self._waiting:
                seat = self._next()
                if time.monotonic() < self._open_until:
                    with self._lock:
                        self._run_apart(seat)
                elif seat.todo:
                    self._hand(seat)
                    self._watch()

    def _next(self) -> Seat:
        seat = self._waiting.popleft()
        seat.queued = False
        return seat

    def _hand(self, seat: Seat) -> None:
        self._leader = seat
        seat.thread.put(partial(self._lead, seat))

    def _lead(self, me: Seat) -> None:
        """Run tasks and read requests in the thread of a seat, as long as it has the lead."""
        ident = get_ident()
        while True:
            for _ in range(TURN):
                if not me.todo:
                    break
                self._look()
                work = me.todo.popleft()
                self._count += 1
                self._runs = ident  # from here on main can take the lead
                try:
                    work()
                except BaseException:  # the thread must survive for the next task
                    traceback.print_exc()
                del work  # frees what it holds before the next one arrives
                if os.getpid() != self._process:
                    return  # a handler has forked; the requests are for the parent
                with self._lock:
                    if self._runs != ident:
                        me.apart -= 1
                        return
                    self._runs = 0
            if me.todo and not me.queued:  # its turn is over
                me.queued = True
                self._waiting.append(me)
            if self._waiting:
                seat = self._next()
                if seat is not me and seat.todo:
                    self._hand(seat)
                    return
            elif not self._read(QUIET):
                with self._lock:
                    self._leader = None
                    self._back.release()
                return

    def _watch(self) -> None:
        """Wait until main gets the lead back, or take it from a task that takes long."""
        seen = 0
        while True:
            self._back.acquire(timeout=PATIENCE)
            with self._lock:
                if self._leader is None:
                    self._back.acquire(blocking=False)
                    return
                slow = self._runs != 0 and self._count == seen
                if slow:
                    self._take()
                    self._open_until = time.monotonic() + OPEN
                seen = self._count
            if slow:
                self._slow()
                return

    def _take(self) -> None:
        """Take the lead from the running task. The other work of its seat will run without the lead too.

        The caller holds the lock.
        """
        seat, self._leader, self._runs = self._leader, None, 0
        assert seat is not None
        seat.apart += 1
        self._run_apart(seat)

    def _run_apart(self, seat: Seat) -> None:
        """Have the thread of a seat do its work without the lead. The caller holds the lock."""
        while seat.todo:
            seat.apart += 1
            seat.thread.put(partial(self._apart, seat, seat.todo.popleft()))

    def _give_apart(self, seat: Seat, work: Work) -> None:
        with self._lock:
            seat.apart += 1
        seat.thread.put(partial(self._apart, seat, work))

    def _apart(self, seat: Seat, work: Work) -> None:
        try:
            work()
        finally:
            with self._lock:
                seat.apart -= 1
