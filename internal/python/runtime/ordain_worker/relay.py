"""Who reads the requests and who runs next, among the threads of all agents.

Only one thread of Python runs at a time, and to hand over costs more than a
short task does. So there is one *lead*, and who has it reads what comes, runs
what is for his own agent and hands the lead on with what is for another:

    main ─ work for a ─▶ a runs, reads on ─ work for b ─▶ b runs, reads on ─ …
      ▲                                                            │
      └── nothing comes for a moment, a task asks the server, or ──┘
          main takes the lead back: a task takes its time

Short tasks follow each other so, without a thread that only reads and without
two that want to run. What takes its time mostly waits for something itself:
then others run beside it, each in the thread of its agent, without the lead.
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

PATIENCE = 0.002  # seconds between two looks at who has the lead: a task that is seen twice loses it
QUIET = 0.003  # seconds without a request after which the lead goes back
TURN = 50  # tasks that an agent does before it lets another one begin
OPEN = 0.1  # seconds for which nobody waits for others, after a task took its time


class Seat:
    """The thread of an agent, and what is for it."""

    def __init__(self, thread: Worker) -> None:
        self.thread = thread
        self.todo: deque[Work] = deque()
        self.named = False  # somebody knows that there is something to do
        self.apart = 0  # tasks that it does or will do without the lead


class Relay:
    """Hands the lead on.

    ``read(seconds)`` waits for requests, without end for None, and gives each to ``give``; False when none came.
    ``slow`` is called when a task takes its time, ``look`` before each that has the lead.
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
        self._back = allocate_lock()  # free when the lead came back to main
        self._back.acquire()
        self._leader: Optional[Seat] = None  # None: main
        self._runs = 0  # the thread that has the lead and runs a task; 0: there is none
        self._count = 0  # tasks that were run with the lead
        self._waiting: deque[Seat] = deque()  # seats with something to do, in the order in which that came
        self._open_until = 0.0

    def give(self, seat: Seat, work: Work) -> None:
        """Have work done in the thread of a seat, after what it has to do already. Only who reads calls this."""
        if seat.apart:
            self._give_apart(seat, work)
            return
        seat.todo.append(work)
        if not seat.named:
            seat.named = True
            self._waiting.append(seat)

    def leads(self) -> bool:
        """Whether this thread runs a task and has the lead."""
        return self._runs == get_ident()

    def step_aside(self) -> None:
        """Give the lead back, where this thread has it: it is about to wait for a reply, which somebody has to read."""
        if self._runs == get_ident():
            with self._lock:
                if self._runs == get_ident():
                    self._take()
                    self._back.release()

    def run(self) -> None:
        """What the main thread does. It does not end."""
        while True:
            if not self._waiting:
                self._read(None)
            while self._waiting:
                seat = self._next()
                if time.monotonic() < self._open_until:
                    with self._lock:
                        self._part(seat)
                elif seat.todo:
                    self._hand(seat)
                    self._watch()

    def _next(self) -> Seat:
        seat = self._waiting.popleft()
        seat.named = False
        return seat

    def _hand(self, seat: Seat) -> None:
        self._leader = seat
        seat.thread.put(partial(self._lead, seat))

    def _lead(self, me: Seat) -> None:
        """Run and read on, in the thread of a seat, until the lead goes elsewhere."""
        ident = get_ident()
        while True:
            for _ in range(TURN):
                if not me.todo:
                    break
                self._look()
                work = me.todo.popleft()
                self._count += 1
                self._runs = ident  # from here on the lead can be taken
                try:
                    work()
                except BaseException:  # the thread is for what comes next too
                    traceback.print_exc()
                del work  # what it holds is not to wait for the next one
                if os.getpid() != self._process:
                    return  # a copy of the process that a handler made: the requests are for the other one
                with self._lock:
                    if self._runs != ident:
                        me.apart -= 1
                        return
                    self._runs = 0
            if me.todo and not me.named:  # it had its turn
                me.named = True
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
        """Wait until the lead comes back, or take it from a task that takes its time."""
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
        """Take the lead from the task that runs; what else is for its thread follows it there. The caller holds the lock."""
        seat, self._leader, self._runs = self._leader, None, 0
        assert seat is not None
        seat.apart += 1
        self._part(seat)

    def _part(self, seat: Seat) -> None:
        """Leave it to a thread to do without the lead what is for it. The caller holds the lock."""
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
