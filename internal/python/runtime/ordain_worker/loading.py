"""Imports the Python files of modules as ``inmanta_plugins.<module>[.<sub>]``."""

from __future__ import annotations

import os
import sys

# From the frozen modules, because importlib.machinery and importlib.util import more.
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import (
    SourceFileLoader,
    SourcelessFileLoader,
    cache_from_source,
    spec_from_file_location,
)

from inmanta import _lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType
    from typing import Any, Optional

PACKAGE = "inmanta_plugins"
FRESH = 2.0  # seconds


def top(python: str) -> str:
    """The module of the model to which a Python module belongs, or an empty string."""
    parts = python.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == PACKAGE else ""


class ImportStopped(Exception):
    """A file of a module raised the cause of this exception."""

    def __init__(self, module: str, importing: str, file: str) -> None:
        super().__init__(module, importing, file)
        self.module = module
        self.importing = importing
        self.file = file


class Finder:
    """Finds the packages of loaded modules of the second generation, including editable ones, whose folders the
    interpreter would not search.
    """

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}
        self.path = ModulePath()

    def add(self, module: str, folder: str) -> None:
        self._folders[f"{PACKAGE}.{module}"] = folder

    def find_spec(self, fullname: str, path: Any = None, target: Optional[ModuleType] = None) -> Optional[ModuleSpec]:
        if fullname == PACKAGE:
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [
                folder for folder in (os.path.join(entry, PACKAGE) for entry in sys.path) if os.path.isdir(folder)
            ]
            return spec
        folder = self._folders.get(fullname)
        if folder is None:
            return None
        for init in ("__init__.py", "__init__.pyc"):
            file = os.path.join(folder, init)
            if os.path.isfile(file):
                return self.path.spec(fullname, file)
        spec = ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [folder]
        return spec


class ModulePath:
    """Finds the packages of modules of the first generation in the folders of the module path, whether the model
    loads them or not. It is the last finder, as in inmanta-core: ``inmanta_plugins.a.b`` is the first of
    a/plugins/b.pyc, a/plugins/b/__init__.pyc, a/plugins/b.py and a/plugins/b/__init__.py, if other finders found
    nothing. So plugins.py, and bytecode beside its source, take precedence over a package ``plugins``.
    """

    def __init__(self) -> None:
        self.folders: list[str] = []
        self.looked: set[str] = set()  # folders that were searched
        # Called after the import of a module's package, in a load that imports modules when they are used.
        self.imported: Optional[Callable[[str, ModuleType], None]] = None

    def find_spec(self, fullname: str, path: Any = None, target: Optional[ModuleType] = None) -> Optional[ModuleSpec]:
        package, *parts = fullname.split(".")
        if package != PACKAGE or not parts:
            return None
        parts.insert(1, "plugins")
        if parts[-1] == "__init__":
            parts.pop()
        for folder in self.folders:
            base = os.path.join(folder, *parts)
            steps = (folder, os.path.join(folder, parts[0]), os.path.dirname(base), base)
            self.looked.update(each for each in steps if os.path.isdir(each))
            for ending in (".pyc", ".py"):
                for file in (base + ending, os.path.join(base, "__init__" + ending)):
                    if os.path.exists(file):
                        return self.spec(fullname, file)
        return None

    def spec(self, fullname: str, file: str) -> Optional[ModuleSpec]:
        loader = None
        if self.imported is not None and fullname.count(".") == 1:
            kind = _TellingBytecode if file.endswith(".pyc") else _Telling
            loader = kind(fullname, file, self.imported)
        inner = [os.path.dirname(file)] if os.path.basename(file).startswith("__init__.") else None
        return spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=inner)


class _Tells:
    """A loader that reports the end of the import of a module's package."""

    def __init__(self, fullname: str, path: str, imported: Callable[[str, ModuleType], None]) -> None:
        super().__init__(fullname, path)  # type: ignore[call-arg]
        self._imported = imported

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)  # type: ignore[misc]
        self._imported(module.__name__.partition(".")[2], module)


class _Telling(_Tells, SourceFileLoader):
    pass


class _TellingBytecode(_Tells, SourcelessFileLoader):
    pass


def install() -> Finder:
    finder = Finder()
    sys.meta_path.insert(0, finder)
    sys.meta_path.append(finder.path)
    return finder


def _first_generation(module: dict[str, Any]) -> bool:
    """Whether the Python files of a module are in its folder ``plugins``."""
    return bool(module["dir"] == os.path.join(module["root"], "plugins"))


def _named(module: str, folder: str, files: list[str]) -> Iterator[tuple[str, str]]:
    """The files of a module with the names of their Python modules, in the order of their imports."""
    for file in sorted(files, key=lambda path: (not os.path.basename(path).startswith("__init__."), path)):
        inner = os.path.splitext(os.path.relpath(file, folder))[0].split(os.sep)
        if inner[-1] == "__init__":
            inner.pop()
        yield ".".join([PACKAGE, module, *inner]), file


