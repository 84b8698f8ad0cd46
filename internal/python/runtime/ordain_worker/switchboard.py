"""The conversation of the handler role, with many requests at a time."""

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

LOOK = 0.0002  # seconds between two checks for a request to retract, while there are tasks that can be
STUCK = 90.0  # seconds without a heartbeat after which the process ends itself


class Verbatim(str):
    """The value of a reply as JSON text."""


class Conversation:
    """A request of the server, for the thread that works on it."""

    def __init__(self, board: "Switchboard", request: int, seat: Optional[Seat] = None) -> None:
        self._board = board
        self._request = request
        self._seat = seat

    def ask(self, op: str, args: Any) -> Any:
        """Send a request to the server on behalf of this one. Raises Failure if it is refused."""
        return self._board.ask(op, args, self._request)

    def notify(self, op: str, args: Any, most: int = MAX_FRAME) -> int:
        """Send a notice about this request. Returns its size in bytes."""
        return self._board.channel.notify(op, args, self._request, most)

    def notify_later(self, op: str, args: str) -> int:
        """Like notify, for arguments as JSON text. The notice leaves with the next frame, or after a moment."""
        return self._board.hold(f'{{"op":"{op}","args":{args},"for":{self._request}}}')

    def give_back(self) -> None:
        """Give back all requests with ``behind``, also later ones, because this process should not begin any more."""
        self._board.retire()

    def give_back_own(self) -> None:
        """Give back the requests behind this one."""
        self._board.give_back(lambda seat: seat is self._seat)


class Switchboard:
    """Serves many requests at a time.

    :param answer: ``answer(conversation, op, args)`` returns the value of a reply, or raises. It runs in the thread
        of the seat that ``place(op, args)`` returns, or in a new thread if that is None.
    :param done: called with the seat after ``answer``.
    :param at_end: called when the server says bye.

    A request with ``behind`` can be taken back until it begins. The code that removes its number from
    ``_behind`` either begins it or gives it back.
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
        self._retiring = False
        self._relay = Relay(self._read, channel.send_held, self._look)

    def hold(self, text: str) -> int:
        size = self.channel.hold(text)
        # While a task has the lead, the relay watches it and sends the held frame if the task takes long.
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
        """Serve requests until the server says bye or goes away. Then the process ends."""
        threading.Thread(target=self._beat, args=(beat,), name="ordain-beat", daemon=True).start()
        self._relay.run()

    def _look(self) -> None:
        """Read requests now and then, so that a task can be taken back before it begins."""
        if self._behind and time.monotonic() >= self._next_look:
            self._read(0)
            self._next_look = time.monotonic() + LOOK

    def _take_back(self, requests: list[int]) -> list[int]:
        return [each for each in requests if self._behind.pop(each, None) is not None]

    def give_back(self, whose: Callable[[Seat], bool]) -> None:
        for each in self._take_back([request for request, seat in list(self._behind.items()) if whose(seat)]):
            self.channel.write_text(f'{{"re":{each},"ok":{{"withdrawn":true}}}}')

    def retire(self) -> None:
        """Give back all requests with ``behind``, and those that arrive before the server knows that none may begin."""
        self._retiring = True
        self.give_back(lambda seat: True)

    def _read(self, seconds: Optional[float]) -> bool:
        """Dispatch the frames that arrive within this time. Returns False if there were none."""
        try:
            frames = self._requests.read(seconds)
            if frames is None:
                end_now()
                return False
            for frame in frames:
                self._dispatch(frame)
            return bool(frames)
        except BaseException:  # no other thread would read on
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
            if self._retiring:
                self.retire()
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
        """Refuse a request, or end the process: without an answer the agent would be blocked until the timeout."""
        try:
            self.channel.refuse(request, exc)
        except BaseException:
            end_now()

    def _beat(self, interval: float) -> None:
        pause = threading.Event()
        while True:
            # If a handler never releases the interpreter's lock, no thread can run, not even the one that would
            # notice the end of the server. This timer needs no lock. It prints where the process is stuck and
            # ends it.
            faulthandler.dump_traceback_later(STUCK, exit=True, file=sys.__stderr__)
            if pause.wait(interval):
                return
            self.channel.notify("beat", {})


class _Reply:
    def __init__(self) -> None:
        self.ready = threading.Event()
        self.frame: dict[str, Any] = {}
