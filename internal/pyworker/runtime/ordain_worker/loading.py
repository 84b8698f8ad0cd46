"""Imports the Python files of modules as ``inmanta_plugins.<module>[.<sub>]``."""

import dataclasses
import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import sys
import typing
from types import ModuleType
from typing import Any, Optional

from ordain_worker.annotations import AnnotationError, Normalizer, dataclass_entity, signature

PACKAGE = "inmanta_plugins"


class Finder:
    """Finds the packages of the modules that the model loads, wherever their folders are.

    A v1 module's folder is called ``plugins``, an editable v2 module's lies in its own tree: neither is where
    the interpreter would look.
    """

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def add(self, module: str, folder: str) -> None:
        self._folders[f"{PACKAGE}.{module}"] = folder

    def find_spec(
        self, fullname: str, path: Any = None, target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if fullname == PACKAGE:
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [
                folder for folder in (os.path.join(entry, PACKAGE) for entry in sys.path) if os.path.isdir(folder)
            ]
            return spec
        folder = self._folders.get(fullname)
        if folder is None:
            return None
        init = os.path.join(folder, "__init__.py")
        if os.path.isfile(init):
            return importlib.util.spec_from_file_location(fullname, init, submodule_search_locations=[folder])
        spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [folder]
        return spec


def install() -> Finder:
    finder = Finder()
    sys.meta_path.insert(0, finder)
    return finder


def import_files(module: str, folder: str, files: list[str]) -> None:
    """Import the files of one module; those that others imported already are there."""
    for file in sorted(files, key=lambda path: (not path.endswith("__init__.py"), path)):
        inner = os.path.relpath(file, folder)[: -len(".py")].split(os.sep)
        if inner[-1] == "__init__":
            inner.pop()
        importlib.import_module(".".join([PACKAGE, module, *inner]))


def signatures(modules: list[str]) -> tuple[list[Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """The plug-ins of these modules, what the engine has to know of each, and warnings about them.

    Modules that Python code imported beside bring plug-ins too; a model that does not load them cannot call them.
    """
    from inmanta.plugins import all_plugins

    plugins, found, warnings = [], [], []
    loaded = set(modules)
    for name, plugin in all_plugins().items():
        if name.partition("::")[0] not in loaded:
            continue
        try:
            described, remarks = signature(plugin)
        except AnnotationError as exc:
            raise AnnotationError(f"{name}: {exc}") from None
        plugins.append(plugin)
        found.append(described)
        warnings += [{"message": each, "file": described["file"], "line": described["line"]} for each in remarks]
    return plugins, found, warnings


def dataclasses_of(modules: list[str]) -> list[dict[str, Any]]:
    """The dataclasses in the packages of these modules."""
    found = []
    prefixes = tuple(f"{PACKAGE}.{module}" for module in modules)
    for name, module in list(sys.modules.items()):
        if module is None or not any(name == each or name.startswith(each + ".") for each in prefixes):
            continue
        for value in list(vars(module).values()):
            entity = dataclass_entity(value) if isinstance(value, type) else None
            if entity is None or value.__module__ != name:
                continue
            found.append(_dataclass(entity, value))
    return found


def _dataclass(entity: str, cls: type) -> dict[str, Any]:
    normalizer = Normalizer(entity)
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except Exception:  # names that only a type checker knows
        hints = {}
    fields = []
    for field in dataclasses.fields(cls):
        try:
            kind = normalizer.annotation(hints.get(field.name, field.type))
        except AnnotationError as exc:
            kind = {"k": "any", "text": str(exc)}
        has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        fields.append({"name": field.name, "type": kind, "default": has_default})
    try:
        line = inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        line = 0
    return {
        "name": entity,
        "fields": fields,
        "frozen": cls.__dataclass_params__.frozen,  # type: ignore[attr-defined]
        "file": getattr(sys.modules.get(cls.__module__), "__file__", "") or "",
        "line": line,
    }
