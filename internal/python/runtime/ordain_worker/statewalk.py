"""Compares the state of the modules of the model, object by object.

If the import of one module changes another one, it cannot be postponed. The names
of the other module do not show that: the change may be in a list in an attribute
of an object, in the dispatch of a function, or in a class that registers itself.
So a :class:`Walk` follows everything that a Python module of the model holds, and
can tell later whether one of these objects refers to something else.

It does not follow other Python modules and what they define, loggers, and strings
and numbers, which do not change.
"""

from __future__ import annotations

import contextvars
import gc
import logging
import random
import sys
import threading
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Optional

LIMIT = 50_000
"""How many objects are followed. A module with more counts as changed."""

_CONSTANT = (str, int, float, complex, bool, bytes, type(None), BuiltinFunctionType, ModuleType)


class Walk:
    """The objects that a Python module holds, and their references.

    :param package: the package whose classes and functions are followed, such as ``inmanta_plugins.std``.
    :param subclasses: whether a new subclass counts as a change of a class.
    """

    __slots__ = ("_package", "_subclasses", "_held", "_whole")

    def __init__(self, module: ModuleType, package: str, subclasses: bool) -> None:
        self._package = package
        self._subclasses = subclasses
        self._held: dict[int, tuple[Any, tuple[int, ...]]] = {}
        self._whole = True
        waiting = [vars(module)]
        while waiting:
            one = waiting.pop()
            if id(one) in self._held or isinstance(one, _CONSTANT):
                continue
            if len(self._held) == LIMIT:
                self._whole = False
                return
            parts = self._parts(one)
            self._held[id(one)] = (one, _mark(one, parts, self._subclasses))
            waiting.extend(parts)

    def changed(self) -> bool:
        """Whether one of the objects refers to something else now."""
        return not self._whole or any(
            _mark(one, self._parts(one), self._subclasses) != mark for one, mark in self._held.values()
        )

    def _parts(self, one: Any) -> list[Any]:
        if isinstance(one, type):
            if not self._ours(one):
                return []
            return [value for name, value in vars(one).items() if name not in ("__dict__", "__weakref__", "_abc_impl")]
        if isinstance(one, FunctionType):
            if not self._ours(one):
                return []
            cells = [cell for cell in one.__closure__ or ()]
            return [one.__code__, one.__defaults__, one.__kwdefaults__, vars(one), *cells]
        if isinstance(one, CellType):
            try:
                return [one.cell_contents]
            except ValueError:
                return []
        if isinstance(one, MethodType):
            return [one.__self__, one.__func__]
        kind = type(one)
        if isinstance(one, logging.Logger) or kind.__module__ in (
            "logging",
            "_frozen_importlib",
            "_frozen_importlib_external",
            "re",
            "code",
            "_thread",
        ):
            return []
        if kind is dict and "__name__" in one and "__spec__" in one:  # of a Python module
            if one["__name__"] != self._package and not str(one["__name__"]).startswith(self._package + "."):
                return []
            return [value for name, value in one.items() if not (name.startswith("__") and name.endswith("__"))]
        return [each for each in gc.get_referents(one) if each is not kind]

    def _ours(self, one: Any) -> bool:
        module = getattr(one, "__module__", None)
        return isinstance(module, str) and (module == self._package or module.startswith(self._package + "."))


_LOCK = type(threading.Lock())


def _mark(one: Any, parts: Iterable[Any], subclasses: bool) -> tuple[Any, ...]:
    """A value that differs after an object was changed, made of the identities of the objects to which it refers.

    For objects that advance without showing it, such as generators, it always differs.
    """
    mark: list[Any] = [id(each) for each in parts]
    if isinstance(one, type):
        impl = vars(one).get("_abc_impl")
        if impl is not None:
            import _abc

            mark.append(len(_abc._get_dump(one)[0]))
        if subclasses:
            mark.append(len(type.__subclasses__(one)))
    elif isinstance(one, bytearray):
        mark.append(bytes(one))
    elif isinstance(one, logging.Logger):
        mark += (one.level, one.disabled, one.propagate, len(one.handlers), len(one.filters))
    elif isinstance(one, contextvars.ContextVar):
        mark.append(id(one.get(None)))
    elif isinstance(one, threading.local):
        mark += map(id, vars(one).values())
    elif isinstance(one, _LOCK):
        mark.append(one.locked())
    elif hasattr(type(one), "__next__"):
        hint = getattr(one, "__length_hint__", None)
        mark.append(hint() if hint is not None else _Never())
    return tuple(mark)


class _Never:
    """Is not equal to anything."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


def library(module: ModuleType) -> Optional[dict[str, int]]:
    """The sizes of the containers in a module of a library and in its classes, without caches; nothing for other modules.

    Code that registers something with a library, such as a constructor of YAML or a filter of Jinja, enlarges one.
    """
    names = getattr(module, "__dict__", None)
    if not isinstance(names, dict) or not isinstance(names.get("__name__"), str):
        return None
    name = names["__name__"]
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names or top in ("inmanta", "inmanta_plugins", "ordain_worker", "__main__"):
        return None
    sizes = _sizes(names, "")
    for key, value in list(names.items()):
        if isinstance(value, type) and value.__module__ == name:
            sizes.update(_sizes(vars(value), key + "."))
    return sizes


def _sizes(names: Mapping[str, Any], prefix: str) -> dict[str, int]:
    return {
        prefix + key: len(value)
        for key, value in list(names.items())
        if type(value) in (dict, list, set) and "cache" not in key.lower() and not key.startswith("__")
    }


def standard() -> tuple[Any, ...]:
    """The registries of the standard library that are loaded."""
    loaded = sys.modules.get
    decimal, copyreg, mimetypes = loaded("decimal"), loaded("copyreg"), loaded("mimetypes")
    atexit, builtins = loaded("atexit"), loaded("builtins")
    return (
        hash(random.getstate()),
        repr(decimal.getcontext()) if decimal is not None else None,
        len(copyreg.dispatch_table) if copyreg is not None else None,
        len(mimetypes._db.types_map[True]) if mimetypes is not None and mimetypes._db is not None else None,
        atexit._ncallbacks() if atexit is not None else None,
        len(vars(builtins)) if builtins is not None else None,
        len(vars(sys)),
        sorted(
            (name, each.level, each.disabled, len(each.handlers))
            for name, each in list(logging.root.manager.loggerDict.items())
            if isinstance(each, logging.Logger) and (each.level or each.disabled or each.handlers)
        ),
        sys.getswitchinterval(),
        sys.gettrace(),
        sys.getprofile(),
        sys.excepthook,
        sys.displayhook,
    )
