"""The context with which a handler reports log lines, changes, facts and its state."""

import json
import logging
import traceback
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from math import isfinite
from operator import attrgetter
from typing import Any, Optional, Union

from inmanta import const
from inmanta.data.model import AttributeStateChange
from inmanta.util import internal_json_encoder

LOGGER = logging.getLogger("inmanta.agent.handler")


class InvalidOperation(Exception):
    """A handler reported something impossible."""


class LoggerABC(ABC):
    """A logger, for messages with named values.

    The methods critical, error, warning, info and debug log a line of that level, and exception a line of level error
    with a traceback. They are made below from a table.
    """

    critical: Callable[..., None]
    error: Callable[..., None]
    warning: Callable[..., None]
    info: Callable[..., None]
    debug: Callable[..., None]
    exception: Callable[..., None]

    @abstractmethod
    def _log_msg(self, level: int, msg: str, *args: object, exc_info: bool = False, **kwargs: object) -> None:
        """Log a line. exc_info adds the traceback of the current exception."""


def _logs_at(level: int, name: str, traced: bool) -> Callable[..., None]:
    def log(self: LoggerABC, msg: str, *args: object, exc_info: bool = traced, **kwargs: object) -> None:
        self._log_msg(level, msg, *args, exc_info=exc_info, **kwargs)

    log.__name__ = name
    log.__qualname__ = f"LoggerABC.{name}"
    return log


for _name in ("critical", "error", "warning", "info", "debug"):
    setattr(LoggerABC, _name, _logs_at(getattr(logging, _name.upper()), _name, traced=False))
LoggerABC.exception = _logs_at(logging.ERROR, "exception", traced=True)  # type: ignore[method-assign]


class PythonLogger(LoggerABC):
    """A logger that writes to one of Python's loggers."""

    def __init__(self, logger: logging.Logger) -> None:
        self.logger = logger

    def _log_msg(self, level: int, msg: str, *args: object, exc_info: bool = False, **kwargs: object) -> None:
        self.logger.log(level, "%s", filled(msg, args, kwargs), exc_info=exc_info)


def filled(msg: str, args: tuple[object, ...], kwargs: Mapping[str, object]) -> str:
    """The message with its values filled in, or unchanged if they do not fit, because reporting must not fail."""
    try:
        return msg % (args if args else dict(kwargs))
    except Exception:
        return str(msg)


def _simpler(value: object) -> Any:
    return list(value) if isinstance(value, (set, frozenset)) else internal_json_encoder(value)


def jsonable(value: object) -> Any:
    """The value if it has JSON, or else its text."""
    if value is None or isinstance(value, (str, bool, int)) or type(value) is float and isfinite(value):
        return value
    try:
        return json.loads(json.dumps(value, default=_simpler, allow_nan=False))
    except Exception:
        try:
            return str(value)
        except Exception as exc:
            return f"(a {type(value).__name__} that cannot be shown: {type(exc).__name__})"


READING = "Calling read_resource"
"""The message with which every deployment of a CRUDHandler begins."""


@dataclass
class LogLine:
    """A line of a resource's log."""

    level: const.LogLevel
    msg: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    timestamp: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    @property
    def log_level(self) -> const.LogLevel:
        return self.level

    def to_dict(self) -> dict[str, Any]:
        return {
            "level": self.level._name_,
            "msg": self.msg,
            "kwargs": self.kwargs,
            "timestamp": self.timestamp.isoformat(timespec="microseconds"),
        }


_AS_STATUS = {
    state: const.ResourceState(state.value)
    for state in const.HandlerResourceState
    if hasattr(const.ResourceState, state.value)
}
_AS_STATUS[const.HandlerResourceState.skipped_for_dependency] = const.ResourceState.skipped
_LEVELS = sorted(const.INTEGER_AS_LOG_LEVEL.items(), reverse=True)


@lru_cache(maxsize=64)
def _level(number: int) -> const.LogLevel:
    return next((level for least, level in _LEVELS if number >= least), const.LogLevel.TRACE)


