"""The name by which older modules know what a handler runs in."""

from inmanta._fallback import lacking
from inmanta.agent.executor import AgentInstance

__all__ = ["AgentInstance"]

__getattr__ = lacking(__name__)
