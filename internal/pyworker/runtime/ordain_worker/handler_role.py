"""Role ``handler``: runs handlers on resources, many at a time, a thread per agent.

    load {"modules"}            imports handler code
    run  {"action", "id", …}    deploys, dry-runs or gets the facts of one resource
         ─ notices back: log {level, msg, kwargs, timestamp}
         ─ requests back: file, stat_file, put_file

Log lines leave at once, so that they survive the end of this process. What a
reference resolved to never leaves it: see Masks in tasks.py.
"""

import importlib
import logging
import sys
import threading
import time
import traceback
import uuid
from typing import Any, Optional

from inmanta import const
from inmanta.agent.executor import AgentInstance
from inmanta.agent.handler import Commander, HandlerAPI, SkipResource, SkipResourceForDependencies
from inmanta.protocol import endpoints
from inmanta.resources import Id, Resource
from inmanta.resources import resource as registry
from ordain_worker import calls
from ordain_worker.frames import Channel, Failure
from ordain_worker.switchboard import Conversation, Switchboard
from ordain_worker.tasks import Files, Task, capture_output

CLEAN_INTERVAL = 15.0
AGENT_IDLE = 900.0  # seconds without a task after which an agent's thread and cache are given back


class HandlerRole:
    """The state of the process: what was loaded, and the agents that it has seen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._agents: dict[str, AgentInstance] = {}
        self._failed: dict[str, str] = {}  # module to what its import said

    def answer(self, talk: Conversation, op: str, args: Any) -> Any:
        if op == "load":
            return self.load(args["modules"])
        if op == "run":
            return self.run(talk, args)
        raise Failure(f"the handler role has no operation {op!r}", kind="protocol")

    def load(self, modules: list[str]) -> dict[str, Any]:
        """Import modules; one that fails does not keep the others from working."""
        importlib.invalidate_caches()
        failed = {}
        for name in sorted(modules):
            try:
                importlib.import_module(name)
                self._failed.pop(name, None)
            except BaseException as exc:  # a module may do anything, even exit
                failed[name] = Failure.of(exc).as_dict()
                self._failed[name] = f"{type(exc).__name__}: {exc}"
        return {"failed": failed}

    def agent(self, name: str, environment: str) -> AgentInstance:
        with self._lock:
            if name not in self._agents:
                self._agents[name] = AgentInstance(name, uuid.UUID(environment))
            self._agents[name].claim()
            return self._agents[name]

    def clean(self) -> None:
        """Drop what is stale from the caches, and agents that are not used any more."""
        now = time.monotonic()
        with self._lock:
            gone = [name for name, agent in self._agents.items() if now - agent.last_used > AGENT_IDLE and agent.idle]
            closing = [self._agents.pop(name) for name in gone]
            for agent in self._agents.values():
                agent.tend()
        for agent in closing:
            agent.close()

    def close(self) -> None:
        with self._lock:
            agents = list(self._agents.values())
        for agent in agents:
            agent.close()

    # One task.

    def run(self, talk: Conversation, args: dict[str, Any]) -> dict[str, Any]:
        agent = self.agent(args["agent"], args["environment"])
        try:
            return agent.call(lambda: self._run(Task(talk, args), agent, args))
        finally:
            with self._lock:
                agent.release()

    def _run(self, task: Task, agent: AgentInstance, args: dict[str, Any]) -> dict[str, Any]:
        agent.files = Files(task.talk)
        try:
            with task.capturing(), calls.answered_by(agent.files), agent.cache:
                self._steps(task, agent, args)
        finally:
            agent.files = None
        return task.result()

    def _steps(self, task: Task, agent: AgentInstance, args: dict[str, Any]) -> None:
        started = time.monotonic()
        ctx = task.ctx
        what = {"deploy": "Deploy", "dryrun": "Dry run", "facts": "Facts"}[args["action"]]
        ctx.debug("%(what)s of %(resource)s: %(reason)s", what=what, resource=args["id"], reason=args.get("reason") or "asked for")
        try:
            resource = self._resource(task, args)
            if resource is not None:
                handler = self._handler(task, agent, resource)
                if handler is not None:
                    try:
                        self._work(task, handler, resource, args)
                    finally:
                        handler.close()
        except BaseException as exc:  # also SystemExit: it must end the task, not the process
            ctx.set_resource_state(const.HandlerResourceState.failed)
            ctx.error(
                "The handler of %(resource)s raised %(exception)s",
                resource=args["id"],
                exception=f"{type(exc).__name__}: {exc}",
                traceback=traceback.format_exc(),
            )
        finally:
            task.settle()
        ctx.debug(
            "%(what)s of %(resource)s ended as %(status)s after %(duration).3f s",
            what=what,
            resource=args["id"],
            status=task.status(),
            duration=time.monotonic() - started,
        )

    def _resource(self, task: Task, args: dict[str, Any]) -> Optional[Resource]:
        """The resource from its exported form, its references resolved; None when there is none to work on."""
        kind = Id.parse_id(args["id"]).get_entity_type()
        try:
            if registry.get_class(kind)[0] is None:
                raise LookupError(f"no code for resources of type {kind} was loaded{self._why(kind)}")
            resource = Resource.deserialize({**args["attributes"], "id": args["id"], "requires": args.get("requires") or []})
        except Exception as exc:
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
        """What the imports of the type's module said, or else of all; each trouble once."""
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
            handler.deploy(ctx, resource, _states(args.get("dependencies") or {}))
        elif args["action"] == "dryrun":
            handler.execute(ctx, resource, dry_run=True)
        else:
            for name, value in handler.check_facts(ctx, resource).items():
                ctx.set_fact(name, value)
            ctx.set_resource_state(const.HandlerResourceState.deployed)


def _states(dependencies: dict[str, str]) -> dict[str, const.HandlerResourceState]:
    """The states of dependencies in the words of handlers, which are fewer."""
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
    role = HandlerRole()

    def tend() -> None:
        pause = threading.Event()
        while not pause.wait(CLEAN_INTERVAL):
            role.clean()

    threading.Thread(target=tend, name="ordain-clean", daemon=True).start()
    Switchboard(channel, role.answer, at_end=role.close).serve()
