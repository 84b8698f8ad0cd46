"""Calls to the server that handlers make with a client.

    handler ─ SyncClient("agent").get_file(id=…)  ─▶ answer ─ the task's Files ─▶ Go
            ─ SyncClient("agent").get_param(id=…) ─▶ answer ─ the task's ask   ─▶ Go: the API, in this environment

A call belongs to the task of its thread, also in coroutines for which the thread
waits. Calls that handlers may not make, or that would store a secret, are refused.
"""

import base64
import binascii
from collections.abc import Callable
from typing import Any, Optional

from inmanta.agent.context import jsonable
from inmanta.protocol.common import Result
from ordain_worker.frames import Failure
from ordain_worker.reach import NotAnswered
from ordain_worker.tasks import Files, Task, at_work

READS = ("get_", "list_", "is_", "resource_", "stat_", "environment_", "versioned_", "discovered_resources_")
"""Beginnings of the names of calls that store nothing."""


def answer(method: str, kwargs: dict[str, Any]) -> Optional[Result]:
    """The answer to a call, as the API gives it, or None for a call that handlers may not make."""
    task = at_work.get()
    files = task.files if task is not None else None
    if task is None or files is None:
        raise NotAnswered(f"{method}: only the thread that works on a resource can call the server, while it does")
    try:
        return _file(files, method, kwargs) if method in _CALLS else _other(task, files, method, kwargs)
    except Failure as failure:
        return _refused(500, f"{method}: {failure}")


def _file(files: Files, method: str, kwargs: dict[str, Any]) -> Result:
    names, call = _CALLS[method]
    given = {**dict(zip(names, kwargs.get("", ()))), **kwargs}
    missing = [name for name in names if name not in given]
    if missing:
        raise TypeError(f"{method} needs {' and '.join(missing)}")
    return call(files, *(given[name] for name in names))


def _other(task: Task, files: Files, method: str, kwargs: dict[str, Any]) -> Optional[Result]:
    named = {name: jsonable(value) for name, value in kwargs.items() if name != ""}
    positional = [jsonable(value) for value in kwargs.get("", ())]
    if not method.startswith(READS) and task.secret([positional, named]):
        return _refused(403, _SECRET % method)
    answered = files.ask("call", {"name": method, "positional": positional, "named": named})
    return Result(answered["code"], answered["body"]) if answered["code"] else None


_SECRET = "%s: what a reference resolved to is not stored by the server, and this holds some of it"


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
    except ValueError as problem:  # the hash is wrong, or the content holds a secret
        return _refused(400, str(problem))
    return Result(200)


def _refused(code: int, why: str) -> Result:
    return Result(code, {"message": why})


_CALLS: dict[str, tuple[tuple[str, ...], Callable[..., Result]]] = {
    "get_file": (("id",), _get),
    "stat_file": (("id",), _stat),
    "upload_file": (("id", "content"), _upload),
}
