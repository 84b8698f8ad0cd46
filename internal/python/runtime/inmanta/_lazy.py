"""Modules of the model whose import is postponed until they are used.

A compile worker imports a module only when it is used, if that is known to make
no difference. Code that needs what all modules have registered calls whole first.
"""

_rest = None


def when_whole(rest):  # type: ignore[no-untyped-def]
    """Set the function that imports the postponed modules."""
    global _rest
    _rest = rest


def whole() -> None:
    """Import all modules."""
    global _rest
    if _rest is not None:
        rest, _rest = _rest, None
        rest()