def import_files(module: str, folder: str, files: list[str]) -> None:
    """Import those files of a module that were not imported yet."""
    for name, file in _named(module, folder, files):
        try:
            __import__(name)
        except Exception as exc:
            str(exc)  # one that cannot say what it is fails here, as upstream
            raise ImportStopped(module, name, file) from exc


def _distrust(files: Iterable[str]) -> None:
    """Remove bytecode of files that were written just now.

    Python compares bytecode with time, in whole seconds, and size of its source. For a file that was written twice
    in a second it could use the old bytecode.
    """
    from time import time

    now = time()
    for file in files:
        if now - os.stat(file).st_mtime < FRESH:
            sys.dont_write_bytecode = True
            try:
                os.unlink(cache_from_source(file))
            except OSError:
                pass


def _files_of(exc: Optional[BaseException]) -> set[str]:
    """The files in the traceback of an exception."""
    files = {exc.filename} if isinstance(exc, SyntaxError) and exc.filename else set()
    at = exc.__traceback__ if exc is not None else None
    while at is not None:
        files.add(at.tb_frame.f_code.co_filename)
        at = at.tb_next
    return files


class Modules:
    """The modules of the model. They are imported all at once or, after a recorded load, each when it is used.

    :param modules: the modules of the request ``load``, in order.
    :param lazy: from the recorded load: ``shared``, modules that changed more than themselves and are imported first,
        and ``early``, modules that another one imported before their turn.
    """

    def __init__(self, finder: Finder, modules: list[dict[str, Any]], lazy: Optional[dict[str, Any]] = None) -> None:
        self._finder = finder
        self._waiting: dict[str, list[dict[str, Any]]] = {}
        for each in modules:
            if each.get("files"):  # a module.yml may name another module than its folder
                self._waiting.setdefault(each["name"], []).append(each)
        self._order = {name: position for position, name in enumerate(self._waiting)}
        self._shared = [] if lazy is None else lazy.get("shared") or []
        self._early = set() if lazy is None else set(lazy.get("early") or ())
        self._modules = modules
        self._begun: list[str] = []  # modules that others began to import before their turn
        self._spaces = {each["name"] for each in modules}.union(*(each.get("namespaces") or () for each in modules))
        for each in modules:
            if each.get("dir") and not _first_generation(each):
                finder.add(each["name"], each["dir"])
            _distrust(each.get("files") or ())
        if lazy is not None:
            finder.path.imported = self._follow
            _lazy.when_whole(self.rest)

    def has_space(self, python: str) -> bool:
        """Whether the model loads the namespace of a Python module. Otherwise it has no plug-ins."""
        return python.replace(".", "::").removeprefix(PACKAGE + "::") in self._spaces

    def all(self, turn: Callable[[str], Any]) -> None:
        for name in list(self._waiting):
            with turn(name):
                self._import(name)

    def shared(self) -> None:
        """Import the modules that cannot wait."""
        for name in sorted(self._shared, key=self.position):
            self.need(name)

    def need(self, name: str) -> None:
        """Import a module if it was not imported yet."""
        if name in self._waiting:
            self._import(name)
        while self._begun:
            self._import(self._begun.pop(0))

    def rest(self) -> None:
        """Import all remaining modules."""
        for name in list(self._waiting):
            self.need(name)

    def further(self, first: ImportStopped) -> list[ImportStopped]:
        """Find further modules that cannot be imported, except those that fail only because of the first.

        The other files of a package that failed are only compiled, because importing them would run it again.
        """
        found: list[ImportStopped] = []
        ours = {file for each in self._modules for file in each.get("files") or ()}
        broken = _files_of(first.__cause__) & ours | {first.file}
        dead = [first.importing]
        for each in self._modules:
            for name, file in _named(each["name"], each.get("dir") or "", each.get("files") or []):
                if name in sys.modules:
                    continue
                if file in broken:
                    dead.append(name)
                    continue
                stopped = ImportStopped(each["name"], name, file)
                try:
                    if any(name.startswith(other + ".") for other in dead):
                        if file.endswith(".pyc"):
                            continue
                        with open(file, "rb") as source:
                            compile(source.read(), file, "exec", dont_inherit=True)
                        continue
                    __import__(name)
                except Exception as exc:
                    dead.append(name)
                    involved = _files_of(exc) & ours
                    if not involved & broken and not (isinstance(exc, ImportError) and top(exc.name or "")):
                        stopped.__cause__ = exc
                        found.append(stopped)
                    broken |= involved | {file}
        return found

    def position(self, name: str) -> int:
        return self._order.get(name, len(self._order))

    def _import(self, name: str) -> None:
        for module in self._waiting.pop(name, ()):
            import_files(name, module["dir"], module["files"])

    def _follow(self, name: str, package: ModuleType) -> None:
        """Import the other files of a module whose package was imported by Python code."""
        if name not in self._waiting:
            return
        if name in self._early:  # as it was recorded: those follow once the one that imported it is done
            self._begun.append(name)
            return
        setattr(sys.modules[PACKAGE], name, package)
        self._import(name)


