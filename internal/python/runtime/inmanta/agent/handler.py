"""Handlers: adaptors that read and enforce a resource type.

pre ─▶ read_resource ─▶ calculate_diff ─▶ create_, update_ or delete_resource ─▶ post
                             │
                             └── a dry run, or a resource that only reports, ends here
"""

import functools
import inspect
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, Optional, TypeVar

from inmanta import _lazy, const, resources
from inmanta._fallback import lacking
from inmanta.agent.cache import AgentCache, lifetime
from inmanta.agent.context import READING, HandlerContext, InvalidOperation, LoggerABC, PythonLogger
from inmanta.stable_api import stable_api
from ordain_worker.reach import unreachable

__all__ = [
    "CRUDHandler",
    "CRUDHandlerGeneric",
    "Commander",
    "DiscoveryHandler",
    "HandlerAPI",
    "HandlerContext",
    "HandlerNotAvailableException",
    "InvalidOperation",
    "LoggerABC",
    "PythonLogger",
    "ResourceHandler",
    "ResourcePurged",
    "SkipResource",
    "SkipResourceForDependencies",
    "cache",
    "provider",
]

LOGGER = logging.getLogger(__name__)

T = TypeVar("T")
T_FUNC = TypeVar("T_FUNC", bound=Callable[..., Any])
TResource = TypeVar("TResource", bound=resources.Resource)
TPurgeableResource = TypeVar("TPurgeableResource", bound=resources.PurgeableResource)
TDiscovery = TypeVar("TDiscovery", bound=resources.DiscoveryResource)
TDiscovered = TypeVar("TDiscovered")


@stable_api
class SkipResource(Exception):
    """Raised to skip the resource, which is tried again later."""


@stable_api
class SkipResourceForDependencies(SkipResource):
    """Raised to skip the resource until its dependencies are deployed."""


@stable_api
class ResourcePurged(Exception):
    """Raised by read_resource: the resource does not exist."""


class HandlerNotAvailableException(Exception):
    """Raised when something that the handler needs is unavailable."""


@stable_api
class provider:
    """Decorator: the class handles resources of one type."""

    def __init__(self, resource_type: str, name: Optional[str] = None) -> None:
        self._kind = resource_type

    def __call__(self, handler: Any) -> Any:
        Commander.add_provider(self._kind, handler)
        return handler


@stable_api
def cache(
    func: Optional[T_FUNC] = None,
    ignore: list[str] = [],
    timeout: Optional[int] = None,
    for_version: Optional[bool] = None,
    cache_none: bool = True,
    cacheNone: Optional[bool] = None,
    call_on_delete: Optional[Callable[[Any], None]] = None,
    evict_after_creation: float = 0.0,
    evict_after_last_access: float = 0.0,
) -> Any:
    """Decorator: the result of a method of a handler is cached, per agent and arguments.

    An argument named ``resource`` counts by its id without version, and arguments in ``ignore`` do not count.
    """
    idle, age = lifetime(for_version, timeout, evict_after_last_access, evict_after_creation)
    keep_none = cache_none if cacheNone is None else cacheNone

    def decorate(method: Any) -> Any:
        _, *names = inspect.signature(method).parameters

        def cached(self: "HandlerAPI[Any]", *args: object, **kwargs: object) -> object:
            kwargs.update(zip(names, args))
            make = functools.partial(method, self)
            return self.cache.keep(method.__name__, make, kwargs, set(ignore), keep_none, call_on_delete, idle, age)

        cached.__name__, cached.__doc__ = method.__name__, method.__doc__
        return cached

    return decorate if func is None else decorate(func)


@functools.lru_cache(maxsize=1024)
def _wants_io(handler: Any) -> bool:
    """Whether a handler takes a second argument, as older ones do, to access the machine."""
    parameter = inspect.signature(handler).parameters.get("io")
    return parameter is not None and parameter.default is inspect.Parameter.empty


