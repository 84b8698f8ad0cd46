"""The signatures of plug-ins, for Python code that inspects them.

The engine checks arguments itself, with the annotations that
ordain_worker.annotations translates. Here they become types for Python code.
"""

from __future__ import annotations

import inspect
from typing import Any, Optional

from inmanta.ast import Location, RuntimeException, TypeNotFoundException
from inmanta.ast import type as types
from inmanta.plugins import Context, Plugin
from ordain_worker.annotations import Normalizer

_NONE = object()


class PluginValue:
    """An argument or the result of a plug-in."""

    VALUE_TYPE = ""
    VALUE_NAME = ""

    def __init__(self, type_expression: object, plugin: Optional[Plugin] = None) -> None:
        self.type_expression = type_expression
        self._plugin = plugin
        self._resolved_type: Optional[types.Type] = None

    @property
    def resolved_type(self) -> types.Type:
        """The type in the model."""
        if self._resolved_type is None:
            if self._plugin is None:
                raise RuntimeException(
                    None,
                    f"{type(self).__name__} {self.VALUE_NAME} ({self.type_expression!r}) has not been normalized, its"
                    " resolved type can't be accessed.",
                )
            told = Normalizer(self._plugin.get_full_name()).parameter(self.type_expression, self.VALUE_NAME)
            self._resolved_type = _type(told, self._plugin.namespace.get_full_name())
        return self._resolved_type

    def validate(self, value: object) -> bool:
        """Whether the value is known. Raises if it is and does not fit."""
        from inmanta.execute.util import Unknown

        return not isinstance(value, Unknown) and self.resolved_type.validate(value)

    def get_signature_display(self, *, use_dsl_types: bool = False) -> str:
        raise NotImplementedError()


class PluginArgument(PluginValue):
    """A parameter of a plug-in."""

    VALUE_TYPE = "argument value"
    NO_DEFAULT_VALUE_SET = _NONE

    def __init__(
        self,
        arg_name: str,
        arg_type: object,
        arg_position: Optional[int] = None,
        default_value: object = _NONE,
        plugin: Optional[Plugin] = None,
    ) -> None:
        super().__init__(arg_type, plugin)
        self.VALUE_NAME = self.arg_name = arg_name
        self.arg_type, self.arg_position = arg_type, arg_position
        self.is_kw_only_argument = arg_position is None
        self._default = default_value

    def has_default_value(self) -> bool:
        return self._default is not _NONE

    @property
    def default_value(self) -> object:
        if self._default is _NONE:
            raise Exception("PluginArgument doesn't have a default value")
        return self._default

    def get_signature_display(self, *, use_dsl_types: bool = False) -> str:
        return f"{self.arg_name}: {self.resolved_type.type_string_internal()}" if use_dsl_types else str(self)

    def __str__(self) -> str:
        default = f" = {self._default}" if self.has_default_value() else ""
        return f"{self.arg_name}: {self.arg_type!r}{default}"


class PluginReturn(PluginValue):
    """The result of a plug-in."""

    VALUE_TYPE = "returned value"
    VALUE_NAME = "return value"

    def get_signature_display(self, *, use_dsl_types: bool = False) -> str:
        return str(self.resolved_type) if use_dsl_types else repr(self.type_expression)


def of(plugin: Plugin) -> dict[str, Any]:
    """The attributes of a plug-in for its parameters, without the context, and its result."""
    found = inspect.getfullargspec(plugin.__function__)
    said = found.annotations

    def argument(name: str, position: Optional[int] = None, default: object = _NONE) -> PluginArgument:
        return PluginArgument(name, said.get(name), position, default, plugin)

    first = len(found.args) - len(found.defaults or ())
    args: list[PluginArgument] = []
    for at, name in enumerate(found.args):
        if said.get(name) is not Context:
            default = found.defaults[at - first] if found.defaults and at >= first else _NONE
            args.append(argument(name, len(args), default))
    kwargs = {name: argument(name, default=(found.kwonlydefaults or {}).get(name, _NONE)) for name in found.kwonlyargs}
    return {
        "args": args,
        "var_args": argument(found.varargs) if found.varargs else None,
        "kwargs": kwargs,
        "var_kwargs": argument(found.varkw) if found.varkw else None,
        "all_args": {each.arg_name: each for each in (*args, *kwargs.values())},
        "return_type": PluginReturn(said.get("return", "any"), plugin),
    }


def show(plugin: Plugin, use_dsl_types: bool) -> str:
    """The signature as Python writes the types, or as a model does."""

    def one(each: PluginValue) -> str:
        return each.get_signature_display(use_dsl_types=use_dsl_types)

    shown = [one(each) for each in plugin.args]
    if plugin.var_args is not None:
        shown.append("*" + one(plugin.var_args))
    elif plugin.kwargs:
        shown.append("*")
    shown += [one(each) for each in plugin.kwargs.values()]
    if plugin.var_kwargs is not None:
        shown.append("**" + one(plugin.var_kwargs))
    gives = "" if plugin.return_type.type_expression is None else " -> " + one(plugin.return_type)
    return f"{plugin.__function_name__}({', '.join(shown)}){gives}"


def place(function: Any) -> Location:
    """The place of a plug-in: the line below its decorator."""
    file = inspect.getsourcefile(function) or ""
    try:
        return Location(file, inspect.getsourcelines(function)[1] + 1)
    except OSError:  # there is only bytecode
        return Location(file, 1)


def _type(told: dict[str, Any], namespace: str) -> types.Type:
    """The type of a translated annotation."""
    kind = told["k"]
    inner = [_type(each, namespace) for each in told.get("of") or ()] if kind != "dataclass" else []
    if kind == "dsl":
        return _written(told["name"].strip(), namespace)
    if kind == "prim":
        return types.TYPES[told["name"]]
    if kind == "null":
        return types.Null()
    if kind == "list":
        return types.TypedList(inner[0])
    if kind == "dict":
        return types.TypedDict(inner[0])
    if kind == "nullable":
        return types.NullableType(inner[0])
    if kind == "reference":
        return types.ReferenceType(inner[0])
    if kind == "union":
        refers = [each.element_type for each in inner if isinstance(each, types.ReferenceType)]
        values = [each for each in inner if not isinstance(each, types.ReferenceType)]
        return types.OrReferenceType(values[0]) if len(values) == 1 and refers == values else types.Union(inner)
    if kind == "dataclass":
        return types.parse(told["name"])
    return types.Any()


def _written(name: str, namespace: str) -> types.Type:
    """The type that this text means in a namespace of the model."""
    if name.endswith("?"):
        return types.NullableType(_written(name[:-1], namespace))
    if name.endswith("[]"):
        return types.TypedList(_written(name[:-2], namespace))
    if "::" in name or name in types.TYPES or name in ("any", "null"):
        return types.Null() if name == "null" else types.parse(name)
    while namespace:
        try:
            return types.parse(f"{namespace}::{name}")
        except TypeNotFoundException:
            namespace = namespace.rpartition("::")[0]
    raise TypeNotFoundException(name, namespace)
