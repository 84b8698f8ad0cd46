"""Reads the frames of the handler role, as many at a time as have arrived."""

import fcntl
import os
import select
from typing import Any, Optional

from ordain_worker._json import decode
from ordain_worker.frames import MAX_FRAME, Failure

PIECE = 64 << 10
ASIDE = 100  # lowest number for the descriptor that is read from


class Requests:
    """Reads from a copy of the descriptor, so that the end is noticed even if a handler closes the original."""

    def __init__(self, fd: int) -> None:
        self._fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, ASIDE)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._rest = b""  # the beginning of an incomplete frame

    def read(self, seconds: Optional[float] = None) -> Optional[list[dict[str, Any]]]:
        """Return the frames that have arrived, waiting so many seconds for the first. None: the server closed the pipe."""
        if seconds is not None and not self._poll.poll(seconds * 1000):
            return []
        data = os.read(self._fd, PIECE)
        if not data:
            return None
        if self._rest:
            data = self._rest + data
        frames = []
        at, end = 0, len(data)
        while end - at >= 4:
            size = int.from_bytes(data[at : at + 4], "big")
            if size > MAX_FRAME:
                raise Failure(f"a frame of {size} bytes is above the limit of {MAX_FRAME}", kind="protocol")
            body = at + 4
            if end - body < size:
                if frames:
                    break
                more = self._whole(data[body:], size)
                if more is None:
                    return None
                self._rest = b""
                return [decode(more)]  # type: ignore[list-item]
            at = body + size
            frames.append(decode(data[body:at]))
        self._rest = data[at:]
        return frames  # type: ignore[return-value]

    def _whole(self, begun: bytes, size: int) -> Optional[bytes]:
        """Read the rest of a frame."""
        parts, missing = [begun], size - len(begun)
        while missing:
            part = os.read(self._fd, min(missing, 1 << 20))
            if not part:
                return None
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)
