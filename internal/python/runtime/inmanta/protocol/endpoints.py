"""Clients whose calls are answered by the program that started this process.

A role of the worker sets the function that answers with :func:`answer_with`. A call
without an answer raises ConnectionRefusedError, as if no server listened.
"""

from __future__ import annotations

from inmanta._fallback import lacking
from inmanta.protocol.common import Result
from ordain_worker.reach import NotAnswered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Optional

    Answer = Callable[[str, dict[str, Any]], Optional[Result]]

_answer: Optional[Answer] = None
_waits = False


def answer_with(answer: Optional[Answer], *, waits: bool = False) -> None:
    """Set the function that answers calls: (method, arguments) → Result, or None to refuse.

    Positional arguments are a list with the name "". With ``waits`` the function may take long, so awaited calls run it
    in another thread, in their own context.
    """
    global _answer, _waits
    _answer, _waits = answer, waits


def _call(method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Result:
    if args:
        kwargs = {**kwargs, "": list(args)}
    result = _answer(method, kwargs) if _answer is not None else None
    if result is None:
        raise NotAnswered(f"{method}: modules cannot call the server from here")
    return result


class _Transport:
    """The address of the server, for modules that read it."""

    def _get_client_config(self) -> str:
        from inmanta.config import Config

        secure = Config.getboolean("compiler_rest_transport", "ssl", False)
        host = Config.get("compiler_rest_transport", "host", "localhost")
        port = Config.get("compiler_rest_transport", "port", 8888)
        return f"http{'s' if secure else ''}://{host}:{port}"


class _Endpoint:
    def __init__(self, name: str = "agent", timeout: int = 120, **_: object) -> None:
        self.name = name
        self.timeout = timeout
        self._transport_instance = _Transport()


class SyncClient(_Endpoint):
    """A client whose calls wait for their result."""

    def __getattr__(self, name: str) -> Callable[..., Result]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: _call(name, args, kwargs)


class Client(_Endpoint):
    """A client whose calls are awaited."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        async def call(*args: Any, **kwargs: Any) -> Result:
            if _waits:
                import asyncio

                return await asyncio.to_thread(_call, name, args, kwargs)
            return _call(name, args, kwargs)

        return call


__getattr__ = lacking(__name__)
