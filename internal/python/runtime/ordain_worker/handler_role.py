"""The handler role: runs handlers on resources, each agent in a thread of its own.

An agent that may do several things at once has a thread for each lane, each with its own cache and connections.

    load {"modules", "secrets"} imports handler code; secrets are the names of variables whose values are masked
    run  {"action", "id", …}    deploys, dry-runs or gets the facts of a resource
         ─ notices back: log {level, msg, kwargs, timestamp}
         ─ requests back: file, stat_file, put_file, call {name, positional, named}
    retract {"requests"}        takes back runs with ``behind`` that have not begun
    leave {"agent"}             releases what an agent holds here

Log lines are sent at once, so that they survive the end of the process. The values of references never leave it:
see Masks in tasks.py.
"""

import gc
import importlib
import importlib.util
import logging
import os
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Iterable
from typing import Any, Optional

from inmanta import const
from inmanta.agent.executor import AgentInstance
from inmanta.agent.handler import Commander, HandlerAPI, SkipResource, SkipResourceForDependencies
from inmanta.protocol import endpoints
from inmanta.resources import Id, Resource
from inmanta.resources import resource as registry
from ordain_worker import calls, lastwill, limits
from ordain_worker.frames import Channel, Failure
from ordain_worker.reach import unreachable
from ordain_worker.relay import Seat
from ordain_worker.switchboard import Conversation, Switchboard
from ordain_worker.tasks import Masks, Task, capture_output
from ordain_worker.tidy import Tidy

CLEAN_INTERVAL = 15.0
AGENT_IDLE = 900.0  # seconds without a task after which an agent's thread and cache are released in any case


