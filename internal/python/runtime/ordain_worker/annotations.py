"""Translates annotations of plug-ins into JSON for the engine.

    {"k": "dsl", "name": "mod::Entity?"}   a type as a model writes it
    {"k": "prim", "name": "string"}        string, int, float, bool, number
    {"k": "list", "of": [T]}, "dict", "nullable", "reference"
    {"k": "union", "of": [T, …]}
    {"k": "any"}, {"k": "null"}            {"k": "dataclass", "name": "mod::Name", "of": [those it is derived from]}

``text`` is the annotation as Python prints it.
"""

import collections.abc
import dataclasses
import inspect
import numbers
import sys
import types
import typing
from collections.abc import Callable
from typing import Any, Optional

from inmanta.execute.proxy import DynamicProxy
from inmanta.plugins import Context, ModelType, Plugin
from inmanta.references import Reference

_PRIMITIVES: dict[Any, str] = {str: "string", int: "int", float: "float", bool: "bool", numbers.Number: "number"}
_LISTS = (list, collections.abc.Sequence)
_DICTS = (dict, collections.abc.Mapping)


#: the kind of the error about a parameter without annotation, which no other error has
UNANNOTATED = "RuntimeException"


class AnnotationError(Exception):
    """An annotation without a counterpart in the model.

    :param error: the kind of error by which modules know it.
    """

    def __init__(self, message: str, error: str = "TypingException") -> None:
        super().__init__(message)
        self.error = error
        self.place = ("", 0)  # file and line of the plug-in


def _no_class(note: str) -> BaseException:
    """The message that inmanta-core gives, with the reason, for an annotation that has to be a class and is not."""
    from inmanta._noted import noted

    return noted(AnnotationError("issubclass() arg 1 must be a class", "TypeError"), note)


def dataclass_entity(cls: Optional[type]) -> Optional[str]:
    """The name of a dataclass in a plug-in package in the form of an entity's name, by default that of its entity."""
    if cls is None or not isinstance(cls, type) or not dataclasses.is_dataclass(cls):
        return None
    parts = cls.__module__.split(".")
    if parts[0] != "inmanta_plugins":
        return None
    return "::".join([*parts[1:], cls.__qualname__])


_entities: dict[type, list[str]] = {}


def entities_of(cls: type) -> list[str]:
    """The names of a dataclass and of the dataclasses from which it is derived, nearest first.

    Without classes whose name in their module now stands for another class.
    """
    known = _entities.get(cls)
    if known is None:
        known = _entities[cls] = [
            name for each in cls.__mro__ if (name := dataclass_entity(each)) is not None and _is_bound(each)
        ]
    return known


def _is_bound(cls: type) -> bool:
    holder = getattr(sys.modules.get(cls.__module__), cls.__name__, None)
    if holder is not None:
        return holder is cls
    modules = [
        each for name, each in list(sys.modules.items()) if name.startswith("inmanta_plugins.") and each is not None
    ]
    return any(each is cls for module in modules for each in list(vars(module).values()))


