from numbers import Number

from inmanta.ast import OptionalValueException
from inmanta.execute.util import Unknown
from inmanta.plugins import plugin
from inmanta.resources import Resource, resource


@plugin
def add(a: int, b: "int" = 1) -> int:
    return a + b


@plugin
def size(items: "any") -> "int":
    return len(items)


@plugin("key")
def key_of(e: "std::Entity") -> int:
    return e.key


@plugin
def maybe(n: int) -> int | None:
    return n if n % 2 else None


@plugin
def join(*parts: str, sep: str = "-") -> str:
    return sep.join(parts)


@plugin
def half(n: Number) -> float:
    return n / 2


@plugin
def flip(b: bool) -> "bool":
    return not b


@plugin
def spread(n: int) -> list[int]:
    return list(range(n % 4))


@plugin
def box(n: int, words: "string[]") -> dict[str, object]:
    return {"n": n, "words": words, "none": None}


@plugin
def unknown(kind: str = "x") -> "any":
    return Unknown(source=None)


def text(value):
    if isinstance(value, (str, bool, int, float)) or value is None:
        return repr(value)
    if hasattr(value, "_get_instance") and not hasattr(value, "__len__"):
        return str(value.key)
    if hasattr(value, "items"):
        return "{" + ", ".join(sorted(k + ": " + text(v) for k, v in value.items())) + "}"
    return "[" + ", ".join(sorted(map(text, value))) + "]"


@plugin
def read(e: "any", *names: "string") -> str:
    found = []
    for name in names:
        try:
            found.append(name + "=" + text(getattr(e, name)))
        except OptionalValueException:
            found.append(name + " is not there")
    return " ".join(found)


@plugin
def trace(e: "any", *names: str) -> None:
    for name in names:
        try:
            getattr(e, name)
        except OptionalValueException:
            pass
    print(e.key, *sorted(names))


@plugin
def total(e: "std::Entity", name: str) -> int:
    return sum(other.key for other in getattr(e, name))


@plugin
def members(e: "std::Entity", name: str) -> "std::Entity[]":
    return sorted(getattr(e, name), key=lambda other: other.key)


@plugin
def least(items: "std::Entity[]") -> "std::Entity?":
    return min(items, key=lambda other: other.key, default=None)
