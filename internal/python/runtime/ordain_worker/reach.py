"""Tells whether an exception means that the target of a handler could not be reached.

When a handler cannot reach its target, nothing is known about the resource, so
it is ``unavailable`` rather than failed. After several of them in a row, the
server does not try the other resources of that target. These exceptions count:

* connection errors and timeouts of Python's sockets, and names that do not
  resolve;
* similar exceptions of libraries that handlers use, by name, since the
  libraries are not imported here;
* exceptions that were raised ``from`` one of these.

A broken pipe does not count, because it may be that of a child process, nor
does an untrusted certificate, because the target has answered.
"""

from __future__ import annotations

import errno

TYPE_CHECKING = False  # compiles import this module, so it does without typing and socket
if TYPE_CHECKING:
    from typing import Optional

_ERRNO = {
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.ECONNABORTED,
    errno.EHOSTUNREACH,
    errno.EHOSTDOWN,
    errno.ENETUNREACH,
    errno.ENETDOWN,
    errno.ETIMEDOUT,
}

_NAMED = {
    "socket.timeout",  # a TimeoutError from Python 3.10 on
    "socket.gaierror",
    "socket.herror",
    "requests.exceptions.ConnectionError",
    "requests.exceptions.Timeout",
    "urllib3.exceptions.NewConnectionError",
    "urllib3.exceptions.ConnectTimeoutError",
    "urllib3.exceptions.ReadTimeoutError",
    "httpx.ConnectError",
    "httpx.TimeoutException",
    "httpcore.ConnectError",
    "aiohttp.client_exceptions.ClientConnectionError",
    "tornado.simple_httpclient.HTTPTimeoutError",
    "paramiko.ssh_exception.NoValidConnectionsError",
    "mitogen.core.StreamError",
    "mitogen.core.ChannelError",
    "mitogen.core.TimeoutError",
    "asyncssh.misc.ConnectionLost",
}

_REACHED = {
    "requests.exceptions.SSLError",
    "aiohttp.client_exceptions.ClientSSLError",
    "ssl.SSLCertVerificationError",
}


class NotAnswered(ConnectionRefusedError):
    """A call to the server that handlers cannot make. No target was involved."""


_DEEPEST = 10  # how many exceptions of a chain are examined


def unreachable(exc: Optional[BaseException]) -> str:
    """The text of the exception that says what could not be reached, or an empty string."""
    for _ in range(_DEEPEST):
        if exc is None:
            return ""
        if _one(exc):
            return f"{type(exc).__name__}: {exc}"
        reason = getattr(exc, "reason", None)  # of urllib and urllib3
        exc = exc.__cause__ or (reason if isinstance(reason, BaseException) else None)
    return ""


def _one(exc: BaseException) -> bool:
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(exc).__mro__}
    if names & _REACHED or isinstance(exc, (BrokenPipeError, NotAnswered)):
        return False
    if isinstance(exc, (ConnectionError, TimeoutError)) or names & _NAMED:
        return True
    return isinstance(exc, OSError) and exc.errno in _ERRNO
