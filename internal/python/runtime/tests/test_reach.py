"""What counts as a target that could not be reached, and what does not."""

import socket
import unittest
import urllib.error

from inmanta import const
from inmanta.agent import handler
from ordain_worker.reach import NotAnswered, unreachable
from test_handler import Recording, res


def raised_from(cause):
    try:
        raise RuntimeError("cannot work") from cause
    except RuntimeError as exc:
        return exc


def beside(cause):
    """An exception that was raised while another one was handled, not from it."""
    try:
        try:
            raise cause
        except type(cause):
            raise ValueError("something else")
    except ValueError as exc:
        return exc


def named(module, *names):
    """An exception of a library that is not here: a class for each name, the last of them raised."""
    kind = Exception
    for name in names:
        kind = type(name, (kind,), {"__module__": module, "__qualname__": name})
    return kind("no route")


class ReachTest(unittest.TestCase):
    def test_what_counts(self):
        for exc in (
            ConnectionRefusedError(111, "refused"),
            ConnectionResetError("reset"),
            TimeoutError("too slow"),
            socket.timeout("too slow"),
            socket.gaierror(-2, "unknown name"),
            OSError(113, "no route to host"),
            urllib.error.URLError(ConnectionRefusedError(111, "refused")),
            raised_from(raised_from(TimeoutError())),
            named("requests.exceptions", "ConnectionError", "ConnectTimeout"),
            named("mitogen.core", "StreamError", "EofError"),
        ):
            self.assertTrue(unreachable(exc), repr(exc))

    def test_what_does_not(self):
        circle = RuntimeError("circle")
        circle.__cause__ = circle
        for exc in (
            None,
            ValueError("connection refused"),
            FileNotFoundError(2, "no such file"),
            PermissionError(13, "no"),
            BrokenPipeError(32, "a child went away"),
            NotAnswered("modules cannot call the server from here"),
            urllib.error.URLError("unknown url type"),
            beside(ConnectionRefusedError(111, "refused")),
            named("requests.exceptions", "ConnectionError", "SSLError"),
            named("elsewhere", "ConnectionError"),
            circle,
        ):
            self.assertEqual(unreachable(exc), "", repr(exc))

    def test_the_state_of_the_resource(self):
        class Away(Recording):
            def read_resource(self, ctx, resource):
                raise ConnectionRefusedError(111, "refused")

        wanted = res()
        ctx = handler.HandlerContext(wanted)
        Away(None).execute(ctx, wanted)
        self.assertIs(ctx.resource_state, const.HandlerResourceState.unavailable)
        self.assertIn("could not be reached", ctx.logs[-1].msg)
        self.assertIn("refused", ctx.get("_unreachable"))