class Commander:
    """Knows the handler of each resource type."""

    _handlers: dict[str, Any] = {}

    @classmethod
    def add_provider(cls, resource: str, provider: Any) -> None:
        cls._handlers[resource] = provider

    @classmethod
    def get_handlers(cls) -> dict[str, Any]:
        _lazy.whole()
        return cls._handlers

    @classmethod
    def get_providers(cls) -> Iterator[tuple[str, Any]]:
        _lazy.whole()
        yield from cls._handlers.items()

    @classmethod
    def get_provider_class(cls, resource_type: str, name: str = "") -> Any:
        _lazy.whole()
        return cls._handlers.get(resource_type)

    @classmethod
    def get_provider(cls, agent: Any, resource: Any) -> "HandlerAPI[Any]":
        kind = resource.id.entity_type
        made = cls._handlers.get(kind)
        if made is None:
            raise Exception(f"No handler is registered for resources of type {kind}")
        if _wants_io(made):
            from inmanta.agent.io.local import LocalIO

            return made(agent, LocalIO())
        return made(agent)

    @classmethod
    def reset(cls) -> None:
        cls._handlers = {}

    @classmethod
    def close(cls) -> None:
        """Does nothing. It exists for code that calls it."""


@stable_api
class HandlerAPI(ABC, Generic[TResource]):
    """Base of all handlers."""

    def __init__(self, agent: Any, io: object = None) -> None:
        self._agent = agent
        self._client: Any = None
        self.cache: AgentCache = getattr(agent, "cache", None) or AgentCache(agent)

    def set_cache(self, cache: AgentCache) -> None:
        self.cache = cache

    def close(self) -> None:
        """Called when the handler is not needed any more."""

    def pre(self, ctx: HandlerContext, resource: TResource) -> None:
        """Called before any operation."""

    def post(self, ctx: HandlerContext, resource: TResource) -> None:
        """Called after any operation, even if it failed."""

    def deploy(
        self, ctx: HandlerContext, resource: TResource, requires: Mapping[str, const.HandlerResourceState]
    ) -> None:
        """Enforce the resource if its dependencies are deployed."""
        if not requires:
            _enforce(self, ctx, resource)
            return
        good, bad = const.HandlerResourceState.deployed, _NOT_DEPLOYED
        states = {needed: const.HandlerResourceState(state) for needed, state in requires.items()}
        strange = {needed: state.value for needed, state in states.items() if state is not good and state not in bad}
        failed = sorted(needed for needed, state in states.items() if state in bad)
        if strange:
            ctx.set_resource_state(const.HandlerResourceState.skipped_for_dependency)
            ctx.warning(
                "%(resource)s is skipped: what it needs is in a state that does not fit here: %(unexpected_states)s",
                resource=resource.id.resource_version_str(),
                unexpected_states=str(strange),
            )
        elif failed:
            ctx.set_resource_state(const.HandlerResourceState.skipped_for_dependency)
            ctx.info(
                "%(resource)s is skipped: what it needs is not deployed: %(failed)s",
                resource=resource.id.resource_version_str(),
                failed=str(failed),
            )
        else:
            _enforce(self, ctx, resource)

    @abstractmethod
    def execute(self, ctx: HandlerContext, resource: TResource, dry_run: bool = False) -> None:
        """Bring the resource to its desired state, or with dry_run find the necessary changes."""
        raise NotImplementedError()

    def can_reload(self) -> bool:
        """Whether do_reload does something."""
        return False

    def do_reload(self, ctx: HandlerContext, resource: TResource) -> None:
        """Called when a dependency of this resource has changed."""

    def facts(self, ctx: HandlerContext, resource: TResource) -> dict[str, str]:
        """Return facts about the resource."""
        return {}

    def check_facts(self, ctx: HandlerContext, resource: TResource) -> dict[str, str]:
        """Return the facts, calling pre and post around it."""
        try:
            self.pre(ctx, resource)
            return self.facts(ctx, resource)
        finally:
            _after(self, ctx, resource)

    def run_sync(self, func: Callable[[], Awaitable[T]]) -> T:
        """Wait for the result of an asynchronous function."""
        from inmanta.agent import _loop

        return _loop.run_sync(func)

    def get_client(self) -> Any:
        """Return a client for the server's files, facts, parameters and records of resources in this environment."""
        if self._client is None:
            from inmanta.protocol import Client

            self._client = Client("agent")
        return self._client

    def get_file(self, hash_id: str) -> Optional[bytes]:
        """Return the content with this hash from the server, or None."""
        return self._files().get(hash_id)

    def stat_file(self, hash_id: str) -> bool:
        """Whether the server has the content with this hash."""
        return self._files().has(hash_id)

    def upload_file(self, hash_id: str, content: bytes) -> None:
        """Store a content on the server."""
        self._files().put(hash_id, content)

    def _files(self) -> Any:
        files = getattr(self._agent, "files", None)
        if files is None:
            raise HandlerNotAvailableException("The files of the server cannot be reached from here")
        return files


