"""Annotations of plug-ins in a form that needs no Python.

    {"k": "dsl", "name": "mod::Entity?"}   a type as a model writes it
    {"k": "prim", "name": "string"}        string, int, float, bool, number
    {"k": "list", "of": [T]}, "dict", "nullable", "reference"
    {"k": "union", "of": [T, …]}           {"k": "literal", "values": […]}
    {"k": "any"}, {"k": "null"}            {"k": "dataclass", "name": "mod::Name"}

``text`` is the annotation as Python shows it.
"""

import collections.abc
import dataclasses
import inspect
import numbers
import types
import typing
from collections.abc import Callable
from typing import Any, Optional

from inmanta.execute.proxy import DynamicProxy, SequenceProxy
from inmanta.plugins import Context, ModelType, Plugin
from inmanta.references import Reference

_PRIMITIVES: dict[Any, str] = {str: "string", int: "int", float: "float", bool: "bool", numbers.Number: "number"}
_LISTS = (list, collections.abc.Sequence, collections.abc.Collection, collections.abc.Iterable)
_DICTS = (dict, collections.abc.Mapping)
_REFUSED = (set, frozenset, tuple, collections.abc.Set, collections.abc.MutableSet)


class AnnotationError(Exception):
    """An annotation that has no counterpart in the model."""


def dataclass_entity(cls: Optional[type]) -> Optional[str]:
    """The entity that a dataclass in a plug-in package stands for."""
    if cls is None or not isinstance(cls, type) or not dataclasses.is_dataclass(cls):
        return None
    parts = cls.__module__.split(".")
    if parts[0] != "inmanta_plugins":
        return None
    return "::".join([*parts[1:], cls.__qualname__])


