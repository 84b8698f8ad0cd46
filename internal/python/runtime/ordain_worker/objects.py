"""Operations of the model on Python objects that are not values of the language."""

from __future__ import annotations

import operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ordain_worker.values import Codec

# The methods by which a class has an operation of its own.
_METHODS = {
    "int": ("__int__", "__index__", "__trunc__", "__buffer__", "fromhex"),  # bytes have the last
    "float": ("__float__", "__index__", "__buffer__", "fromhex"),
    "bool": ("__bool__", "__len__"),
}
_DO = {
    "==": operator.eq,
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "repr": repr,
    "format": format,
    "hash": hash,
}


def describe(value: object, base: type) -> dict[str, Any]:
    """Whether an object counts as a number, and which operations its class defines."""
    kind = type(value)
    own = []
    if base is object:
        own = [name for name, methods in _METHODS.items() if any(hasattr(kind, each) for each in methods)]
    for name, method in (("==", "__eq__"), ("format", "__format__"), ("hash", "__hash__")):
        if getattr(kind, method) is not getattr(base, method):
            own.append(name)
    described: dict[str, Any] = {"own": own} if own else {}
    if "int" in own or "float" in own or hasattr(kind, "__complex__"):
        import numbers

        if isinstance(value, numbers.Number):
            described["number"] = "integral" if isinstance(value, numbers.Integral) else "number"
    return described


def do(codec: Codec, args: dict[str, Any]) -> dict[str, Any]:
    """Answer the request ``do``. An impossible conversion has no value."""
    operation = args["do"]
    operands = [codec.decode(args["o"])]
    if "with" in args:
        operands.append(codec.decode(args["with"]))
    try:
        return {"v": codec.encode(_DO[operation](*operands))}
    except Exception as exc:
        if operation in _METHODS and isinstance(exc, (ValueError, TypeError)):
            return {}
        return {"error": {"class": type(exc).__name__, "text": str(exc)}}