class HandlerRole:
    """The state of the process: the loaded modules, and the agents."""

    def __init__(self, tidy: Tidy) -> None:
        self._lock = threading.Lock()
        self._tidy = tidy
        self._running: set[Task] = set()
        self._agents: dict[tuple[str, int], Placed] = {}  # by name and lane
        self._masks = Masks()  # of secret variables of the environment
        self._failed: dict[str, str] = {}  # by module, why its import failed

    def answer(self, talk: Conversation, op: str, args: Any) -> Any:
        if op == "run":
            return self.run(talk, args)
        if op == "load":
            return self.load(args["modules"], args.get("secrets") or ())
        if op == "leave":
            return self.leave(args["agent"])
        raise Failure(f"the handler role has no operation {op!r}", kind="protocol")

    def load(self, modules: list[str], secrets: Iterable[str] = ()) -> dict[str, Any]:
        """Import modules. If one fails, the others work all the same.

        :param modules: names of modules; ``package.*`` stands for an installed package with all that is inside.
        """
        for name in secrets:
            self._masks.learn(os.environ[name])
        importlib.invalidate_caches()
        failed = {}
        for name in sorted(modules):
            if name.endswith(".*"):
                try:
                    modules = [*modules, *_inside(name[:-2])]
                except BaseException as exc:
                    failed[name] = Failure.of(exc).as_dict()
                    self._failed[name[:-2]] = f"{type(exc).__name__}: {exc}"
        for name in sorted({each for each in modules if not each.endswith(".*")}):
            try:
                importlib.import_module(name)
                self._failed.pop(name, None)
            except BaseException as exc:  # including SystemExit: a module may do anything
                failed[name] = Failure.of(exc).as_dict()
                self._failed[name] = f"{type(exc).__name__}: {exc}"
        gc.freeze()  # what was imported stays, so collections need not look at it
        return {"failed": failed}

    def agent(self, name: str, lane: int, environment: str) -> "Placed":
        seat = (name, lane)
        with self._lock:
            placed = self._agents.get(seat)
            if placed is None:
                limits.allow_threads(len(self._agents) + 1)
                placed = self._agents[seat] = Placed(AgentInstance(name, uuid.UUID(environment)))
            placed.agent.claim()
            return placed

    def clean(self) -> None:
        """Drop stale entries of the caches, and agents that were not used for long."""
        now = time.monotonic()
        with self._lock:
            gone = [
                seat for seat, it in self._agents.items() if now - it.agent.last_used > AGENT_IDLE and it.agent.idle
            ]
            closing = [self._agents.pop(seat) for seat in gone]
            for placed in self._agents.values():
                placed.agent.tend()
        for placed in closing:
            placed.agent.close()

    def close(self) -> None:
        with self._lock:
            agents = list(self._agents.values())
        for placed in agents:
            placed.agent.close()

    def leave(self, name: str) -> bool:
        """Release what an agent holds here, unless it is working again."""
        with self._lock:
            seats = [seat for seat in self._agents if seat[0] == name]
            if not seats or not all(self._agents[seat].agent.idle for seat in seats):
                return False
            leaving = [self._agents.pop(seat) for seat in seats]
        for placed in leaving:
            placed.agent.close()
        return True

    # One task.

    def place(self, op: str, args: Any) -> Optional[Seat]:
        """The seat of a task: the thread of its agent and lane, in which tasks wait for each other."""
        if op != "run":
            return None
        placed = self.agent(args["agent"], args.get("lane", 0), args["environment"])
        try:
            if not placed.thread.begun:
                placed.thread.begin()
        except RuntimeError:  # no further thread can be started
            self.done(placed)
            raise
        return placed

    def done(self, placed: "Placed") -> None:
        with self._lock:
            placed.agent.release()

    def run(self, talk: Conversation, args: dict[str, Any]) -> Any:
        """Do a task, in the thread of its agent."""
        agent = self._agents[args["agent"], args.get("lane", 0)].agent  # it exists, because place has claimed it
        task = agent.task = Task(talk, args, self._masks)
        self._running.add(task)
        try:
            with task, agent.cache:
                lastwill.run(talk, agent, self._steps, task, agent, args)
        finally:
            agent.task = None
            self._running.discard(task)
        notes, why = self._tidy.check(not self._running, len(self._agents))
        for note in notes:
            task.ctx.warning("After this or a task at the same time %(note)s", note=note)
        result = None if why else task.short_result()
        if result is None:
            result = task.result()
            if "unreachable" in result:
                talk.give_back_own()  # they would not reach the target either, so the server decides about them
        if why:
            task.ctx.warning("The executor is replaced before its next task: %(why)s", why=why)
            result["retire"] = why
            talk.give_back()
        task.end()
        return result

    def _steps(self, task: Task, agent: AgentInstance, args: dict[str, Any]) -> None:
        ctx = task.ctx
        try:
            resource = self._resource(task, args)
            if resource is not None:
                handler = self._handler(task, agent, resource)
                if handler is not None:
                    try:
                        self._work(task, handler, resource, args)
                    finally:
                        handler.close()
        except BaseException as exc:  # including SystemExit, which must end the task and not the process
            if isinstance(exc, MemoryError):
                traceback.clear_frames(exc.__traceback__)  # the memory that they hold is needed to report it
            ctx.set_resource_state(const.HandlerResourceState.failed)
            if lost := unreachable(exc):
                ctx.set("_unreachable", lost)
                ctx.set_resource_state(const.HandlerResourceState.unavailable)
            ctx.error(
                "The handler of %(resource)s raised %(exception)s",
                resource=args["id"],
                exception=f"{type(exc).__name__}: {exc}",
                traceback=traceback.format_exc(),
            )
        finally:
            task.settle()

    def _resource(self, task: Task, args: dict[str, Any]) -> Optional[Resource]:
        """The resource with its references resolved, or None if it cannot be made."""
        name = Id.parse_id(args["id"])
        kind, attributes = name.entity_type, args["attributes"]
        attributes["id"], attributes["requires"] = args["id"], args.get("requires") or ()
        try:
            if kind not in registry._resources:
                raise LookupError(f"no code for resources of type {kind} was loaded{self._why(kind)}")
            resource = Resource.of_json(name, attributes)
        except Exception as exc:
            task.has_no_resource()
            task.ctx.set_resource_state(const.HandlerResourceState.unavailable)
            task.ctx.error(
                "%(resource)s cannot be handled: %(cause)s",
                resource=args["id"],
                cause=str(exc),
                traceback=traceback.format_exc(),
            )
            return None
        task.belongs_to(resource)
        try:
            task.resolve()
        except SkipResource as skip:
            state = const.HandlerResourceState
            waits = isinstance(skip, SkipResourceForDependencies)
            task.ctx.set_resource_state(state.skipped_for_dependency if waits else state.skipped)
            task.ctx.warning("%(resource)s is skipped: %(reason)s", resource=args["id"], reason=str(skip))
            return None
        except Exception as exc:
            task.ctx.set_resource_state(const.HandlerResourceState.failed)
            task.ctx.error(
                "A reference of %(resource)s could not be resolved: %(exception)s",
                resource=args["id"],
                exception=f"{type(exc).__name__}: {exc}",
                traceback=traceback.format_exc(),
            )
            return None
        return resource

    def _why(self, kind: str) -> str:
        """Why the import of the type's module failed or, if it did not, that of any module. Each message once."""
        own = "inmanta_plugins." + kind.partition("::")[0]
        said = {name: text for name, text in self._failed.items() if name == own or name.startswith(own + ".")}
        first = {text: name for name, text in reversed(list((said or self._failed).items()))}
        return "".join(f": {name}: {text}" for text, name in reversed(list(first.items())[-3:]))

    def _handler(self, task: Task, agent: AgentInstance, resource: Resource) -> Optional[HandlerAPI[Any]]:
        try:
            handler = Commander.get_provider(agent, resource)
            handler.set_cache(agent.cache)
            return handler
        except Exception as exc:
            task.ctx.set_resource_state(const.HandlerResourceState.unavailable)
            task.ctx.error(
                "There is no handler for %(resource)s: %(cause)s",
                resource=resource.id.resource_version_str(),
                cause=str(exc),
                traceback=traceback.format_exc(),
            )
            return None

    def _work(self, task: Task, handler: HandlerAPI[Any], resource: Resource, args: dict[str, Any]) -> None:
        ctx = task.ctx
        if args["action"] == "deploy":
            ctx.set("_dependency_changed", bool(args.get("dependency_changed")))
            dependencies = args.get("dependencies")
            handler.deploy(ctx, resource, _states(dependencies) if dependencies else {})
        elif args["action"] == "dryrun":
            handler.execute(ctx, resource, dry_run=True)
        else:
            for name, value in handler.check_facts(ctx, resource).items():
                ctx.set_fact(name, value)
            ctx.set_resource_state(const.HandlerResourceState.deployed)


