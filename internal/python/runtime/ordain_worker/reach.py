"""Whether an exception says that the target of a handler could not be reached.

A resource whose handler could not reach its target did not fail: nothing is
known of it. It ends as ``unavailable``, and many of them in a row keep the
server from trying every other resource of that target too. What counts:

* the connection errors and timeouts of Python's own sockets, and names that do
  not resolve;
* the same of the libraries that handlers use. Whatever is not built in is known
  by name, since it is not imported here;
* an exception that was raised ``from`` one of those.

A broken pipe does not count (it may be that of a child process), nor does a
certificate that is not trusted (the target answered).
"""

from __future__ import annotations

import errno

TYPE_CHECKING = False  # compiles import this: it has to do without typing, and without socket
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
    """A call to the server that handlers cannot make: no target was even tried."""


_DEEPEST = 10  # exceptions that were raised from one another


def unreachable(exc: Optional[BaseException]) -> str:
    """What could not be reached, in the words of the exception; empty when it is something else."""
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