_NOT_DEPLOYED = {
    const.HandlerResourceState.failed,
    const.HandlerResourceState.skipped,
    const.HandlerResourceState.skipped_for_dependency,
    const.HandlerResourceState.unavailable,
    const.HandlerResourceState.non_compliant,
}


def _brief(exc: BaseException) -> str:
    return f"{type(exc).__name__}({str(exc)!r})"


@stable_api
class ResourceHandler(HandlerAPI[TResource]):
    """A handler in three steps: check_resource, list_changes, do_changes."""

    def check_resource(self, ctx: HandlerContext, resource: TResource) -> TResource:
        """Return a clone of the resource with its actual state."""
        raise NotImplementedError()

    def do_changes(self, ctx: HandlerContext, resource: TResource, changes: Mapping[str, Mapping[str, object]]) -> None:
        """Bring the actual state to the desired one."""
        raise NotImplementedError()

    def list_changes(self, ctx: HandlerContext, resource: TResource) -> dict[str, dict[str, Any]]:
        """Return the differences by field."""
        return self._diff(self.check_resource(ctx, resource), resource)

    def _diff(self, current: TResource, desired: TResource) -> dict[str, dict[str, Any]]:
        kind = type(desired)
        if getattr(kind, "_plain", False) and type(current) is kind:
            try:
                return _differences(kind.fields, current.__dict__, desired.__dict__)
            except KeyError:  # a field that was deleted
                pass
        return _differences(kind.fields, _Read(current), _Read(desired))

    def execute(self, ctx: HandlerContext, resource: TResource, dry_run: bool = False) -> None:
        _guarded(self, _list_and_do, ctx, resource, dry_run)


@stable_api
class CRUDHandler(ResourceHandler[TPurgeableResource]):
    """A handler that creates, reads, updates and deletes something."""

    def read_resource(self, ctx: HandlerContext, resource: TPurgeableResource) -> None:
        """Set the actual state on ``resource``, a clone of the desired one. Raises ResourcePurged if there is nothing."""

    def create_resource(self, ctx: HandlerContext, resource: TPurgeableResource) -> None:
        """Make the desired resource."""

    def delete_resource(self, ctx: HandlerContext, resource: TPurgeableResource) -> None:
        """Remove the resource."""

    def update_resource(
        self, ctx: HandlerContext, changes: dict[str, dict[str, Any]], resource: TPurgeableResource
    ) -> None:
        """Change the existing thing to the desired state."""

    def calculate_diff(
        self, ctx: HandlerContext, current: TPurgeableResource, desired: TPurgeableResource
    ) -> dict[str, dict[str, Any]]:
        return self._diff(current, desired)

    def execute(self, ctx: HandlerContext, resource: TPurgeableResource, dry_run: bool = False) -> None:
        _guarded(self, _read_and_mend, ctx, resource, dry_run)


CRUDHandlerGeneric = CRUDHandler  # its name while CRUDHandler had no type parameter


@stable_api
class DiscoveryHandler(HandlerAPI[TDiscovery], Generic[TDiscovery, TDiscovered]):
    """A handler that finds resources instead of enforcing one."""

    @abstractmethod
    def discover_resources(self, ctx: HandlerContext, discovery_resource: TDiscovery) -> Mapping[str, TDiscovered]:
        """Return what exists, by the id that each would have as a resource."""
        raise NotImplementedError()

    def check_facts(self, ctx: HandlerContext, resource: TDiscovery) -> dict[str, str]:
        return {}

    def execute(self, ctx: HandlerContext, resource: TDiscovery, dry_run: bool = False) -> None:
        if dry_run:
            ctx.set_resource_state(const.HandlerResourceState.dry)
            return

        _guarded(self, _discover, ctx, resource, dry_run)


# How a handler is run. These are functions, because a handler may have methods of any name.


def _enforce(handler: HandlerAPI[Any], ctx: HandlerContext, resource: Any) -> None:
    handler.execute(ctx, resource, dry_run=False)
    if handler.can_reload() and ctx.contains("_dependency_changed") and ctx.get("_dependency_changed"):
        ctx.debug("Calling do_reload")
        handler.do_reload(ctx, resource)


