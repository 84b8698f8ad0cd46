from inmanta.execute.proxy import DictProxy, DynamicProxy, SequenceProxy
from inmanta.execute.util import Unknown
from inmanta.plugins import plugin


def text(value):
    if isinstance(value, (SequenceProxy, list)):
        return "[" + ",".join(sorted(map(text, value))) + "]"
    if isinstance(value, (DictProxy, dict)):
        return "{" + ",".join(str(k) + ":" + text(v) for k, v in value.items()) + "}"
    if isinstance(value, DynamicProxy):
        return value._type().get_full_name().split("::")[-1] + "(" + str(getattr(value, "key", "")) + ")"
    return repr(value)


@plugin
def same(x: "any", y: "any" = None) -> "any":
    return x


@plugin
def pair(x: "any", *more: "any") -> "any":
    return [x, *more]


@plugin
def items(x: "list") -> "list":
    return list(x)


@plugin
def count(x: "list") -> "int":
    return len(x)


@plugin
def shown(x: "any", **more: "any") -> "string":
    return text(x) + "".join(k + text(v) for k, v in more.items())


@plugin
def told(x: "any", y: "any" = None) -> "any":
    print(text(x))
    return x


@plugin
def boxed(x: "any", n: "int" = 3) -> "dict":
    return {"k": x, "n": n}


@plugin
def key(x: "std::Entity") -> "string":
    return x.key


@plugin
def sizes(x: "std::Entity") -> "int":
    return len(x.all) + len(x.more)


@plugin
def unknown() -> "any":
    return Unknown(source=None)


@plugin
def mixed() -> "any":
    return [Unknown(source=None), 1]


@plugin
def nothing() -> "any":
    return None


@plugin(allow_unknown=True)
def kind(x: "any") -> "string":
    return type(x).__name__
