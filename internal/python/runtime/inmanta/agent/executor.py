"""What a handler sees of the process that it runs in."""

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
    """A thread that does what it is given, in order. It begins with the first thing that there is to do."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: SimpleQueue[Optional[Callable[[], object]]] = SimpleQueue()
        self._beginning = threading.Lock()
        self.begun = False

    def begin(self) -> None:
        """Raises RuntimeError when there can be no more threads."""
        if not self.begun:
            with self._beginning:
                if not self.begun:
                    threading.Thread(target=self._run, name=self._name, daemon=True).start()
                    self.begun = True

    def put(self, work: Callable[[], object]) -> None:
        self.begin()
        self._waiting.put(work)

    def end(self) -> None:
        """Let what runs come to its end, and drop what waits."""
        try:
            while True:
                self._waiting.get_nowait()
        except Empty:
            self._waiting.put(None)

    def _run(self) -> None:
        while (work := self._waiting.get()) is not None:
            try:
                work()
            except BaseException:  # the thread is for what comes next too
                traceback.print_exc()
            del work  # what it holds is not to wait for the next one


class ResourceDetails:
    """What is desired of a resource."""

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
    """One agent in this process: its name, its thread, its cache, and the files of the server.

    All that handlers of the agent do happens in its one thread, as long as the agent is in use: there are
    libraries that take the end of the thread that opened a connection for the end of the program (mitogen).
    """

    task: Any = None
    """What it works on, with the files of the server."""

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
        """Say that a call follows; release ends it. The caller sees to it that these two do not overlap."""
        self._claims += 1

    def release(self) -> None:
        self.last_used = time.monotonic()
        self._claims -= 1

    @property
    def idle(self) -> bool:
        return self._claims == 0

    def tend(self) -> None:
        """Drop what is stale from the cache, when nothing else is to do."""
        if self.idle:
            self.thread.put(self.cache.clean_stale_entries)

    def close(self) -> None:
        """Give back what handlers hold: connections, for the most part."""
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
