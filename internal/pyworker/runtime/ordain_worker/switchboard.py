"""The conversation of the handler role: many requests at once, a thread each."""

import faulthandler
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from ordain_worker.frames import MAX_FRAME, Channel, Failure, end_now, leave

STUCK = 90.0  # seconds without a heartbeat after which the process ends itself
HELD = 0.02  # seconds that a frame may be held
HELD_ROUNDS = 25  # times that nothing was held, after which nobody looks any more


class Conversation:
    """One request of the other side, as the thread that works on it sees it."""

    def __init__(self, board: "Switchboard", request: int) -> None:
        self._board = board
        self._request = request

    def ask(self, op: str, args: Any) -> Any:
        """Send a request back on behalf of this one. Raises Failure when refused."""
        return self._board.ask(op, args, self._request)

    def notify(self, op: str, args: Any, most: int = MAX_FRAME, soon: bool = True) -> int:
        """Tell the other side something about this request; gives how many bytes that took.

        What need not be soon goes with the next frame, or in a moment.
        """
        size = self._board.channel.notify(op, args, self._request, most, hold=not soon)
        if not soon:
            self._board.holds()
        return size


class Switchboard:
    """Many requests at a time (handler role).

    ``answer(conversation, op, args)`` gives the value of a reply, or raises. It runs in a thread of its own, or
    where ``place(op, args, work)`` puts it: that gives True when it has seen to work() being called.
    ``at_end`` is called when the other side says bye.
    """

    def __init__(
        self,
        channel: Channel,
        answer: Callable[[Conversation, str, Any], Any],
        at_end: Callable[[], None] = lambda: None,
        place: Callable[[str, Any, Callable[[], None]], bool] = lambda op, args, work: False,
    ) -> None:
        self.channel = channel
        self._answer = answer
        self._place = place
        self._at_end = at_end
        self._lock = threading.Lock()
        self._last = 0
        self._waiting: dict[int, "_Reply"] = {}
        self._held = threading.Event()  # somebody sees to it that held frames leave

    def holds(self) -> None:
        """Say that a frame is held."""
        if not self._held.is_set():
            self._held.set()

    def ask(self, op: str, args: Any, belongs_to: int) -> Any:
        reply = _Reply()
        with self._lock:
            self._last += 1
            request = self._last
            self._waiting[request] = reply
        try:
            self.channel.write({"id": request, "op": op, "args": args, "for": belongs_to})
            reply.ready.wait()
        finally:
            with self._lock:
                self._waiting.pop(request, None)
        if reply.frame.get("err"):
            raise Failure.from_dict(reply.frame["err"])
        return reply.frame.get("ok")

    def serve(self, beat: float = 5.0) -> None:
        """Dispatch until the other side says bye or goes away; ends the process."""
        threading.Thread(target=self._beat, args=(beat,), name="ordain-beat", daemon=True).start()
        threading.Thread(target=self._let_go, name="ordain-held", daemon=True).start()
        while True:
            frame = self.channel.read()
            if frame is None:
                end_now()
                return
            if "re" in frame:
                with self._lock:
                    reply = self._waiting.get(frame["re"])
                if reply is not None:
                    reply.frame = frame
                    reply.ready.set()
            elif "id" in frame:
                self._begin(frame)
            elif frame.get("op") == "bye":
                try:
                    self._at_end()
                except Exception:
                    traceback.print_exc()
                leave()

    def _begin(self, frame: dict[str, Any]) -> None:
        def work() -> None:
            self._work(frame)

        try:
            placed = self._place(frame["op"], frame.get("args"), work)
        except Exception as exc:
            self.channel.refuse(frame["id"], exc)
            return
        if not placed:
            threading.Thread(target=work, name=f"ordain-{frame['id']}", daemon=True).start()

    def _work(self, frame: dict[str, Any]) -> None:
        request = frame["id"]
        try:
            value = self._answer(Conversation(self, request), frame["op"], frame.get("args"))
        except BaseException as exc:
            self._refuse(request, exc)
        else:
            try:
                self.channel.reply(request, value)
            except BaseException as exc:
                self._refuse(request, exc)

    def _refuse(self, request: int, exc: BaseException) -> None:
        """Refuse, or end: a request that is never answered would hold up its agent until its time is over."""
        try:
            self.channel.refuse(request, exc)
        except BaseException:
            end_now()

    def _let_go(self) -> None:
        """Send what is held when nothing else was sent for a moment."""
        while True:
            self._held.wait()
            quiet = 0
            while quiet < HELD_ROUNDS:
                time.sleep(HELD)
                quiet = 0 if self.channel.send_held() else quiet + 1
            self._held.clear()
            self.channel.send_held()  # held since the last look, by one who found somebody seeing to it

    def _beat(self, interval: float) -> None:
        pause = threading.Event()
        while True:
            # Without the lock of the interpreter nothing here can run, not even the reader that would see the
            # server go. This timer needs no lock: it ends the process with the place where it is stuck.
            faulthandler.dump_traceback_later(STUCK, exit=True, file=sys.__stderr__)
            if pause.wait(interval):
                return
            self.channel.notify("beat", {})


class _Reply:
    def __init__(self) -> None:
        self.ready = threading.Event()
        self.frame: dict[str, Any] = {}