class HandlerContext(LoggerABC):
    """A run of a handler on a resource.

    :param sink: called with every log line. Without one the lines are kept.
    :param reading: called instead of logging READING.
    """

    _status: Optional[const.ResourceState] = None
    _resource_state: Optional[const.HandlerResourceState] = None
    _change = const.Change.nochange

    def __init__(
        self,
        resource: Any,
        dry_run: bool = False,
        action_id: Union[uuid.UUID, str, None] = None,
        logger: Optional[logging.Logger] = None,
        *,
        sink: Optional[Callable[[LogLine], None]] = None,
        reading: Optional[Callable[[], None]] = None,
    ) -> None:
        self._resource = resource
        self._dry_run = dry_run
        self._action_id: Union[uuid.UUID, str, None] = action_id
        self.logger = logger or LOGGER
        self._sink = sink
        self._reading = reading
        self._kept: dict[str, Any] = {}
        self._changes: dict[str, AttributeStateChange] = {}
        self._facts: list[dict[str, Any]] = []
        self._logs: list[LogLine] = []

    # For reading.

    @property
    def action_id(self) -> uuid.UUID:
        known = self._action_id
        if not isinstance(known, uuid.UUID):  # made when it is needed, which is rare
            known = self._action_id = uuid.UUID(known) if known else uuid.uuid4()
        return known

    status = property(attrgetter("_status"))
    resource_state = property(attrgetter("_resource_state"))
    change = property(attrgetter("_change"))
    changes = property(attrgetter("_changes"))
    facts = property(attrgetter("_facts"))
    logs = property(attrgetter("_logs"))

    def is_dry_run(self) -> bool:
        return self._dry_run

    @property
    def changed(self) -> bool:
        return self._change is not const.Change.nochange

    # The state.

    def set_resource_state(self, new_state: const.HandlerResourceState) -> None:
        """Set the state of the resource. Differences must be added before the state non_compliant."""
        if new_state is const.HandlerResourceState.non_compliant and not self._changes:
            raise InvalidOperation(
                "A resource is not compliant only with differences: report them with add_change first."
            )
        self._status = _AS_STATUS[new_state]
        self._resource_state = new_state

    def set_status(self, status: const.ResourceState) -> None:
        """The older form of set_resource_state."""
        reportable = status in [state.value for state in const.HandlerResourceState]
        self._resource_state = const.HandlerResourceState(status if reportable else "failed")
        self._status = status
        if not reportable:
            self.warning("A handler cannot report the status %(status)s; it counts as failed", status=str(status))

    # Changes.

    def _set_change(self, change: const.Change) -> None:
        if self._change is not const.Change.nochange:
            raise InvalidOperation(
                f"This resource was reported as {self._change.value}; it cannot be {change.value} too."
            )
        self._change = change

    def set_created(self) -> None:
        self._set_change(const.Change.created)

    def set_purged(self) -> None:
        self._set_change(const.Change.purged)

    def set_updated(self) -> None:
        self._set_change(const.Change.updated)

    def add_change(self, name: str, desired: object, current: object = None) -> None:
        self._changes[name] = AttributeStateChange(current=jsonable(current), desired=jsonable(desired))

    def add_changes(self, **kwargs: object) -> None:
        for name, desired in kwargs.items():
            self.add_change(name, desired)

    def fields_updated(self, fields: str) -> None:
        for name in [fields] if isinstance(fields, str) else fields:
            if name not in self._changes:
                self.add_change(name, None)

    def update_changes(
        self, changes: Mapping[str, Union[AttributeStateChange, Mapping[str, Any], tuple[Any, Any]]]
    ) -> None:
        """Add changes as {"current":…, "desired":…}, as (current, desired), or as AttributeStateChange."""
        for name, change in changes.items():
            if isinstance(change, tuple):
                if len(change) != 2:
                    raise InvalidOperation(f"The change of {name} must be (current, desired), not {change!r}.")
                self.add_change(name, desired=change[1], current=change[0])
            elif isinstance(change, Mapping):
                self.add_change(name, desired=change.get("desired"), current=change.get("current"))
            else:
                self.add_change(name, desired=change.desired, current=change.current)

    # Facts.

    def set_fact(self, fact_id: str, value: str, expires: bool = True) -> None:
        self._facts.append(
            {
                "id": fact_id,
                "source": const.ParameterSource.fact.value,
                "value": value,
                "resource_id": self._resource.id.resource_str(),
                "expires": expires,
            }
        )

    # Values that one method of a handler keeps for the next.

    def get(self, name: str) -> Any:
        return self._kept[name]

    def contains(self, key: str) -> bool:
        return key in self._kept

    def set(self, name: str, value: Any) -> None:
        self._kept[name] = value

    # Log lines.

    def _log_msg(self, level: int, msg: str, *args: object, exc_info: bool = False, **kwargs: object) -> None:
        told = {name: jsonable(value) for name, value in kwargs.items()} if kwargs else {}
        if exc_info and "traceback" not in told:
            told["traceback"] = traceback.format_exc()
        line = LogLine(_level(level), filled(msg, args, told), told)
        if self._sink is None:
            self._logs.append(line)
        else:
            self._sink(line)
