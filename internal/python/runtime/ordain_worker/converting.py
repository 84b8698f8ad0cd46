"""Converts the arguments of plug-ins to views of the model, or to dataclasses where they are declared."""

from __future__ import annotations

from inmanta.ast import RuntimeException, UnsetException
from inmanta.execute.proxy import DynamicProxy, ProxyContext
from inmanta.execute.runtime import Instance
from inmanta.execute.util import NoneValue, ReferenceBase, Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Converters:
    """Converts each argument of a plug-in."""

    def __init__(self, positional: list[Any], rest: Any, named: dict[str, Any], extra: Any, result: Any) -> None:
        self._result = result
        self._positional = positional
        self._rest = rest
        self._named = named
        self._extra = extra

    def gives(self, value: Any) -> bool:
        """Whether a result is certainly of the plain type that the plug-in declares."""
        return self._result is None or type(value) is self._result

    def at(self, index: int) -> Any:
        return self._positional[index] if index < len(self._positional) else self._rest

    def named(self, name: str) -> Any:
        return self._named.get(name) or self._extra


def converters(signature: dict[str, Any], twins: set[str]) -> Converters:
    positional, rest, named, extra = [], None, {}, None
    namespace = signature["name"].rpartition("::")[0]
    for param in signature["params"]:
        convert = converter(param["name"], _with_twins(param["type"], namespace, twins), signature["name"])
        kind = param["kind"]
        if kind == "positional":
            positional.append(convert)
            named[param["name"]] = convert
        elif kind == "varargs":
            rest = convert
        elif kind == "keyword":
            named[param["name"]] = convert
        else:
            extra = convert
    plain = converter("argument", {"k": "any"})
    result = _PLAIN.get((signature["return"] or {}).get("name"))
    return Converters(positional, rest or plain, named, extra or plain, result)


_PLAIN = {"string": str, "int": int, "float": float, "bool": bool}


def converter(name: str, annotation: dict[str, Any], plugin: str = "") -> Any:
    """Return the converter for a parameter with this annotation."""
    if _mentions_dataclass(annotation):
        return lambda value: _made(value, annotation, name, plugin)
    context = ProxyContext(path=name)  # Go has checked it against the annotation

    def show(value: Any) -> Any:
        # Only plug-ins that accept unknown values are called with one.
        return value if isinstance(value, Unknown) else DynamicProxy.return_value(value, context=context)

    return show


def _with_twins(annotation: dict[str, Any], namespace: str, twins: set[str]) -> dict[str, Any]:
    """The annotation with the entities marked that are dataclasses in Python."""
    if annotation.get("of"):
        return {**annotation, "of": [_with_twins(each, namespace, twins) for each in annotation["of"]]}
    if annotation["k"] != "dsl" or not twins:
        return annotation
    name = annotation["name"].strip()
    if annotation.get("view") and not name.endswith(("?", "[]")):
        return annotation
    for end, kind in (("?", "nullable"), ("[]", "list")):
        if name.endswith(end):
            inner = _with_twins({"k": "dsl", "name": name.removesuffix(end)}, namespace, twins)
            return {"k": kind, "of": [inner]}
    if "::" not in name:
        while namespace and f"{namespace}::{name}" not in twins:
            namespace = namespace.rpartition("::")[0]
        name = f"{namespace}::{name}"
    return {"k": "dataclass", "name": name} if name in twins else annotation


def _mentions_dataclass(annotation: dict[str, Any]) -> bool:
    return annotation["k"] == "dataclass" or any(
        _mentions_dataclass(each) for each in annotation.get("of") or () if annotation["k"] != "reference"
    )


def _made(value: Any, annotation: dict[str, Any], name: str, plugin: str) -> Any:
    try:
        return _to_python(value, annotation, name)
    except PassesBy as passed:
        why = passed.__cause__
        if not plugin or not isinstance(why, RuntimeException) or isinstance(why, UnsetException):
            raise
    # The class refuses the values in the words of the compiler: the argument does not fit.
    from inmanta import _binding
    from inmanta.plugins import one_plugin

    called = one_plugin(plugin)
    parameters = [*called.all_args.values(), called.var_args, called.var_kwargs]
    parameter = next(each for each in parameters if each is not None and each.arg_name == name)
    raise _binding.incompatible(called, parameter, value, why) from why


def _to_python(value: Any, annotation: dict[str, Any], path: str) -> Any:
    """Convert a value for an annotation with dataclasses, so that their instances become objects of these classes."""
    from ordain_worker.annotations import dataclass_entity

    kind = annotation["k"]
    if isinstance(value, NoneValue):
        return None
    if kind in ("list", "dict") and isinstance(value, (list, dict)):
        inner = annotation["of"][0]
        if isinstance(value, list):
            return [_to_python(each, inner, f"{path}[{index}]") for index, each in enumerate(value)]
        return {key: _to_python(each, inner, f"{path}[{key!r}]") for key, each in value.items()}
    if kind in ("nullable", "union") or kind == "dataclass":
        wanted = [annotation] if kind == "dataclass" else annotation["of"]
        if isinstance(value, Instance):
            names = _lineage(value)
            if "std::Dataclass" in names:
                names += [dataclass_entity(_class_of(each)) for each in names if each.count("::")]
            for each in wanted:
                if (
                    each["k"] == "dataclass"
                    and "std::Dataclass" in names
                    and any(one["name"] in names for one in (each, *each.get("of", ())))
                ):
                    return _dataclass_self(value)
        for each in wanted:
            if each["k"] in ("list", "dict", "nullable", "union") and isinstance(value, (list, dict, Instance)):
                return _to_python(value, each, path)
    return DynamicProxy.return_value(value, context=ProxyContext(path=path))


def _lineage(instance: Instance) -> list[str]:
    return [instance.entity_name, *instance.get_type().get_all_parent_names()]


def _class_of(entity: str) -> Any:
    """The dataclass of an entity, which has its name in the Python module, or None."""
    import importlib

    module, _, name = entity.rpartition("::")
    try:
        return getattr(importlib.import_module(".".join(["inmanta_plugins", *module.split("::")])), name, None)
    except ModuleNotFoundError:
        return None


class PassesBy(Exception):
    """Wraps an exception for which the plug-in, which has not been called yet, is not to blame."""


def _dataclass_self(instance: Instance) -> Any:
    """The object of an instance, always the same one unless the instance stands for a reference."""
    if instance.dataclass_self is None:
        instance.dataclass_self = _make_dataclass(instance)
    elif isinstance(instance.dataclass_self, ReferenceBase):
        return _make_dataclass(instance)
    return instance.dataclass_self


def _make_dataclass(instance: Instance) -> Any:
    import dataclasses

    cls = _class_of(instance.entity_name)
    proxy = DynamicProxy(instance)._allow_references()
    fields = {field.name: _deep(getattr(proxy, field.name)) for field in dataclasses.fields(cls)}
    try:
        return cls(**fields)
    except Exception as exc:
        raise PassesBy() from exc


def _deep(value: Any) -> Any:
    """Make lists and dicts of views, for a dataclass."""
    if isinstance(value, DynamicProxy):
        inner = value._get_instance()
        if isinstance(inner, list):
            return [_deep(each) for each in value]
        if isinstance(inner, dict):
            return {key: _deep(each) for key, each in value.items()}  # type: ignore[attr-defined]
    return value