def _about(name: str, plugin: Any, exc: Any) -> Exception:
    from ordain_worker.annotations import AnnotationError, place

    from inmanta._noted import noted

    about = AnnotationError(str(exc), exc.error)
    for note in getattr(exc, "__notes__", ()):
        noted(about, note)
    if name not in str(exc):
        noted(about, f"it is an annotation of plug-in {name}")
    about.place = place(plugin.__function__)
    return about


def signatures(
    loaded: Callable[[str], bool], wrong: Optional[list[Exception]] = None
) -> tuple[list[Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """The plug-ins of the Python modules that count as loaded, their descriptions for the engine, and warnings.

    Errors in annotations are raised or, if given, appended to ``wrong``. A missing annotation comes before the others.

    Functions in modules that only Python code imported, or in files whose namespace the model does not load, are not
    plug-ins, and their annotations are not checked.
    """
    from inmanta.plugins import all_plugins
    from ordain_worker.annotations import UNANNOTATED, AnnotationError, signature

    plugins, found, warnings = [], [], []
    first: Optional[Exception] = None
    for name, plugin in all_plugins(loaded).items():
        try:
            described, remarks = signature(plugin)
        except AnnotationError as exc:
            about = _about(name, plugin, exc)
            if wrong is not None:
                wrong.append(about)
            elif exc.error == UNANNOTATED:
                raise about from None
            first = first or about
            continue
        plugins.append(plugin)
        found.append(described)
        warnings += [{"message": each, "file": described["file"], "line": described["line"]} for each in remarks]
    if wrong is None and first is not None:
        raise first
    return plugins, found, warnings


def is_annotation_error(exc: BaseException) -> bool:
    annotations = sys.modules.get("ordain_worker.annotations")
    return annotations is not None and isinstance(exc, annotations.AnnotationError)


def dataclasses_of(modules: list[str]) -> list[dict[str, Any]]:
    """The dataclasses in the packages of these modules."""
    from ordain_worker.annotations import dataclass_entity

    found = []
    prefixes = tuple(f"{PACKAGE}.{module}" for module in modules)
    for name, module in list(sys.modules.items()):
        if module is None or not any(name == each or name.startswith(each + ".") for each in prefixes):
            continue
        for bound, value in list(vars(module).items()):
            if not isinstance(value, type):
                continue
            entity = dataclass_entity(value)
            if entity is not None:
                described = _dataclass(entity, value)
                found.append({**described, "name": "::".join([*name.split(".")[1:], bound]), "class": entity})
            elif value.__module__ == name:
                found.append(_plain(value))
    return found


def twin_of(namespace: str, name: str) -> dict[str, Any]:
    """What has the name of an entity that should be a dataclass, if it is not a class of the module.

    Upstream gives whatever it is an attribute, to know it again, and asks it for its name when it turns out to be no
    dataclass. Both may fail: ``refused`` and ``nameless`` are the exceptions.
    """
    import dataclasses

    python = f"{PACKAGE}.{namespace.replace('::', '.')}"
    __import__(python)
    try:
        value = getattr(sys.modules[python], name, None)
        if value is None:
            return {}
        value._paired_inmanta_entity = name
        _forget(value)
    except Exception as exc:
        return {"refused": exc}
    try:
        is_dataclass = dataclasses.is_dataclass(value)
        if not value or is_dataclass and value.__dataclass_params__.frozen:
            return {}
        called = value.__name__
    except Exception as exc:
        return {"nameless": exc}
    code = getattr(value, "__code__", None)
    return {
        "found": {
            "name": f"{namespace}::{name}",
            "plain": not is_dataclass,
            "called": str(called),
            "kind": type(value).__name__,
            "file": getattr(code, "co_filename", ""),
            "line": getattr(code, "co_firstlineno", 0),
        }
    }


def _forget(value: Any) -> None:
    try:
        del value._paired_inmanta_entity
    except Exception:  # it keeps it, as upstream
        pass


def _plain(cls: type) -> dict[str, Any]:
    """The description of a class that is not a dataclass, for the error about its entity."""
    return {
        "name": "::".join([*cls.__module__.split(".")[1:], cls.__qualname__]),
        "plain": True,
        "file": getattr(sys.modules.get(cls.__module__), "__file__", "") or "",
        "line": getattr(cls, "__firstlineno__", 0),
    }


def _dataclass(entity: str, cls: type) -> dict[str, Any]:
    import dataclasses
    import inspect
    import typing

    from ordain_worker.annotations import AnnotationError, Normalizer

    normalizer = Normalizer(entity)
    try:
        hints = typing.get_type_hints(cls)  # what Annotated adds does not count
    except Exception:  # names that exist only for type checkers
        hints = {}
    fields = []
    for field in dataclasses.fields(cls):
        try:
            kind = normalizer.annotation(hints.get(field.name, field.type))
        except AnnotationError as exc:
            kind = {"k": "unfit", "name": exc.error, "text": str(exc)}
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
