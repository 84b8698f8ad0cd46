"""Tells the server which handler is about to end the process that it shares with others.

A handler can end the process with a function such as os._exit, which is reported before it happens, or by a crash in C
code. Then Python prints the stack of the thread. It does not name the thread, so the stack of each handler's thread
has a frame with its number, which the server knows.
"""

from __future__ import annotations

import os
import signal
import threading
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ordain_worker.switchboard import Conversation

_FILE = "<ordain>"  # the name of the file in that frame

_working: dict[int, "Conversation"] = {}  # by thread
_known: dict[int, tuple[object, "Callable[..., None]"]] = {}  # what threads work for, and their frames


def _frame(function: "Callable[..., None]", *args: "Any") -> None:
    function(*args)


def run(talk: "Conversation", seat: object, function: "Callable[..., None]", *args: "Any") -> None:
    """Call a function for a request in this thread."""
    thread = threading.get_ident()
    of, frame = _known.get(thread, (None, _frame))
    if of is not seat:  # a new thread, or one that has the number of an old one
        code = _frame.__code__.replace(co_name=f"thread_{thread:x}", co_filename=_FILE)
        frame = types.FunctionType(code, globals())
        _known[thread] = seat, frame
        talk.notify("thread", {"number": f"{thread:x}"})
    _working[thread] = talk
    try:
        frame(function, *args)
    finally:
        _working.pop(thread, None)


def watch() -> None:
    """Report calls of functions that end the process."""
    own = os.getpid()

    def wrap(module: Any, name: str, ends: Callable[..., bool]) -> None:
        real = getattr(module, name)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            talk = _working.get(threading.get_ident())
            if talk is not None and os.getpid() == own and ends(*args, **kwargs):
                try:
                    shown = ", ".join(str(int(each)) for each in args)
                    talk.notify("ends", {"call": f"{module.__name__}.{name}({shown})"})
                except Exception:  # what it is about to do matters more
                    pass
            return real(*args, **kwargs)

        wrapped.__name__, wrapped.__doc__ = name, real.__doc__
        setattr(module, name, wrapped)

    deadly = {signal.SIGKILL, signal.SIGTERM, signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL}
    wrap(os, "_exit", lambda *_: True)
    wrap(os, "abort", lambda *_: True)
    wrap(os, "kill", lambda pid=0, sig=0, *_: pid in (0, own) and sig in deadly)
    wrap(os, "killpg", lambda pid=0, sig=0, *_: pid in (0, own) and sig in deadly)
    wrap(signal, "raise_signal", lambda sig=0, *_: sig in deadly)
