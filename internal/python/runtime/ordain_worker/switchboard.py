"""The conversation of the handler role: many requests at once."""

import faulthandler
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any, Optional

from ordain_worker.frames import MAX_FRAME, Channel, Failure, end_now, leave
from ordain_worker.relay import Relay, Seat
from ordain_worker.requests import Requests

LOOK = 0.0002  # seconds between two looks for requests while tasks run that can be taken back
STUCK = 90.0  # seconds without a heartbeat after which the process ends itself


class Verbatim(str):
    """The value of a reply that is JSON already."""


class Conversation:
    """One request of the other side, as the thread that works on it sees it."""

    def __init__(self, board: "Switchboard", request: int, seat: Optional[Seat] = None) -> None:
        self._board = board
        self._request = request
        self._seat = seat

    def ask(self, op: str, args: Any) -> Any:
        """Send a request back on behalf of this one. Raises Failure when refused."""
        return self._board.ask(op, args, self._request)

    def notify(self, op: str, args: Any, most: int = MAX_FRAME) -> int:
        """Tell the other side something about this request; gives how many bytes that took."""
        return self._board.channel.notify(op, args, self._request, most)

    def notify_later(self, op: str, args: str) -> int:
        """The same for what need not be soon, and is JSON already: it goes with the next frame, or in a moment."""
        return self._board.hold(f'{{"op":"{op}","args":{args},"for":{self._request}}}')

    def give_back(self) -> None:
        """Give back what is behind: this process should begin none of it."""
        self._board.give_back(lambda seat: True)

    def give_back_own(self) -> None:
        """Give back what is behind this request."""
        self._board.give_back(lambda seat: seat is self._seat)


class Switchboard:
    """Many requests at a time (handler role).

    ``answer(conversation, op, args)`` gives the value of a reply, or raises. It runs in a thread of its own, or
    in that of the seat that ``place(op, args)`` gives; then ``done(seat)`` is called after it.
    ``at_end`` is called when the other side says bye.

    A request that says ``behind`` can be taken back until it begins: whoever takes its number out of
    ``_behind`` is who begins it, or gives it back.
    """

    def __init__(
        self,
        channel: Channel,
        answer: Callable[[Conversation, str, Any], Any],
        at_end: Callable[[], None] = lambda: None,
        place: Callable[[str, Any], Optional[Seat]] = lambda op, args: None,
        done: Callable[[Any], None] = lambda seat: None,
    ) -> None:
        self.channel = channel
        self._answer = answer
        self._place = place
        self._done = done
        self._at_end = at_end
        self._lock = threading.Lock()
        self._last = 0
        self._waiting: dict[int, "_Reply"] = {}
        self._requests = Requests(channel.descriptors[0])
        self._behind: dict[int, Seat] = {}
        self._next_look = 0.0
        self._relay = Relay(self._read, channel.send_held, self._look)

    def hold(self, text: str) -> int:
        size = self.channel.hold(text)
        # Somebody looks after a task that has the lead, and sends what it holds when it takes its time.
        if not self._relay.leads():
            self.channel.send_held()
        return size

    def ask(self, op: str, args: Any, belongs_to: int) -> Any:
        reply = _Reply()
        with self._lock:
            self._last += 1
            request = self._last
            self._waiting[request] = reply
        self._relay.step_aside()
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
        self._relay.run()

    def _look(self) -> None:
        """See now and then whether something is taken back, before it begins."""
        if self._behind and time.monotonic() >= self._next_look:
            self._read(0)
            self._next_look = time.monotonic() + LOOK

    def _take_back(self, requests: list[int]) -> list[int]:
        return [each for each in requests if self._behind.pop(each, None) is not None]

    def give_back(self, whose: Callable[[Seat], bool]) -> None:
        for each in self._take_back([request for request, seat in list(self._behind.items()) if whose(seat)]):
            self.channel.write_text(f'{{"re":{each},"ok":{{"withdrawn":true}}}}')

    def _read(self, seconds: Optional[float]) -> bool:
        """Dispatch what comes in so many seconds; False when that is nothing."""
        try:
            frames = self._requests.read(seconds)
            if frames is None:
                end_now()
                return False
            for frame in frames:
                self._dispatch(frame)
            return bool(frames)
        except BaseException:  # nobody else would read on
            traceback.print_exc(file=sys.__stderr__)
            end_now()
            raise

    def _dispatch(self, frame: dict[str, Any]) -> None:
        if "id" in frame:
            self._begin(frame)
        elif "re" in frame:
            with self._lock:
                reply = self._waiting.get(frame["re"])
            if reply is not None:
                reply.frame = frame
                reply.ready.set()
        elif frame.get("op") == "bye":
            try:
                self._at_end()
            except Exception:
                traceback.print_exc()
            leave()

    def _begin(self, frame: dict[str, Any]) -> None:
        if frame["op"] == "retract":
            self.channel.reply(frame["id"], {"back": self._take_back(frame["args"]["requests"])})
            return
        try:
            seat = self._place(frame["op"], frame.get("args"))
        except Exception as exc:
            self.channel.refuse(frame["id"], exc)
            return
        if seat is not None:
            if frame.get("behind"):
                self._behind[frame["id"]] = seat
            self._relay.give(seat, partial(self._placed, frame, seat))
        else:
            threading.Thread(target=self._work, args=(frame,), name=f"ordain-{frame['id']}", daemon=True).start()

    def _placed(self, frame: dict[str, Any], seat: Seat) -> None:
        try:
            if not frame.get("behind") or self._behind.pop(frame["id"], None) is not None:
                self._work(frame, seat)
        finally:
            self._done(seat)

    def _work(self, frame: dict[str, Any], seat: Optional[Seat] = None) -> None:
        request = frame["id"]
        try:
            value = self._answer(Conversation(self, request, seat), frame["op"], frame.get("args"))
            if type(value) is Verbatim:
                self.channel.write_text(f'{{"re":{request},"ok":{value}}}')
                return
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
