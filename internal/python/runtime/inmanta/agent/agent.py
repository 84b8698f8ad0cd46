"""The name by which older modules know what a handler runs in."""

from inmanta._fallback import lacking
from inmanta.agent.agent_new import Agent
from inmanta.agent.executor import AgentInstance

__all__ = ["Agent", "AgentInstance"]

__getattr__ = lacking(__name__)
