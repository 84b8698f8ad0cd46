"""What handlers may ask of the server with a client: the files of the store.

    handler ─ SyncClient("agent").get_file(id=…) ─▶ answer ─ the task's Files ─▶ Go

A call belongs to the task that its thread works on, and goes with it into the
coroutines that this thread waits for. All other calls are refused.
"""

import base64
import binascii
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Optional

from inmanta.protocol.common import Result
from ordain_worker.frames import Failure
from ordain_worker.tasks import Files


class _Desk:
    """Where calls of one task are answered, as long as it runs."""

    def __init__(self, files: Files) -> None:
        self.files: Optional[Files] = files


_desk: ContextVar[Optional[_Desk]] = ContextVar("ordain_desk", default=None)


@contextmanager
def answered_by(files: Files) -> Iterator[None]:
    """Calls that are made meanwhile by this thread are answered from these files."""
    desk = _Desk(files)
    before = _desk.set(desk)
    try:
        yield
    finally:
        _desk.reset(before)
        desk.files = None  # a coroutine that outlives the task still knows the desk


def answer(method: str, kwargs: dict[str, Any]) -> Optional[Result]:
    """The answer to a call, in the shape of the API; None for what handlers cannot ask."""
    if method not in _CALLS:
        return None
    desk = _desk.get()
    if desk is None or desk.files is None:
        raise ConnectionRefusedError(f"{method}: only the thread that works on a resource can ask for files, while it does")
    names, call = _CALLS[method]
    given = {**dict(zip(names, kwargs.get("", ()))), **kwargs}
    missing = [name for name in names if name not in given]
    if missing:
        raise TypeError(f"{method} needs {' and '.join(missing)}")
    try:
        return call(desk.files, *(given[name] for name in names))
    except Failure as failure:
        return _refused(500, f"{method}: {failure}")


def _get(files: Files, name: str) -> Result:
    content = files.get(name)
    if content is None:
        return _refused(404, f"there is no file {name}")
    return Result(200, {"content": base64.b64encode(content).decode()})


def _stat(files: Files, name: str) -> Result:
    return Result(200) if files.has(name) else _refused(404, f"there is no file {name}")


def _upload(files: Files, name: str, content: str) -> Result:
    try:
        files.put(name, base64.b64decode(content, validate=True))
    except binascii.Error as problem:
        return _refused(400, f"the content of {name} is not base64: {problem}")
    except ValueError as problem:  # the hash does not fit
        return _refused(400, str(problem))
    return Result(200)


def _refused(code: int, why: str) -> Result:
    return Result(code, {"message": why})


_CALLS: dict[str, tuple[tuple[str, ...], Callable[..., Result]]] = {
    "get_file": (("id",), _get),
    "stat_file": (("id",), _stat),
    "upload_file": (("id", "content"), _upload),
}