class Placed(Seat):
    """A lane of an agent, and its thread."""

    def __init__(self, agent: AgentInstance) -> None:
        super().__init__(agent.thread)
        self.agent = agent


def _inside(package: str) -> list[str]:
    """An installed package and the modules inside, without importing any."""
    found = importlib.util.find_spec(package)
    if found is None:
        raise ModuleNotFoundError(f"no package that is installed has {package}")
    names, waiting = [package], [(package, list(found.submodule_search_locations or ()))]
    while waiting:
        name, folders = waiting.pop()
        for folder in folders:
            for entry in sorted(os.scandir(folder), key=lambda each: each.name):
                stem, ending = os.path.splitext(entry.name)
                if entry.is_dir() and entry.name.isidentifier() and entry.name != "__pycache__":
                    if any(os.path.isfile(os.path.join(entry.path, "__init__" + end)) for end in (".py", ".pyc")):
                        names.append(f"{name}.{entry.name}")
                        waiting.append((names[-1], [entry.path]))
                elif ending in (".py", ".pyc") and stem.isidentifier() and stem != "__init__":
                    names.append(f"{name}.{stem}")
    return names


def _states(dependencies: dict[str, str]) -> dict[str, const.HandlerResourceState]:
    """The states of dependencies. Handlers know fewer states than the server."""
    states = {}
    for name, status in dependencies.items():
        try:
            states[name] = const.HandlerResourceState(status)
        except ValueError:
            states[name] = const.HandlerResourceState.skipped
    return states


def main(channel: Channel) -> None:
    logging.basicConfig(
        stream=sys.__stderr__, level=logging.INFO, format="%(asctime)s %(levelname)-8s %(name)s %(message)s"
    )
    capture_output()
    endpoints.answer_with(calls.answer, waits=True)
    limits.no_core_files()
    lastwill.watch()
    role = HandlerRole(Tidy(*channel.descriptors))

    def tend() -> None:
        pause = threading.Event()
        while not pause.wait(CLEAN_INTERVAL):
            role.clean()

    threading.Thread(target=tend, name="ordain-clean", daemon=True).start()
    Switchboard(channel, role.answer, at_end=role.close, place=role.place, done=role.done).serve()
