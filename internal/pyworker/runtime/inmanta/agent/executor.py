"""What a handler sees of the process that it runs in."""

import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Optional

from inmanta._fallback import lacking
from inmanta.agent.cache import AgentCache


class AgentInstance:
    """One agent in this process: its name, its thread, its cache, and the files of the server.

    All that handlers of the agent do happens in its one thread, as long as the agent is in use: there are
    libraries that take the end of the thread that opened a connection for the end of the program (mitogen).
    """

    def __init__(self, name: str, environment: uuid.UUID, files: Any = None) -> None:
        self.name = name
        self.environment = environment
        self.uri = "local:"
        self.sessionid = uuid.uuid4()
        self.files = files
        self.cache = AgentCache(self)
        self.last_used = time.monotonic()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"agent-{name}")
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

    def call(self, work: Callable[[], Any]) -> Any:
        """Do work in the agent's thread, after what waits there, and give what it gives."""
        return self._thread.submit(work).result()

    def tend(self) -> Optional[Future[None]]:
        """Drop what is stale from the cache, when nothing else is to do."""
        return self._thread.submit(self.cache.clean_stale_entries) if self.idle else None

    def close(self) -> None:
        """Give back what handlers hold: connections, for the most part."""
        self.cache.close()
        self._thread.shutdown(wait=False, cancel_futures=True)

    @property
    def eventloop(self) -> Any:
        from inmanta.agent import _loop

        return _loop.running()

    def is_stopped(self) -> bool:
        return False

    def get_env(self) -> Optional[object]:
        return None


__getattr__ = lacking(__name__)