def _guarded(
    handler: HandlerAPI[Any], steps: Callable[..., None], ctx: HandlerContext, resource: Any, dry_run: bool
) -> None:
    """Run pre, the steps and post. An exception becomes the state of the resource."""
    state = const.HandlerResourceState
    try:
        handler.pre(ctx, resource)
        steps(handler, ctx, resource, dry_run)
    except SkipResource as skip:
        name = resource.id.resource_str()
        waits = isinstance(skip, SkipResourceForDependencies)
        ctx.set_resource_state(state.skipped_for_dependency if waits else state.skipped)
        reason = skip.args[0] if len(skip.args) == 1 else list(skip.args)
        ctx.warning("%(resource_id)s is skipped: %(reason)s", resource_id=name, reason=reason)
    except Exception as exc:
        name = resource.id.resource_str()
        if lost := unreachable(exc):
            ctx.set("_unreachable", lost)
            ctx.set_resource_state(state.unavailable)
            ctx.exception(
                "%(resource_id)s: its target could not be reached: %(exception)s",
                resource_id=name,
                exception=_brief(exc),
            )
        else:
            ctx.set_resource_state(state.failed)
            ctx.exception("%(resource_id)s failed: %(exception)s", resource_id=name, exception=_brief(exc))
    finally:
        _after(handler, ctx, resource)


def _after(handler: HandlerAPI[Any], ctx: HandlerContext, resource: Any) -> None:
    try:
        handler.post(ctx, resource)
    except Exception as exc:
        ctx.exception(
            "The clean-up after %(resource_id)s failed: %(exception)s",
            resource_id=resource.id.resource_str(),
            exception=_brief(exc),
        )


class _Read:
    """Presents attributes of an object as a dict."""

    def __init__(self, of: object) -> None:
        self._of = of

    def __getitem__(self, name: str) -> Any:
        return getattr(self._of, name)


def _differences(fields: Iterable[str], have: Any, want: Any) -> dict[str, dict[str, Any]]:
    differs = {}
    for field in fields:
        found, wanted = have[field], want[field]
        if found is not wanted and found != wanted:
            differs[field] = {"current": found, "desired": wanted}
    return differs


def _list_and_do(handler: ResourceHandler[Any], ctx: HandlerContext, resource: Any, dry_run: bool) -> None:
    differs = handler.list_changes(ctx, resource)
    if not _only_looked_at(ctx, resource, differs, dry_run):
        handler.do_changes(ctx, resource, differs)
        ctx.set_resource_state(const.HandlerResourceState.deployed)


def _read_and_mend(handler: CRUDHandler[Any], ctx: HandlerContext, resource: Any, dry_run: bool) -> None:
    # The clone counts as existing until read_resource changes it, because many handlers do not set purged.
    current = resource.clone(purged=False)
    try:
        reading = getattr(ctx, "_reading", None)
        if reading is not None:
            reading()
        else:
            ctx.debug(READING)
        handler.read_resource(ctx, current)
        differs = handler.calculate_diff(ctx, current, resource)
    except ResourcePurged:
        differs = {} if resource.purged else {"purged": {"current": True, "desired": resource.purged}}
    if _only_looked_at(ctx, resource, differs, dry_run):
        return
    if "purged" in differs:
        if differs["purged"]["desired"]:
            ctx.debug("Calling delete_resource")
            handler.delete_resource(ctx, resource)
        else:
            ctx.debug("Calling create_resource")
            handler.create_resource(ctx, resource)
    elif differs and not resource.purged:
        ctx.debug("Calling update_resource", changes=differs)
        handler.update_resource(ctx, dict(differs), resource)
    ctx.set_resource_state(const.HandlerResourceState.deployed)


def _discover(handler: DiscoveryHandler[Any, Any], ctx: HandlerContext, resource: Any, dry_run: bool) -> None:
    found = handler.discover_resources(ctx, resource)
    ctx.set("_discovered", {str(name): _record(values) for name, values in found.items()})
    ctx.set_resource_state(const.HandlerResourceState.deployed)


def _only_looked_at(ctx: HandlerContext, resource: Any, differs: Mapping[str, Any], dry_run: bool) -> bool:
    """Report the differences. Returns True, with the state set, if nothing else is to be done."""
    if differs:
        ctx.update_changes(differs)
    state = const.HandlerResourceState
    if not resource.report_only:
        if dry_run:
            ctx.set_resource_state(state.dry)
        return dry_run
    ctx.set_resource_state(state.non_compliant if differs else state.deployed)
    if differs:
        ctx.info(
            "%(resource_id)s is not as desired, and only reported",
            resource_id=resource.id.resource_str(),
            changes=dict(differs),
        )
    return True


def _record(values: Any) -> Any:
    return values.model_dump(mode="json") if hasattr(type(values), "model_dump") else values


__getattr__ = lacking(__name__)
