"""The template role: a compile worker that has imported the modules of a project and is copied for each compile.

After its preparation it waits for sets of descriptors and forks for each. The copy is a compile worker like any
other, with the state after the imports and without anything that other copies have done.

If the imports left something that cannot be copied, the template reports that and is not used: threads, open files,
or modules whose import read something that differs in every process, such as the time.
"""

from __future__ import annotations

import fcntl
import gc
import os
import select
import sys

import _signal
import _socket

from ordain_worker import loading
from ordain_worker.compile_role import CompileRole
from ordain_worker.frames import Channel, end_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

HANDOVER = 5  # descriptor of the socket that brings descriptors
DESCRIPTORS = 5  # requests, replies, standard output, standard error, the life line

# Functions of C that return something else each time.
_PASSING = frozenset(
    "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns localtime gmtime ctime now utcnow today "
    "urandom getrandom random getrandbits getpid getppid uname gethostname getlogin".split()
)
_LOOKING = frozenset("stat lstat access listdir scandir readlink".split())
_PATHS = ("genericpath.py", "posixpath.py", "pathlib.py", "_local.py", "glob.py", "os.py")


class Watch:
    """Records inputs of the imports that the key of a load does not cover."""

    def __init__(self) -> None:
        self.problems: set[str] = set()

    def __enter__(self) -> "Watch":
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def asked(self, method: str, kwargs: object) -> None:
        """Record that an import called the server, and refuse the call."""
        self.problems.add(f"the server is asked for {method} while modules are imported")

    def _called(self, frame: Any, event: str, arg: Any) -> None:
        if event != "c_call":
            return
        name = arg.__name__
        looking = name in _LOOKING
        if not looking and name not in _PASSING:
            return
        while frame is not None:
            code = frame.f_code.co_filename
            if code.startswith("<frozen importlib"):
                return  # a package that is imported, not our module
            if frame.f_globals.get("__name__", "").startswith(loading.PACKAGE + "."):
                self.problems.add(f"{frame.f_globals['__name__']} calls {name} when it is imported")
                return
            if looking and not code.endswith(_PATHS) and not code.startswith("<frozen"):
                return
            frame = frame.f_back


def _listed(folder: str) -> set[str]:
    return set(os.listdir(f"/proc/self/{folder}"))


def prepare(role: CompileRole, args: dict[str, Any]) -> dict[str, Any]:
    """Import what the compiles will use. Returns why copies would differ from new workers, if they would."""
    from inmanta.protocol import endpoints

    watch = Watch()
    try:
        before = _listed("fd")
    except OSError:
        return {"problems": ["this system does not tell about its processes"]}
    role.start({"settings": args["settings"], "known": None})
    endpoints.answer_with(watch.asked)
    with watch:
        reply = role.load(args["load"])
    from ordain_worker import exporting  # noqa: F401  what every export imports

    problems = sorted(watch.problems)
    if reply.get("error"):
        problems.append("the modules cannot be imported")
    if reply.get("output"):
        problems.append("the modules print when they are imported")
    if len(_listed("task")) > 1:
        problems.append("a thread runs")
    if _listed("fd") - before:
        problems.append("files or connections are open")
    role.prepared = args["load"]
    gc.collect()
    gc.freeze()
    return {"problems": problems}


def copy(role: CompileRole, handover: Any, received: list[int]) -> None:
    """Fork. The function returns only in the template; the copy serves its compile and ends."""
    if os.fork():
        for each in received:
            os.close(each)
        return
    try:
        _become(role, handover, received)
    except BaseException:
        import traceback

        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(1)


def _become(role: CompileRole, handover: Any, received: list[int]) -> NoReturn:
    handover.detach()
    for target, each in zip((3, 4, 1, 2, HANDOVER), received):
        os.dup2(each, target, inheritable=target < 3)
        os.close(each)
    os.setpgid(0, 0)
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    _die_with(HANDOVER)
    channel = Channel(3, 4)
    frame = channel.read()
    if frame is None:
        end_now()
    _take_on(frame["args"])  # type: ignore[index]
    role.talk.continue_on(channel)
    channel.hello("compile")
    role.talk.serve()
    raise AssertionError("serve does not return")


def _die_with(line: int) -> None:
    """Have the kernel kill this process group when the other end of the line closes, whatever is running."""
    fcntl.fcntl(line, fcntl.F_SETOWN, -os.getpgrp())
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(line, fcntl.F_SETSIG, _signal.SIGKILL)
    fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([line], [], [], 0)[0]:  # it closed before
        end_now()


def _take_on(args: dict[str, Any]) -> None:
    """Take on the folder, environment and limits of the compile."""
    os.chdir(args["dir"])  # also when it is the same: it may have been made again
    env = dict(each.partition("=")[::2] for each in args["env"])
    if dict(os.environ) != env:
        os.environ.clear()
        os.environ.update(env)
        import time

        time.tzset()
    if args.get("memory"):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (args["memory"], args["memory"]))
    sys.path_importer_cache.clear()  # of folders that may have changed
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:  # the random module sees to itself
        numpy.seed()


def main(channel: Channel) -> None:
    os.set_inheritable(HANDOVER, False)
    role = CompileRole(channel)
    frame = channel.read()
    if frame is None or frame.get("op") != "prepare":
        end_now()
        return
    channel.reply(frame["id"], prepare(role, frame["args"]))
    _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)  # nobody waits for copies
    handover = _socket.socket(fileno=HANDOVER)
    waiting = select.poll()
    waiting.register(3, select.POLLIN)
    waiting.register(HANDOVER, select.POLLIN)
    while True:
        ready = {each for each, _ in waiting.poll()}
        if 3 in ready:  # the server has closed the pipe or asks for the end
            end_now()
        if HANDOVER in ready:
            received = _receive(handover)
            if len(received) == DESCRIPTORS:
                copy(role, handover, received)
            else:
                for each in received:
                    os.close(each)


def _receive(handover: Any) -> list[int]:
    """Receive the descriptors of a message."""
    size = 4
    data, ancillary, _, _ = handover.recvmsg(1, _socket.CMSG_SPACE(DESCRIPTORS * size))
    if not data:
        end_now()
    received: list[int] = []
    for level, kind, content in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            for at in range(0, len(content) - len(content) % size, size):
                received.append(int.from_bytes(content[at : at + size], sys.byteorder))
    for each in received:
        os.set_inheritable(each, False)
    return received
