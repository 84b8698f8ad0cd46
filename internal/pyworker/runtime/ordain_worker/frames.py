"""Frames: a 4-byte big-endian length and that many bytes of JSON.

Channel reads and writes single frames. Dialogue is the single-threaded
conversation of the compile role, nested to any depth. Switchboard is the
conversation of the handler role: many requests at once, a thread each.
"""

import faulthandler
import io
import json
import os
import signal
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, Optional

PROTOCOL = 1
MAX_FRAME = 64 << 20
STUCK = 90.0  # seconds without a heartbeat after which the process ends itself

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode
_decode = json.loads
_length = struct.Struct(">I")


class Failure(Exception):
    """What travels as ``err`` in a reply, in either direction.

    Raise it in an answer to choose the fields; it is raised by ``ask`` with the
    fields that the other side sent.
    """

    def __init__(
        self, message: str, *, kind: str = "error", cls: str = "", trace: str = "", file: str = "", line: int = 0
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.cls = cls
        self.trace = trace
        self.file = file
        self.line = line

    def as_dict(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "class": self.cls,
            "message": self.message,
            "trace": self.trace,
            "file": self.file,
            "line": self.line,
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Failure":
        return cls(
            fields.get("message") or "",
            kind=fields.get("kind") or "error",
            cls=fields.get("class") or "",
            trace=fields.get("trace") or "",
            file=fields.get("file") or "",
            line=fields.get("line") or 0,
        )

    @classmethod
    def of(cls, exc: BaseException, kind: str = "exception") -> "Failure":
        """Describe an exception: class, message, trace, and the innermost place."""
        if isinstance(exc, Failure):
            return exc
        file, line = "", 0
        frames = traceback.extract_tb(exc.__traceback__)
        if frames:
            file, line = frames[-1].filename, frames[-1].lineno or 0
        try:
            message = str(exc)
        except Exception as broken:  # a __str__ that raises
            message = f"(its message cannot be shown: {type(broken).__name__})"
        try:
            trace = "".join(traceback.format_exception(exc))
        except Exception:
            trace = ""
        return cls(message, kind=kind, cls=class_name(type(exc)), trace=trace, file=file, line=line)


def class_name(cls: type) -> str:
    """The full name, without the module for built-in classes."""
    if cls.__module__ == "builtins":
        return cls.__qualname__
    return f"{cls.__module__}.{cls.__qualname__}"


class Channel:
    """One frame at a time over two file descriptors. Writing is thread-safe."""

    def __init__(self, fd_in: int, fd_out: int) -> None:
        self._in = io.BufferedReader(io.FileIO(fd_in, "r", closefd=False), 1 << 16)
        self._out = fd_out
        self._writing = threading.Lock()

    def read(self) -> Optional[dict[str, Any]]:
        """The next frame; None when the other side closed the pipe."""
        head = self._in.read(4)
        if len(head) < 4:
            return None
        size = _length.unpack(head)[0]
        if size > MAX_FRAME:
            raise Failure(f"a frame of {size} bytes is above the limit of {MAX_FRAME}", kind="protocol")
        body = self._in.read(size)
        if len(body) < size:
            return None
        return _decode(body)

    def write(self, frame: dict[str, Any]) -> None:
        body = _encode(frame).encode("ascii")
        if len(body) > MAX_FRAME:
            raise Failure(f"a frame of {len(body)} bytes is above the limit of {MAX_FRAME}", kind="protocol")
        packet = memoryview(_length.pack(len(body)) + body)
        with self._writing:
            while packet:
                packet = packet[os.write(self._out, packet) :]

    def reply(self, request: int, value: Any) -> None:
        """Answer a request; a value that is not JSON becomes a failure."""
        try:
            self.write({"re": request, "ok": value})
        except (TypeError, ValueError, RecursionError, Failure) as exc:
            self.refuse(request, exc)

    def refuse(self, request: int, exc: BaseException) -> None:
        self.write({"re": request, "err": Failure.of(exc).as_dict()})

    def notify(self, op: str, args: dict[str, Any], belongs_to: int = 0) -> None:
        frame: dict[str, Any] = {"op": op, "args": args}
        if belongs_to:
            frame["for"] = belongs_to
        self.write(frame)

    def hello(self, role: str) -> None:
        version = "%d.%d.%d" % sys.version_info[:3]
        self.notify("hello", {"protocol": PROTOCOL, "role": role, "pid": os.getpid(), "python": version})


def end_now() -> None:
    """End this process and everything in its group. Nothing is flushed."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


class Dialogue:
    """A strictly nested conversation (compile role), for one thread.

    ``answer(op, args)`` gives the value of a reply, or raises.
    """

    def __init__(self, channel: Channel, answer: Callable[[str, Any], Any]) -> None:
        self._channel = channel
        self._answer = answer
        self._last = 0

    def ask(self, op: str, args: Any) -> Any:
        """Send a request, answer what the other side asks meanwhile, give the reply's value.

        Raises Failure when the other side refuses.
        """
        self._last += 1
        request = self._last
        self._channel.write({"id": request, "op": op, "args": args})
        while True:
            frame = self._channel.read()
            if frame is None:
                end_now()
                raise SystemExit
            if "re" in frame:
                if frame["re"] != request:
                    raise Failure(f"a reply to {frame['re']} while {request} is asked", kind="protocol")
                if frame.get("err"):
                    raise Failure.from_dict(frame["err"])
                return frame.get("ok")
            self._dispatch(frame)

    def serve(self) -> None:
        """Answer requests until the other side says bye or goes away."""
        while True:
            frame = self._channel.read()
            if frame is None:
                end_now()
                return
            self._dispatch(frame)

    def notify(self, op: str, args: Any) -> None:
        self._channel.notify(op, args)

    def _dispatch(self, frame: dict[str, Any]) -> None:
        request = frame.get("id")
        if request is None:
            if frame.get("op") == "bye":
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)
            return
        try:
            value = self._answer(frame["op"], frame.get("args"))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as exc:  # also SystemExit: a plug-in must not end the compiler
            self._channel.refuse(request, exc)
        else:
            self._channel.reply(request, value)


class Conversation:
    """One request of the other side, as the thread that works on it sees it."""

    def __init__(self, board: "Switchboard", request: int) -> None:
        self._board = board
        self._request = request

    def ask(self, op: str, args: Any) -> Any:
        """Send a request back on behalf of this one. Raises Failure when refused."""
        return self._board.ask(op, args, self._request)

    def notify(self, op: str, args: Any) -> None:
        self._board.channel.notify(op, args, self._request)


class Switchboard:
    """Many requests at a time (handler role): each runs in a thread of its own.

    ``answer(conversation, op, args)`` gives the value of a reply, or raises.
    ``at_end`` is called when the other side says bye.
    """

    def __init__(
        self,
        channel: Channel,
        answer: Callable[[Conversation, str, Any], Any],
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        self.channel = channel
        self._answer = answer
        self._at_end = at_end
        self._lock = threading.Lock()
        self._last = 0
        self._waiting: dict[int, "_Reply"] = {}

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
                threading.Thread(target=self._work, args=(frame,), name=f"ordain-{frame['id']}", daemon=True).start()
            elif frame.get("op") == "bye":
                try:
                    self._at_end()
                except Exception:
                    traceback.print_exc()
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)

    def _work(self, frame: dict[str, Any]) -> None:
        request = frame["id"]
        try:
            value = self._answer(Conversation(self, request), frame["op"], frame.get("args"))
        except BaseException as exc:
            self.channel.refuse(request, exc)
        else:
            self.channel.reply(request, value)

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
