"""Modules of the model that wait to be imported until they are used.

A compile worker imports a module when something of it is called, where it is
known that this makes no difference. Whoever asks for what all modules have
registered asks here first.
"""

_rest = None


def when_whole(rest):  # type: ignore[no-untyped-def]
    """Say what imports the modules that wait."""
    global _rest
    _rest = rest


def whole() -> None:
    """Have all modules imported."""
    global _rest
    if _rest is not None:
        rest, _rest = _rest, None
        rest()
