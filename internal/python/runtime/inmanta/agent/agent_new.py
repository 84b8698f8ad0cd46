"""The process that deploys, by name only."""

from inmanta._fallback import lacking


class Agent:
    """Only for annotations and isinstance. Handlers get an AgentInstance."""

    def __init__(self, *_: object, **__: object) -> None:
        raise RuntimeError("handlers run in a process of Ordain's, which has no Agent of inmanta-core")


__getattr__ = lacking(__name__)
