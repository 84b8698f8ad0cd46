"""The parts of the process that its handlers see."""

import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Any, Optional

from inmanta._fallback import lacking
from inmanta.agent.cache import AgentCache


class Worker:
    """A thread that does work in order. It starts with the first work."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: SimpleQueue[Optional[Callable[[], object]]] = SimpleQueue()
        self._beginning = threading.Lock()
        self.begun = False

    def begin(self) -> None:
        """Start the thread. Raises RuntimeError if no further thread can be started."""
        if not self.begun:
            with self._beginning:
                if not self.begun:
                    threading.Thread(target=self._run, name=self._name, daemon=True).start()
                    self.begun = True

    def put(self, work: Callable[[], object]) -> None:
        self.begin()
        self._waiting.put(work)

    def end(self) -> None:
        """End the thread after the running work, dropping what waits."""
        try:
            while True:
                self._waiting.get_nowait()
        except Empty:
            self._waiting.put(None)

    def _run(self) -> None:
        while (work := self._waiting.get()) is not None:
            try:
                work()
            except BaseException:  # the thread must survive for the next work
                traceback.print_exc()
            del work  # frees what it holds before the next work arrives


class ResourceDetails:
    """The desired state of a resource."""

    def __init__(self, id: str, version: int, attributes: Mapping[str, object]) -> None:
        from inmanta.resources import Id

        self.id = Id.parse_id(id).copy(version=version)
        self.rid = self.id.resource_str()
        self.rvid = self.id.resource_version_str()
        self.model_version = version
        self.attributes: dict[str, Any] = {**attributes, "id": self.rvid}
        self.requires = [Id.parse_id(each) for each in self.attributes["requires"]]

    @classmethod
    def from_json(cls, resource_dict: Mapping[str, Any]) -> "ResourceDetails":
        return cls(resource_dict["id"], resource_dict["model"], resource_dict["attributes"])


class AgentInstance:
    """An agent in this process: its name, thread and cache, and the files of the server.

    All handlers of the agent run in its one thread, as long as the agent is in use, because some libraries (mitogen)
    take the end of the thread that opened a connection for the end of the program.
    """

    task: Any = None
    """The running task, with the files of the server."""

    def __init__(self, name: str, environment: uuid.UUID) -> None:
        self.name = name
        self.environment = environment
        self.uri = "local:"
        self.sessionid = uuid.uuid4()
        self.cache = AgentCache(self)
        self.last_used = time.monotonic()
        self.thread = Worker(f"agent-{name}")
        self._claims = 0

    def claim(self) -> None:
        """Announce a call, which release ends. The caller must not call both at the same time."""
        self._claims += 1

    def release(self) -> None:
        self.last_used = time.monotonic()
        self._claims -= 1

    @property
    def idle(self) -> bool:
        return self._claims == 0

    def tend(self) -> None:
        """Drop stale entries of the cache, if the agent is idle."""
        if self.idle:
            self.thread.put(self.cache.clean_stale_entries)

    def close(self) -> None:
        """Release what handlers hold, such as connections."""
        self.cache.close()
        self.thread.end()

    @property
    def files(self) -> Any:
        """The files of the server, as long as a task runs."""
        task = self.task
        return None if task is None else task.files

    @property
    def eventloop(self) -> Any:
        from inmanta.agent import _loop

        return _loop.running()

    def is_stopped(self) -> bool:
        return False

    def get_env(self) -> Optional[object]:
        return None


__getattr__ = lacking(__name__)