def model_name(annotation: Any) -> str:
    """The type in a model of a value with this annotation, as a model writes it."""
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
    """Translates annotations and collects warnings about them."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.warnings: list[str] = []

    def parameter(self, annotation: Any, of: str) -> dict[str, Any]:
        """The annotation of a parameter or the return value. A string is a type as a model writes it."""
        if isinstance(annotation, str):
            return {"k": "dsl", "name": annotation, "text": repr(annotation)}
        known = annotation is None or isinstance(annotation, type) or typing.get_origin(annotation) is not None
        if not known and type(annotation).__name__ != "TypeAliasType":
            raise AnnotationError(
                f"Bad annotation in plugin {self.where} for {of}, expected str or python type but got"
                f" {type(annotation).__name__} ({annotation})",
                "InvalidTypeAnnotation",
            )
        return self.annotation(annotation)

    def annotation(self, annotation: Any) -> dict[str, Any]:
        made = self._translate(annotation)
        made.setdefault("text", _text(annotation))
        return made

    def _translate(self, annotation: Any) -> dict[str, Any]:
        if annotation is None or annotation is type(None):
            return {"k": "null"}
        if annotation is Any or annotation is object:
            return {"k": "any"}
        # Aliases of Python 3.12, also those of typing_extensions.
        if type(annotation).__name__ == "TypeAliasType" and typing.get_origin(annotation) is None:
            return self._translate(annotation.__value__)
        origin = typing.get_origin(annotation)
        arguments = typing.get_args(annotation)
        if origin is typing.Annotated:
            for extra in reversed(arguments[1:]):
                if isinstance(extra, ModelType):
                    # A parameter of this type gets a view, even of an instance that has a dataclass in Python.
                    return {"k": "dsl", "name": extra.model_type, "view": arguments[0] is DynamicProxy}
            return self._translate(arguments[0])
        if origin is typing.Union or origin is types.UnionType:
            return self._union(arguments)
        if isinstance(annotation, type) and annotation in _PRIMITIVES:
            return {"k": "prim", "name": _PRIMITIVES[annotation]}
        if origin is None:
            return self._class(annotation)
        return self._generic(annotation, origin, arguments)

    def _union(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        parts = [self.annotation(each) for each in arguments if each is not type(None)]
        made = parts[0] if len(parts) == 1 else {"k": "union", "of": parts}
        if len(parts) < len(arguments):
            return {"k": "nullable", "of": [made]} if parts else {"k": "null"}
        return made

    def _generic(self, annotation: Any, cls: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
        if cls is typing.ClassVar:
            return self._unknown(annotation)
        if not isinstance(cls, type):
            raise _no_class(f"{_text(annotation)}: plug-ins cannot be annotated with such a type")
        if issubclass(cls, Reference):
            return {"k": "reference", "of": [self.annotation(arguments[0])]}
        if issubclass(cls, collections.abc.Mapping):
            if cls not in _DICTS:
                raise AnnotationError(f"invalid type {annotation}, dictionary types should be Mapping or dict")
            return self._dict(annotation, arguments)
        if issubclass(cls, collections.abc.Set):
            raise AnnotationError(f"invalid type {annotation}, set is not supported on the plugin boundary")
        if issubclass(cls, collections.abc.Sequence) and cls is not tuple:
            if cls not in _LISTS:
                raise AnnotationError(f"invalid type {annotation}, list types should be Sequence or list")
            return {"k": "list", "of": [self.annotation(arguments[0])]} if arguments else {"k": "dsl", "name": "list"}
        return self._unknown(annotation)

    def _dict(self, annotation: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
        if not arguments:
            return {"k": "dict", "of": [{"k": "any"}]}
        if not isinstance(arguments[0], type) and arguments[0] is not Any:
            raise _no_class(f"{_text(annotation)}: the keys of a dict have to be strings")
        if arguments[0] is Any or not issubclass(arguments[0], str):
            raise AnnotationError(
                f"invalid type {annotation}, the keys of any dict should be 'str', got {arguments[0]} instead"
            )
        return {"k": "dict", "of": [self.annotation(arguments[1]) if len(arguments) > 1 else {"k": "any"}]}

    def _class(self, cls: Any) -> dict[str, Any]:
        if not isinstance(cls, type):
            return self._unknown(cls)
        if issubclass(cls, Reference):
            gives = cls.get_reference_type()
            of = {"k": "any"} if gives is None else self.annotation(gives)
            return {"k": "reference", "of": [of]}
        if cls in _LISTS:
            return {"k": "dsl", "name": "list"}
        if cls in _DICTS:
            return {"k": "dict", "of": [{"k": "any"}]}
        if dataclasses.is_dataclass(cls) or cls is ModelType:  # upstream that is one
            # One below the class that an entity is paired with stands for that entity too.
            name, *bases = [dataclass_entity(base) for base in cls.__mro__]
            return {
                "k": "dataclass",
                "name": name or "",
                "of": [{"k": "dataclass", "name": each} for each in bases if each],
            }
        return self._unknown(cls)

    def _unknown(self, annotation: Any) -> dict[str, Any]:
        self.warnings.append(
            f"InmantaWarning: Python type {_text(annotation)} was implicitly cast to 'Any' because no matching type was found"
            " in the Inmanta DSL. Please refer to the documentation for an overview of supported types at the Inmanta plugin"
            f" boundary. ({self.where})"
        )
        return {"k": "any"}


def _text(annotation: Any) -> str:
    if isinstance(annotation, str):
        return repr(annotation)
    return inspect.formatannotation(annotation)


def _parameters(found: inspect.FullArgSpec) -> list[tuple[str, str, bool]]:
    """Name, kind and presence of a default, for each parameter. A wrapper must declare its parameters."""
    required = len(found.args) - len(found.defaults or ())
    params = [(name, "positional", position >= required) for position, name in enumerate(found.args)]
    if found.varargs:
        params.append((found.varargs, "varargs", False))
    params += [(name, "keyword", name in (found.kwonlydefaults or ())) for name in found.kwonlyargs]
    if found.varkw:
        params.append((found.varkw, "varkeywords", False))
    return params


def _argspec(function: Callable[..., Any]) -> inspect.FullArgSpec:
    try:
        return inspect.getfullargspec(function)
    except TypeError as exc:
        raise AnnotationError(str(exc), "TypeError") from None


def signature(plugin: Plugin) -> tuple[dict[str, Any], list[str]]:
    """The description of a plug-in for the engine, and warnings about it."""
    function = plugin.__function__
    name = plugin.get_full_name()
    normalizer = Normalizer(name)
    spec = _argspec(function)
    annotations, found = spec.annotations, _parameters(spec)
    for parameter, _, _ in sorted(found, key=lambda each: not each[1].startswith("var")):
        if parameter not in annotations:
            raise AnnotationError(
                f"All arguments of plugin {name!r} should be annotated: {parameter!r} has no annotation", UNANNOTATED
            )
    try:
        inspect.getfile(inspect.unwrap(function))
    except TypeError as exc:  # an object that can be called, and has no place of its own
        raise AnnotationError(str(exc), "TypeError") from None
    params = [
        {
            "name": parameter,
            "kind": kind,
            "type": normalizer.parameter(annotations[parameter], parameter),
            "default": default,
        }
        for parameter, kind, default in found
        if kind != "positional" or annotations[parameter] is not Context
    ]
    returns = normalizer.parameter(annotations["return"], "return value") if "return" in annotations else None
    file, line = place(function)
    return {
        "name": name,
        "params": params,
        "return": returns,
        "allow_unknown": plugin.is_accept_unknowns(),
        "emits": bool(plugin.opts.get("emits_statements")),
        "deprecated": plugin.deprecated,
        "replaced_by": plugin.replaced_by or "",
        "context": [plugin._context, plugin.context_name, plugin.context_keyword_only],
        "file": file,
        "line": line,
    }, normalizer.warnings


def place(function: Callable[..., Any]) -> tuple[str, int]:
    """File and line of the function that decorators have wrapped."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)
