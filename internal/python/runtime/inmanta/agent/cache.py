"""Values that the handlers of an agent keep between resources.

A value expires when it was not used for a while, or some time after it was made.
It is removed only between two resources, never while a handler may use it.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, Optional

from inmanta._fallback import lacking

IDLE = 60.0
"""Default seconds after its last use when a value expires."""

LONG = 5000.0
"""Default seconds when a value expires that is meant to outlast versions."""


class CacheItem:
    """A value and its expiry."""

    def __init__(
        self, key: str, value: Any, idle: float, age: float, on_delete: Optional[Callable[[Any], None]]
    ) -> None:
        now = time.monotonic()
        self.key = key
        self.value = value
        self._idle = idle
        self._on_delete = on_delete
        self._idle_end = now + idle if idle > 0 else None
        self._end = now + age if age > 0 else None

    def touch(self) -> None:
        if self._idle_end is not None:
            self._idle_end = time.monotonic() + self._idle

    def stale(self, now: float) -> bool:
        return any(end is not None and end <= now for end in (self._idle_end, self._end))

    def delete(self) -> None:
        if self._on_delete is not None:
            try:
                self._on_delete(self.value)
            except Exception:
                import logging

                logging.getLogger(__name__).warning("clean-up of the cached value %s failed", self.key, exc_info=True)


class AgentCache:
    """The values of one agent."""

    def __init__(self, agent_instance: Any = None) -> None:
        self._agent = agent_instance
        self._items: dict[str, CacheItem] = {}
        self._making: dict[str, threading.Lock] = {}
        self._lock = threading.RLock()

    def __enter__(self) -> "AgentCache":
        if self._items:
            self.clean_stale_entries()
        return self

    def __exit__(self, *exc: object) -> None:
        if not self._items:
            return
        with self._lock:
            for item in self._items.values():
                item.touch()

    def find(self, key: str, resource: Any = None) -> Any:
        """Return the value, or raise KeyError."""
        with self._lock:
            item = self._items[_full(key, resource)]
            item.touch()
            return item.value

    def cache_value(
        self,
        key: str,
        value: Any,
        evict_after_last_access: float = IDLE,
        evict_after_creation: float = 0,
        resource: Any = None,
        call_on_delete: Optional[Callable[[Any], None]] = None,
    ) -> None:
        full = _full(key, resource)
        with self._lock:
            old = self._items.get(full)
            self._items[full] = CacheItem(full, value, evict_after_last_access, evict_after_creation, call_on_delete)
        if old is not None:
            old.delete()

    def get_or_else(
        self,
        key: str,
        function: Callable[..., Any],
        for_version: Optional[bool] = None,
        timeout: Optional[int] = None,
        evict_after_last_access: float = 0.0,
        evict_after_creation: float = 0.0,
        ignore: Any = frozenset(),
        cache_none: bool = True,
        call_on_delete: Optional[Callable[[Any], None]] = None,
        **kwargs: Any,
    ) -> Any:
        """Return the value for key and arguments. function(**kwargs) makes it if there is none."""
        idle, age = lifetime(for_version, timeout, evict_after_last_access, evict_after_creation)
        return self.keep(key, function, kwargs, ignore, cache_none, call_on_delete, idle, age)

    def keep(
        self,
        key: str,
        function: Callable[..., Any],
        arguments: dict[str, Any],
        ignore: Any,
        cache_none: bool,
        call_on_delete: Optional[Callable[[Any], None]],
        idle: float,
        age: float,
    ) -> Any:
        """Like get_or_else, for arguments of any name. Only one of several threads makes the value."""
        told = {name: value for name, value in arguments.items() if name not in ignore}
        resource = told.pop("resource", None)
        full = _full(",".join([key, *(f"{name}={told[name]!r}" for name in sorted(told))]), resource)
        with self._lock:
            making = self._making.setdefault(full, threading.Lock())
        with making:
            try:
                return self.find(full)
            except KeyError:
                pass
            value = function(**arguments)
            if value is not None or cache_none:
                self.cache_value(full, value, idle, age, call_on_delete=call_on_delete)
            return value

    def clean_stale_entries(self) -> None:
        if not self._items:
            return
        now = time.monotonic()
        with self._lock:
            gone = [item for item in self._items.values() if item.stale(now)]
            for item in gone:
                del self._items[item.key]
                self._making.pop(item.key, None)
        for item in gone:
            item.delete()

    def close(self) -> None:
        """Remove everything."""
        with self._lock:
            gone = list(self._items.values())
            self._items.clear()
            self._making.clear()
        for item in gone:
            item.delete()


def lifetime(
    for_version: Optional[bool], timeout: Optional[int], after_last_access: float, after_creation: float
) -> tuple[float, float]:
    """After how many seconds without use, and after how many in any case, a value expires."""
    age = after_creation or float(timeout or 0)
    if for_version is False and not age:
        return 0.0, LONG
    if not age and not after_last_access:
        return IDLE, 0.0
    return after_last_access, age


def _full(key: str, resource: Any) -> str:
    return key if resource is None else f"{key}__{resource.id.resource_str()}"


__getattr__ = lacking(__name__)
