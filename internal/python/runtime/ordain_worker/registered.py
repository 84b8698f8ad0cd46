"""Describes to Go what the modules registered for an export: resource classes, references, dependency managers.

Most classes only say where their fields come from, and Go serialises these
itself. Classes with special behaviour are *held*, see exporting.py.
"""

from collections.abc import Callable, Iterable
from typing import Any

from inmanta import references
from inmanta._making import COLLECTED
from inmanta.export import Exporter
from inmanta.resources import ManagedResource, Resource, ResourceMeta, resource
from ordain_worker import managers

# How Go gets the value of a field without Python.
_BUILT_IN = {
    "send_event": (Resource, "flag_false"),
    "receive_events": (Resource, "flag_true"),
    "report_only": (Resource, "flag_false"),
    "managed": (ManagedResource, "managed"),
}
# Methods that make, fill and serialise a resource. A class that overrides one of them is held.
_MAKING = (
    "__new__",
    "__init__",
    "__setattr__",
    "__getattribute__",
    "populate",
    "serialize",
    "get_references",
    "get_mutators",
)
# Attributes of a resource that are not fields.
_OWN = ("id", "requires", "resource_requires", "unknowns", "model", "is_undefined")


def described() -> dict[str, Any]:
    """The answer to ``export_types``.

    It fails for a class with a validation of its own, which must run once, in the export.
    """
    if any(cls.validate.__func__ is not Resource.validate.__func__ for cls, _ in resource._resources.values()):  # type: ignore[attr-defined]
        raise TypeError("a resource class has its own validate")
    return declared()


def declared() -> dict[str, Any]:
    """Which entities are resources and how their fields get their values, which classes references have, and what the
    dependency managers are interested in.
    """
    resource.validate()
    return {
        "types": [_declare(name, cls, options) for name, (cls, options) in resource._resources.items()],
        "references": {
            name: cls.__module__
            for name, cls in [*references.reference.get_references(), *references.mutator.get_mutators()]
        },
        "managers": [
            {"name": name_of(manager), "module": manager.__module__, "types": managers.types_of(manager)}
            for manager in Exporter._dependency_managers
        ],
    }


def _declare(name: str, cls: type[Resource], options: dict[str, str]) -> dict[str, Any]:
    fields = []
    for field in cls.fields:
        if field not in COLLECTED:
            fields.append([field, _how(cls, field)])
    own_id = cls.object_to_id.__func__ is not Resource.object_to_id.__func__  # type: ignore[attr-defined]
    held = is_held(cls)
    own_fields = cls.map_field.__func__ is not Resource.map_field.__func__  # type: ignore[attr-defined]
    functions = {field: _written(cls, field) for field, how in fields if how == "python" or own_fields}
    if held:
        fields = [[field, "python"] for field, _ in fields]
    if held or _how(cls, options["name"]) != "plain":
        own_id = True
    return {
        "name": name,
        "agent": options["agent"],
        "id_attribute": options["name"],
        "own_id": own_id,
        "fields": fields,
        "functions": functions,
        "module": cls.__module__,
        "held": held,
    }


def is_held(cls: type[Resource]) -> bool:
    """Whether the class has its own way to make, fill or serialise resources."""
    if type(cls) is not ResourceMeta or hasattr(cls, "__getattr__"):
        return True
    if cls.map_field.__func__ is not Resource.map_field.__func__:  # type: ignore[attr-defined]
        return True
    if any(getattr(cls, name) is not getattr(Resource, name) for name in _MAKING) or not set(COLLECTED).issubset(
        cls.fields
    ):
        return True
    # A descriptor, which takes part when an attribute is set or read.
    return any(hasattr(type(_static(cls, str(name))), "__set__") for name in (*cls.fields, *_OWN))


def _static(cls: type, name: str) -> object:
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def _how(cls: type[Resource], field: str) -> str:
    if type(field) is not str:
        return "python"  # which says what is wrong with that
    if hasattr(cls, "get_" + field):
        getter = getattr(cls, "get_" + field)
        base, how = _BUILT_IN.get(field, (None, ""))
        return how if base is not None and getter is getattr(base, "get_" + field) else "python"
    mapped = getattr(cls, "map", {})
    return "python" if not isinstance(mapped, dict) or field in mapped else "plain"


def name_of(manager: Callable[..., Any]) -> str:
    """A name for a dependency manager that is the same in every process."""
    line = manager.__code__.co_firstlineno if hasattr(manager, "__code__") else 0
    return f"{manager.__module__}.{getattr(manager, '__qualname__', '')}:{line}"


def _written(cls: type[Resource], field: str) -> list[Any]:
    """File, line and name of the function that computes a field, or empty and 0 if it is not written in Python."""
    mapped = getattr(cls, "map", None)
    function = getattr(cls, "get_" + field, None) or (isinstance(mapped, dict) and mapped.get(field)) or cls.map_field
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", field)
    return [code.co_filename, code.co_firstlineno, name] if code is not None else ["", 0, name]


def code_of(types: Iterable[str]) -> dict[str, list[str]]:
    """By resource type, the Python modules that define its class, its handlers and their bases."""
    from inmanta.agent.handler import Commander

    found: dict[str, list[str]] = {}
    for kind in types:
        cls, _ = resource.get_class(kind)
        classes = [cls, *_handlers(Commander, kind)]
        modules = {base.__module__ for each in classes if each is not None for base in each.__mro__}
        found[kind] = sorted(each for each in modules if each.startswith("inmanta_plugins."))
    return found


def _handlers(commander: Any, kind: str) -> list[type]:
    return [cls for name, cls in commander.get_providers() if name == kind]
