"""Frames: a 4-byte big-endian length and that many bytes of JSON.

Channel reads and writes single frames. Dialogue is the conversation of the
compile role: single-threaded, and nested to any depth. The conversation of the
handler role is in switchboard.py.
"""

from __future__ import annotations

import io
import os
import sys

from _thread import allocate_lock
from ordain_worker._json import decode, encode

TYPE_CHECKING = False  # every compile imports this module, so it does without typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Optional

PROTOCOL = 1
MAX_FRAME = 64 << 20


class Failure(Exception):
    """The ``err`` of a reply, in either direction.

    An answer raises it to choose the fields. ``ask`` raises it with the fields
    that the other side sent.
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
        """Describe an exception: its class, message, traceback and innermost place."""
        import traceback

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
    """The full name of a class, without the module if it is built in."""
    if cls.__module__ == "builtins":
        return cls.__qualname__
    return f"{cls.__module__}.{cls.__qualname__}"


class Channel:
    """Reads and writes frames over two file descriptors. Writing is thread-safe."""

    def __init__(self, fd_in: int, fd_out: int) -> None:
        self._in = io.BufferedReader(io.FileIO(fd_in, "r", closefd=False), 1 << 16)
        self._out = fd_out
        self.descriptors = (fd_in, fd_out)
        self._writing = allocate_lock()
        self._held = b""

    def read(self) -> Optional[dict[str, Any]]:
        """Return the next frame, or None if the other side closed the pipe."""
        head = self._in.read(4)
        if len(head) < 4:
            return None
        size = int.from_bytes(head, "big")
        if size > MAX_FRAME:
            raise Failure(f"a frame of {size} bytes is above the limit of {MAX_FRAME}", kind="protocol")
        body = self._in.read(size)
        if len(body) < size:
            return None
        return decode(body)

    def write(self, frame: dict[str, Any], most: int = MAX_FRAME) -> int:
        """Send a frame of at most so many bytes, and return its size."""
        return self.write_text(encode(frame), most)

    def write_text(self, text: str, most: int = MAX_FRAME) -> int:
        """Like write, for JSON text."""
        body = text.encode("ascii")
        size = len(body)
        if size > most:
            raise Failure(f"a frame of {size} bytes is above the limit of {most}", kind="protocol")
        with self._writing:
            self._send(self._held + size.to_bytes(4, "big") + body)
        return size

    def hold(self, text: str) -> int:
        """Keep a small frame, to be sent in one write with the next."""
        body = text.encode("ascii")
        size = len(body)
        with self._writing:
            self._held += size.to_bytes(4, "big") + body
        return size

    def send_held(self) -> None:
        with self._writing:
            if self._held:
                self._send(self._held)

    def _send(self, packet: bytes) -> None:
        self._held = b""
        sent = os.write(self._out, packet)
        while sent < len(packet):
            sent += os.write(self._out, memoryview(packet)[sent:])

    def reply(self, request: int, value: Any) -> None:
        """Answer a request. A value that has no JSON becomes a failure."""
        try:
            self.write({"re": request, "ok": value})
        except (TypeError, ValueError, RecursionError, Failure) as exc:
            self.refuse(request, exc)

    def refuse(self, request: int, exc: BaseException) -> None:
        self.write({"re": request, "err": Failure.of(exc).as_dict()})

    def notify(self, op: str, args: dict[str, Any], belongs_to: int = 0, most: int = MAX_FRAME) -> int:
        frame: dict[str, Any] = {"op": op, "args": args}
        if belongs_to:
            frame["for"] = belongs_to
        return self.write(frame, most)

    def hello(self, role: str) -> None:
        version = "%d.%d.%d" % sys.version_info[:3]
        self.notify("hello", {"protocol": PROTOCOL, "role": role, "pid": os.getpid(), "python": version})


def end_now() -> None:
    """Kill this process and its group, without flushing anything."""
    import signal

    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def leave() -> None:
    """End this process in an orderly way, even if the code has closed its output."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass
    os._exit(0)


class Dialogue:
    """A strictly nested conversation (compile role), for one thread.

    ``answer(op, args)`` returns the value of a reply, or raises.
    """

    def __init__(self, channel: Channel, answer: Callable[[str, Any], Any]) -> None:
        self._channel = channel
        self._answer = answer
        self._last = 0

    def continue_on(self, channel: Channel) -> None:
        """Use another channel from now on."""
        self._channel = channel
        self._last = 0

    def ask(self, op: str, args: Any) -> Any:
        """Send a request and return the value of its reply, answering the other side's requests meanwhile.

        Raises Failure if the other side refuses.
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
                leave()
            return
        try:
            value = self._answer(frame["op"], frame.get("args"))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as exc:  # also SystemExit: a plug-in must not end the compiler
            self._channel.refuse(request, exc)
        else:
            self._channel.reply(request, value)
