"""The name of the agent for older modules."""

from inmanta._fallback import lacking
from inmanta.agent.agent_new import Agent
from inmanta.agent.executor import AgentInstance

__all__ = ["Agent", "AgentInstance"]

__getattr__ = lacking(__name__)
