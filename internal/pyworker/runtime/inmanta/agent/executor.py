"""What a handler sees of the process that it runs in."""

import threading
import uuid
from typing import Any, Optional

from inmanta._fallback import lacking
from inmanta.agent.cache import AgentCache


class AgentInstance:
    """One agent in this process: its name, its cache, and the files of the server."""

    def __init__(self, name: str, environment: uuid.UUID, files: Any = None) -> None:
        self.name = name
        self.environment = environment
        self.uri = "local:"
        self.sessionid = uuid.uuid4()
        self.files = files
        # One resource of an agent at a time; the cache is cleaned only in between.
        self.lock = threading.Lock()
        self.cache = AgentCache(self)

    @property
    def eventloop(self) -> Any:
        from inmanta.agent import _loop

        return _loop.running()

    def is_stopped(self) -> bool:
        return False

    def get_env(self) -> Optional[object]:
        return None


__getattr__ = lacking(__name__)
