"""The process that deploys, by name only."""

from inmanta._fallback import lacking


class Agent:
    """For annotations and isinstance. No handler meets one: what it gets is an AgentInstance."""

    def __init__(self, *_: object, **__: object) -> None:
        raise RuntimeError("handlers run in a process of Ordain's, which has no Agent of inmanta-core")


__getattr__ = lacking(__name__)
