"""A task of the handler role: its log, secrets, output and files."""

import base64
import io
import json
import sys
import threading
import time
from _thread import RLock
from collections.abc import Callable
from contextvars import ContextVar, Token
from datetime import datetime, timezone
from typing import Any, Optional

from inmanta import const
from inmanta.agent.context import READING, HandlerContext, LogLine, jsonable
from inmanta.resources import Id, Resource
from ordain_worker._json import encode
from ordain_worker.frames import Failure
from ordain_worker.switchboard import Conversation, Verbatim

SECRET = "***"

MAX_LINES = 5_000  # of the log of a task
MAX_BYTES = 4 << 20
MAX_ERRORS = 100  # further lines of level ERROR or above that are sent beyond these limits
MAX_TEXT = 64 << 10  # of a text in a log line
MAX_LINE = 1 << 20  # of a line with all its values
MAX_PRINTED = 500  # printed lines of a task that become log lines
MAX_PRINTED_LINE = 4 << 10
MAX_VALUE = 256 << 10  # of a text in a change
MAX_CHANGES = 4 << 20  # of all changes
MAX_FACT = 1 << 20
MAX_DISCOVERED = 16 << 20
CHUNK = 16 << 20  # of a file in one request


class Masks:
    """Replaces secrets, such as the values of references, wherever they appear.

    A text shorter than LEAST is only masked in fields that a reference fills.
    Replacing every "1" would make the log useless.
    """

    LEAST = 4

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._ordered: list[str] = []
        self.fields: set[str] = set()

    def copied(self) -> "Masks":
        """A copy that can learn more secrets."""
        made = Masks()
        made._texts.update(self._texts)
        made._ordered = self._ordered
        made.fields.update(self.fields)
        return made

    def masks_nothing(self) -> bool:
        return not self._ordered and not self.fields

    def learn(self, value: object) -> None:
        if isinstance(value, str):
            if len(value) >= self.LEAST:
                escaped = json.dumps(value)[1:-1]
                self._texts.update((value, repr(value)[1:-1], escaped))
                self._texts.update(line for line in value.splitlines() if len(line) >= self.LEAST)
        elif isinstance(value, bytes):
            self.learn(value.decode(errors="replace"))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            self.learn(str(value))
        elif isinstance(value, dict):
            for each in value.values():
                self.learn(each)
        elif isinstance(value, (list, tuple, set)):
            for each in value:
                self.learn(each)
        elif hasattr(value, "__dict__"):
            self.learn(vars(value))
        # The longest first, because a short secret may be part of a long one.
        self._ordered = sorted(self._texts, key=len, reverse=True)

    def text(self, text: str) -> str:
        for secret in self._ordered:
            text = text.replace(secret, SECRET)
        return text

    def value(self, value: Any) -> Any:
        """A value of plain JSON without the secrets."""
        if self.masks_nothing():
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return SECRET if str(value) in self._texts else value
        if isinstance(value, dict):
            return {self.text(str(key)): self.value(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.value(each) for each in value]
        return value

    def changes(self, changes: dict[str, Any]) -> dict[str, Any]:
        return {
            name: {side: SECRET for side in ("current", "desired")} if name in self.fields else self.value(change)
            for name, change in changes.items()
        }

    def kwargs(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        if self.masks_nothing():
            return kwargs
        masked = {}
        for name, value in kwargs.items():
            if name == "changes" and isinstance(value, dict):
                masked[name] = self.changes(value)
            elif name in self.fields:
                masked[name] = SECRET
            else:
                masked[name] = self.value(value)
        return masked


NO_MASKS = Masks()


class Task:
    """What is done with a resource."""

    _held: Optional[list[LogLine]] = None  # log lines that wait until all secrets are known
    _lines = 0
    _bytes = 0
    _errors = 0
    _left_out = 0
    _over = False  # the task cannot ask the server any more
    _files: Optional["Files"] = None
    _token: Token[Optional["Task"]]
    resource: Optional[Resource] = None

    def __init__(self, talk: Conversation, args: dict[str, Any], masks: Masks = NO_MASKS) -> None:
        self.talk = talk
        self._args = args
        self._masks = masks
        self._lock = RLock()
        self._output: dict[str, Lines] = {}  # printed output, by stream
        self.ctx = HandlerContext(
            None, args["action"] == "dryrun", args["action_id"], sink=self.log, reading=self._log_reading
        )

    def has_no_resource(self) -> None:
        self.ctx._resource = _Unmade(self._args["id"])

    def belongs_to(self, resource: Resource) -> None:
        self.resource = resource
        self.ctx._resource = resource

    def resolve(self) -> None:
        """Resolve the references. Log lines are held back meanwhile, because they may contain values that turn out to be
        secrets.
        """
        resource = self.resource
        assert resource is not None
        if not getattr(resource, "references", None) and not getattr(resource, "mutators", None):
            return
        self._masks = self._masks.copied()
        before = {field: repr(getattr(resource, field)) for field in type(resource).fields}
        self._held = []
        try:
            resource.resolve_all_references(self.ctx)
        finally:
            for made in resource._resolver._made.values():
                self._masks.learn(made._found)
            self._masks.fields = {
                field for field in type(resource).fields if repr(getattr(resource, field)) != before[field]
            }
            held, self._held = self._held, None
            for line in held or ():
                self.log(line)

    def log(self, line: LogLine) -> None:
        """Send a line to the server, within limits."""
        with self._lock:
            if self._held is not None:
                if len(self._held) < MAX_LINES:
                    self._held.append(line)
                else:
                    self._left_out += 1
                return
            if self._lines >= MAX_LINES or self._bytes >= MAX_BYTES:
                self._errors += line.level.to_int >= const.LogLevel.ERROR.to_int
                if line.level.to_int < const.LogLevel.ERROR.to_int or self._errors > MAX_ERRORS:
                    self._left_out += 1
                    return
            sent = line.to_dict()
            sent["msg"] = _shortened(self._masks.text(sent["msg"]))
            if sent["kwargs"]:
                sent["kwargs"] = _shortened(self._masks.kwargs(sent["kwargs"]))
            self._lines += 1
        try:
            size = self.talk.notify("log", sent, MAX_LINE)
        except Failure as large:
            size = self.talk.notify(
                "log", {**sent, "kwargs": {"left_out": f"the values of this line: {large.message}"}}
            )
        with self._lock:
            self._bytes += size

    def _log_reading(self) -> None:
        """Log the line with which every deployment begins. It may arrive late, and takes a shorter way than other lines."""
        masks = self._masks
        with self._lock:
            plain = (
                self._held is None
                and self._lines < MAX_LINES
                and self._bytes < MAX_BYTES
                and not masks._ordered
                and not masks.fields
            )
            if plain:
                self._lines += 1
        if not plain:
            self.log(LogLine(const.LogLevel.DEBUG, READING))
            return
        self._bytes += self.talk.notify_later(
            "log", f'{{"level":"DEBUG","msg":"{READING}","kwargs":{{}},"timestamp":"{_this_moment()}"}}'
        )

    def secret(self, value: Any) -> bool:
        """Whether a value contains a secret."""
        return bool(self._masks.value(value) != value)

    def settle(self) -> None:
        """Finish the work: log the rest of the output, and make sure that there is a state."""
        for lines in self._output.values():
            lines.end()
        if self.ctx.resource_state is None:
            self.ctx.set_resource_state(const.HandlerResourceState.failed)
            self.ctx.error(
                "The handler of %(resource)s did not say how it went; it counts as failed", resource=self._args["id"]
            )
        if self._left_out:
            left, self._lines, self._bytes = self._left_out, 0, 0
            self.ctx.warning("%(count)s more log lines are left out", count=left)

    def end(self) -> None:
        """Stop logging. This also breaks the reference cycle between the task and its context."""
        self.ctx._sink = _dropped
        self.ctx._reading = None

    def status(self) -> str:
        state = self.ctx._resource_state
        return state._value_ if state is not None else "failed"

    def short_result(self) -> Optional[Verbatim]:
        """The reply of a task without changes and facts, which most are, or None."""
        ctx = self.ctx
        if ctx._changes or ctx._facts or "_unreachable" in ctx._kept or "_discovered" in ctx._kept:
            return None
        return _SHORT.get((self.status(), ctx._change._value_))

    def result(self) -> dict[str, Any]:
        """The reply, without empty fields."""
        ctx = self.ctx
        reply: dict[str, Any] = {"status": self.status(), "change": ctx.change._value_}
        if ctx.contains("_unreachable") and reply["status"] == "unavailable":
            reply["unreachable"] = self._masks.text(ctx.get("_unreachable"))
        if ctx.changes:
            reply["changes"] = self._changes()
        if ctx.facts:
            reply["facts"] = self._facts()
        if ctx.contains("_discovered") and (found := ctx.get("_discovered")):
            reply["discovered"] = self._discovered(self._masks.value(jsonable(found)))
        return reply

    def _changes(self) -> dict[str, Any]:
        """The changes. Long texts are cut, and changes beyond the limit of all are left out."""
        masked = self._masks.changes(
            {str(name): {"current": c.current, "desired": c.desired} for name, c in self.ctx.changes.items()}
        )
        room, out = MAX_CHANGES, {}
        for name, change in masked.items():
            cut = {side: _shortened(value, MAX_VALUE) for side, value in change.items()}
            size = len(str(cut))
            if size > room:
                cut = {side: f"(left out: the changes are larger than {MAX_CHANGES} characters)" for side in cut}
            else:
                room -= size
            out[name] = cut
        return out

    def _facts(self) -> list[dict[str, Any]]:
        facts = []
        for fact in self.ctx.facts:
            name, value = _text(fact["id"]), self._masks.text(_text(fact["value"]))
            if len(name) + len(value) > MAX_FACT:
                self.ctx.error(
                    "The fact %(name)s is left out: it has %(size)s characters", name=name[:100], size=len(value)
                )
                continue
            facts.append({"name": name, "value": value, "expires": bool(fact["expires"])})
        return facts

    def _discovered(self, found: Any) -> dict[str, Any]:
        if not isinstance(found, dict):
            self.ctx.error("What was discovered is left out: it is a %(kind)s, not a dict", kind=type(found).__name__)
            return {}
        if len(str(found)) > MAX_DISCOVERED:
            self.ctx.error("What was discovered is left out: it has more than %(size)s characters", size=MAX_DISCOVERED)
            return {}
        return found

    def __enter__(self) -> None:
        """Attribute what this thread prints, and its calls to the server, to this task."""
        _here.task = self
        self._token = at_work.set(self)

    def __exit__(self, *exc: object) -> None:
        _here.task = None
        at_work.reset(self._token)
        self._over, self._files = True, None  # a coroutine that outlives the task may still refer to it

    @property
    def files(self) -> Optional["Files"]:
        """The files of the server, or None if the task has ended."""
        if self._files is None and not self._over:
            self._files = Files(self.talk, self.secret)
        return self._files

    def printed(self, stream: str, text: str) -> None:
        if stream not in self._output:
            self._output[stream] = Lines(self, stream)
        self._output[stream].write(text)


_SHORT = {
    (state.value, change.value): Verbatim(encode({"status": state.value, "change": change.value}))
    for state in const.HandlerResourceState
    for change in const.Change
}


def _dropped(line: LogLine) -> None:
    """Ignore a line that is logged after the end of the task."""


class _Unmade:
    """Stands for a resource that could not be made, in facts and messages that need its id."""

    def __init__(self, name: str) -> None:
        self.id = Id.parse_id(name)
        self.purged = False


_second = 0, ""  # the second of the last log line, and its text


def _this_moment() -> str:
    """The time in the format of log lines."""
    global _second
    number, rest = divmod(time.time_ns(), 1_000_000_000)
    second = _second
    if second[0] != number:
        second = _second = number, datetime.fromtimestamp(number, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{second[1]}.{rest // 1000:06d}+00:00"


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return str(value)
    except Exception as exc:
        return f"(a {type(value).__name__} that cannot be shown: {type(exc).__name__})"


def _shortened(value: Any, most: int = MAX_TEXT) -> Any:
    if isinstance(value, str):
        return value if len(value) <= most else value[:most] + f" … ({len(value) - most} characters cut)"
    if isinstance(value, dict):
        return {key: _shortened(each, most) for key, each in value.items()}
    if isinstance(value, list):
        return [_shortened(each, most) for each in value]
    return value


class Lines:
    """Turns printed output into log lines."""

    def __init__(self, task: Task, stream: str) -> None:
        self._task = task
        self._stream = stream
        self._rest = ""
        self._count = 0
        self._left_out = 0

    def write(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._log(line)
        if len(self._rest) > MAX_PRINTED_LINE:
            self._rest = self._rest[: MAX_PRINTED_LINE + 1]

    def end(self) -> None:
        if self._rest:
            self._log(self._rest)
            self._rest = ""
        if self._left_out:
            self._task.ctx.warning(
                "%(count)s more lines were printed to %(stream)s", count=self._left_out, stream=self._stream
            )
            self._left_out = 0

    def _log(self, line: str) -> None:
        line = line.rstrip("\r")
        if self._count >= MAX_PRINTED:
            self._left_out += 1
            return
        if line.strip():
            self._count += 1
            if len(line) > MAX_PRINTED_LINE:
                line = line[:MAX_PRINTED_LINE] + " … (cut)"
            self._task.ctx.info("%(printed)s", printed=line, stream=self._stream)


at_work: ContextVar[Optional[Task]] = ContextVar("ordain_at_work", default=None)
"""The task of this thread, and of the coroutines for which it waits."""


class _Here(threading.local):
    task: Optional[Task] = None


_here = _Here()


class _Output(io.TextIOBase):
    """Standard output or error. What the thread of a task prints goes to the task, the rest to the process."""

    def __init__(self, stream: str, real: Any) -> None:
        self._stream = stream
        self._real = real

    def write(self, text: str) -> int:
        task = _here.task
        if task is None:
            return self._real.write(text)
        task.printed(self._stream, text)
        return len(text)

    def flush(self) -> None:
        self._real.flush()

    def close(self) -> None:
        """Does not close, because all tasks use it."""
        self.flush()

    def fileno(self) -> int:
        return self._real.fileno()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    @property
    def buffer(self) -> Any:
        return self._real.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "backslashreplace"


def capture_output() -> None:
    """Let the output of tasks go to their logs from now on."""
    sys.stdout = _Output("stdout", sys.stdout)  # type: ignore[assignment]
    sys.stderr = _Output("stderr", sys.stderr)  # type: ignore[assignment]


class Files:
    """The file store of the server, for one task.

    :param secret: whether a text contains a secret, which may not be stored.
    """

    def __init__(self, talk: Conversation, secret: Callable[[Any], bool] = lambda value: False) -> None:
        self._talk = talk
        self._secret = secret
        self.ask = talk.ask

    def get(self, hash_id: str) -> Optional[bytes]:
        parts: list[bytes] = []
        size, got = 1, 0
        while got < size:
            try:
                answer = self._talk.ask("file", {"hash": hash_id, "offset": got, "length": CHUNK})
            except Failure as failure:
                if failure.kind == "not found":
                    return None
                raise
            part = base64.b64decode(answer["data"])
            size = answer["size"]
            if not part and got < size:
                raise Failure(f"the file {hash_id} ended after {got} of {size} bytes")
            parts.append(part)
            got += len(part)
        return b"".join(parts)

    def has(self, hash_id: str) -> bool:
        return bool(self._talk.ask("stat_file", {"hash": hash_id}))

    def put(self, hash_id: str, content: bytes) -> None:
        if isinstance(content, str):
            content = content.encode()
        if self._secret(content.decode(errors="replace")):
            raise ValueError(
                "what a reference resolved to is not stored by the server, and this content holds some of it"
            )
        stored = self._talk.ask("put_file", {"data": base64.b64encode(content).decode()})
        if stored != hash_id:
            raise ValueError(f"the content has the hash {stored}, not {hash_id}")