def model_name(annotation: Any) -> str:
    """The type that a value of this annotation has in a model, as a model writes it."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Union or origin is types.UnionType:
        parts = [each for each in arguments if each is not type(None)]
        return model_name(parts[0]) + "?" if len(parts) == 1 and len(parts) < len(arguments) else "any"
    if annotation in _DICTS or origin in _DICTS:
        return "dict"
    if annotation in _LISTS or origin in _LISTS:
        return f"{model_name(arguments[0])}[]" if arguments else "list"
    return _PRIMITIVES.get(annotation) or dataclass_entity(annotation) or "any"


class Normalizer:
    """Translates annotations and collects what it has to say about them."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.warnings: list[str] = []

    def annotation(self, annotation: Any) -> dict[str, Any]:
        made = self._translate(annotation)
        made.setdefault("text", _text(annotation))
        return made

    def _translate(self, annotation: Any) -> dict[str, Any]:
        if isinstance(annotation, str):
            return {"k": "dsl", "name": annotation, "text": annotation}
        if annotation is None or annotation is type(None):
            return {"k": "null"}
        if annotation is Any or annotation is object:
            return {"k": "any"}
        if isinstance(annotation, typing.ForwardRef):
            return {"k": "dsl", "name": annotation.__forward_arg__, "text": annotation.__forward_arg__}
        if annotation in _PRIMITIVES:
            return {"k": "prim", "name": _PRIMITIVES[annotation]}
        # Aliases of Python 3.12, also those of typing_extensions.
        if type(annotation).__name__ == "TypeAliasType":
            return self._translate(annotation.__value__)
        if isinstance(annotation, typing.TypeVar):
            return self._translate(annotation.__bound__) if annotation.__bound__ is not None else {"k": "any"}
        origin = typing.get_origin(annotation)
        arguments = typing.get_args(annotation)
        if origin is not None and type(origin).__name__ == "TypeAliasType":
            return self._translate(origin.__value__)
        if origin is typing.Annotated:
            for extra in arguments[1:]:
                if isinstance(extra, ModelType):
                    # Who asks for a view gets a view, also of an instance that is a dataclass in Python.
                    return {"k": "dsl", "name": extra.model_type, "view": arguments[0] is DynamicProxy}
            return self._translate(arguments[0])
        if origin is typing.Union or origin is types.UnionType:
            return self._union(arguments)
        if origin is typing.Literal:
            return {"k": "literal", "values": list(arguments)}
        return self._class(annotation, origin or annotation, arguments)

    def _union(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        parts = [self.annotation(each) for each in arguments if each is not type(None)]
        made = parts[0] if len(parts) == 1 else {"k": "union", "of": parts}
        if len(parts) < len(arguments):
            return {"k": "nullable", "of": [made]} if parts else {"k": "null"}
        return made

    def _class(self, annotation: Any, cls: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
        if not isinstance(cls, type):
            return self._unknown(annotation)
        if issubclass(cls, Reference):
            gives = arguments[0] if arguments else cls.get_reference_type()
            of = {"k": "any"} if gives is None or isinstance(gives, typing.TypeVar) else self.annotation(gives)
            return {"k": "reference", "of": [of]}
        if cls in _LISTS:
            return {"k": "list", "of": [self.annotation(arguments[0])]} if arguments else {"k": "dsl", "name": "list"}
        if cls in _DICTS:
            if not arguments:
                return {"k": "dict", "of": [{"k": "any"}]}
            if arguments[0] is not str:
                raise AnnotationError(f"invalid type annotation {_text(annotation)}: keys of a dict have to be strings")
            return {"k": "dict", "of": [self.annotation(arguments[1])]}
        if cls in _REFUSED or (issubclass(cls, collections.abc.Collection) and not _plain_class(cls)):
            raise AnnotationError(f"type {_text(annotation)} is not supported in plug-ins: use list or dict")
        entity = dataclass_entity(cls)
        if entity is not None:
            return {"k": "dataclass", "name": entity}
        if issubclass(cls, DynamicProxy):
            return {"k": "any"}
        return self._unknown(annotation)

    def _unknown(self, annotation: Any) -> dict[str, Any]:
        self.warnings.append(
            f"InmantaWarning: Python type {_text(annotation)} was implicitly cast to 'Any' because no matching type was found"
            " in the Inmanta DSL. Please refer to the documentation for an overview of supported types at the Inmanta plugin"
            f" boundary. ({self.where})"
        )
        return {"k": "any"}


def _plain_class(cls: type) -> bool:
    """A class that merely looks like a collection: a string, a proxy, a class of a module's own."""
    return issubclass(cls, (str, bytes, DynamicProxy, SequenceProxy)) or cls.__module__ not in ("builtins", "collections.abc", "typing")


def _text(annotation: Any) -> str:
    if isinstance(annotation, str):
        return repr(annotation)
    return inspect.formatannotation(annotation)


_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
    inspect.Parameter.VAR_POSITIONAL: "varargs",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_KEYWORD: "varkeywords",
}


def signature(plugin: Plugin) -> tuple[dict[str, Any], list[str]]:
    """A plug-in as the engine wants to know it, and warnings about it."""
    function = plugin.__function__
    name = plugin.get_full_name()
    normalizer = Normalizer(name)
    params = []
    found = inspect.signature(function)
    for parameter in found.parameters.values():
        if parameter.annotation is Context:
            continue
        if parameter.annotation is inspect.Parameter.empty:
            raise AnnotationError(
                f"All arguments of plugin {name!r} should be annotated: {parameter.name!r} has no annotation"
            )
        params.append(
            {
                "name": parameter.name,
                "kind": _KINDS[parameter.kind],
                "type": normalizer.annotation(parameter.annotation),
                "default": parameter.default is not inspect.Parameter.empty,
            }
        )
    returns = None
    if found.return_annotation is not inspect.Signature.empty:
        returns = normalizer.annotation(found.return_annotation)
    file, line = place(function)
    return {
        "name": name,
        "params": params,
        "return": returns,
        "allow_unknown": plugin.is_accept_unknowns(),
        "deprecated": plugin.deprecated,
        "replaced_by": plugin.replaced_by or "",
        "context": [plugin._context, plugin.context_name, plugin.context_keyword_only],
        "file": file,
        "line": line,
    }, normalizer.warnings


def place(function: Callable[..., Any]) -> tuple[str, int]:
    """File and line of a function, below its decorators' wrappers."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)
