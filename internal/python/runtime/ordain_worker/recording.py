"""Records on what the import of the modules depends, and what else it changes.

    with recording() as record:
        with record.turn("mod"):     # the imports of one module, in their order
            …
    record.table()

The compiler keeps the result of a load and does not start Python for it again as
long as everything that the load has read is unchanged. Then it also imports a
module only when it is used, if the module changed nothing but itself. For both
it must know what the imports did:

* An audit hook records the files and folders that are read. A load that does
  anything outside of the process is not kept.
* ``os.environ`` records the variables that are read.
* Names and classes of all Python modules are compared before and after each
  turn, and with their state at the end of their own import, to find what other
  code has patched. For the modules of the model that a turn can reach, all
  objects are compared.
"""

import importlib
import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Optional

from ordain_worker import statewalk
from ordain_worker.loading import PACKAGE, top

_CODE = (FunctionType, BuiltinFunctionType, classmethod, staticmethod, property, type)
_OUTSIDE = frozenset(
    (
        "subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn",
        "os.kill", "os.killpg", "os.remove", "os.rename", "os.mkdir", "os.rmdir",
        "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate", "os.utime", "os.chdir", "os.setxattr",
        "shutil.copyfile", "shutil.move", "shutil.rmtree", "socket.connect", "socket.bind", "socket.getaddrinfo",
        "socket.gethostbyname", "socket.sendto", "socket.gethostname", "sqlite3.connect", "signal.pthread_kill",
    )
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class _Watched(os._Environ):  # type: ignore[type-arg]
    """os.environ that records which variables are read."""

    def __getitem__(self, key: Any) -> str:
        if _current is not None and isinstance(key, str):
            _current.variables.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        if _current is not None and isinstance(key, str):
            _current.variables.add(key)
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        if _current is not None:
            _current.all_variables = True
        return super().__iter__()


class Record:
    """The record of a load."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.variables: set[str] = set()
        self.all_variables = False
        self.problems: list[str] = []  # why this load cannot be kept
        self.shared: set[str] = set()  # modules whose import changed more than themselves
        self.early: set[str] = set()  # modules that another one imported before their turn
        self._turn = ""
        self._environ = dict(os.environ)
        self._registries = _registries()
        self._seen: dict[str, _State] = {}
        self._libraries: dict[str, Optional[dict[str, int]]] = {}
        self._standard: tuple[Any, ...] = ()
        self._within = False  # a library is being imported, whose changes elsewhere are its own business
        self._registered = False  # code of the turn registered something with a library
        self._turns: list[str] = []
        self._all_shared = False
        self._streams = (sys.stdout, sys.stderr)

    @contextmanager
    def turn(self, name: str) -> Iterator[None]:
        """The imports of one module."""
        self._turn = name
        if not self._seen:
            self._seen = {each: _State(module, self._registries) for each, module in list(sys.modules.items())}
        before = _process()
        self._registered = False
        self._renew()
        own = f"{PACKAGE}.{name}"
        started = {each for each in self._seen if top(each)}
        yield
        brought = {top(each) for each in sys.modules if each not in started} - {"", name}
        self.early |= brought
        touched = self._touched(own)
        if _process() != before or self._registered or self._library_changed():
            touched.add("")
        text = _text(name)
        if re.search(r"\bcodecs\.register", text):
            touched.add("")
        if re.search(r"\bsys\.modules\b", text):  # it may look at the others
            self._all_shared = True
        self._turns.append(name)
        if touched or any(_names(each, own) for each in brought):
            self.shared |= {name, *brought, *filter(None, map(top, touched))}
        for each, module in list(sys.modules.items()):  # the state after this turn is the state before the next
            if each not in self._seen or each in touched or top(each) == name:
                self._seen[each] = _State(module, self._registries)

    def imported(self, name: str) -> None:
        """Called at the end of the import of a Python module."""
        module = sys.modules.get(name)
        if module is not None and name not in self._seen:
            self._seen[name] = _State(module, self._registries)

    @contextmanager
    def importing(self, name: str) -> Iterator[None]:
        """Called at the beginning of the import of a Python module. Changes during the import of a library do not count,
        because every module that needs the library imports it too.
        """
        if self._within or top(name) or name == PACKAGE:
            yield
            return
        self._registered = self._registered or self._library_changed()
        self._within = True
        try:
            yield
        finally:
            self._within = False
            self._renew()

    def _renew(self) -> None:
        self._standard = statewalk.standard()
        self._libraries = {each: statewalk.library(module) for each, module in list(sys.modules.items())}

    def _library_changed(self) -> bool:
        """Whether registries of libraries have grown or shrunk since the last import of a library."""
        if statewalk.standard() != self._standard:
            return True
        return any(
            sizes is not None and name in sys.modules and statewalk.library(sys.modules[name]) != sizes
            for name, sizes in self._libraries.items()
        )

    def _touched(self, own: str) -> set[str]:
        """Python modules that have changed since the end of their import."""
        found = set()
        reached = _reached(top(own))
        for name, state in list(self._seen.items()):
            if name == own or name.startswith(own + "."):
                continue
            module = sys.modules.get(name)
            if module is not state.module or state.changed(module) or top(name) in reached and state.walk_changed():
                found.add(name)
        return found

    def note(self, event: str, args: tuple[Any, ...]) -> None:
        """An audit event."""
        if event == "open":
            path, mode, flags = args
            if isinstance(path, int):
                return
            path = os.fsdecode(path)
            if flags & _WRITING or (mode and any(each in mode for each in "wax+")):
                if "__pycache__" not in path and path != os.devnull:
                    self.problems.append(f"{self._turn} writes {path}")
            elif not path.endswith(".pyc"):
                self.files.add(path)
        elif event in _OUTSIDE:
            if not any("__pycache__" in str(each) for each in args):
                self.problems.append(f"{self._turn}: {event}")

    def table(self) -> dict[str, Any]:
        """What Go needs to keep the load and to repeat parts of it."""
        if (sys.stdout, sys.stderr) != self._streams:  # by modules that print elsewhere
            self.problems.append("standard output or error was replaced")
        folders = set(each or os.curdir for each in sys.path)
        for finder in sys.meta_path:
            folders.update(getattr(finder, "looked", ()))
        files = set(map(os.path.abspath, self.files))
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str):
                files.add(file)
            try:
                folders.update(each for each in getattr(module, "__path__", ()) if isinstance(each, str))
            except Exception:
                self.problems.append("a package with an unusual __path__")
        runtime = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        own = (runtime + os.sep, os.path.dirname(os.__file__) + os.sep)

        def foreign(path: str) -> bool:
            # The runtime and the standard library belong to the identity of the worker itself.
            return (
                not path.startswith(own)
                or f"{os.sep}site-packages{os.sep}" in path
                or f"{os.sep}dist-packages{os.sep}" in path
            )

        return {
            "files": sorted(filter(foreign, files)),
            "folders": sorted(each for each in folders if foreign(each + os.sep)),
            "variables": None
            if self.all_variables
            else {each: self._environ.get(each) for each in sorted(self.variables)},
            "problems": self.problems[:10],
            "shared": sorted(self._turns if self._all_shared else self.shared),
            "early": sorted(self.early),
        }


class _State:
    """The names of a Python module and of the classes that it defines."""

    __slots__ = ("module", "names", "parts", "sizes", "strict", "walk")

    def __init__(self, module: Any, registries: set[int]) -> None:
        name = getattr(module, "__name__", "")
        self.module = module
        names = getattr(module, "__dict__", None)
        self.names: dict[str, Any] = dict(names) if isinstance(names, dict) else {}
        self.strict = name.partition(".")[0] in ("inmanta", PACKAGE)
        # Classes, in our modules functions and plug-ins too, with their attributes.
        self.parts: dict[Any, dict[str, Any]] = {}
        if self.strict or name.partition(".")[0] not in sys.stdlib_module_names:
            for value in list(self.names.values()):
                if isinstance(value, type) and value.__module__ == name:
                    self.parts[value] = _attributes(value)
                elif self.strict and isinstance(value, FunctionType) and value.__module__ == name:
                    self.parts[value] = _attributes(value)
                    plugin = vars(value).get("__plugin__")
                    if isinstance(plugin, type):
                        self.parts[plugin] = _attributes(plugin)
        self.sizes = {id(each): (each, len(each)) for each in self._containers(registries)} if self.strict else {}
        self.walk = _walk(module, top(name)) if top(name) else None

    def _containers(self, registries: set[int]) -> Iterator[Any]:
        for names in (self.names, *self.parts.values()):
            for value in names.values():
                if type(value) in (list, dict, set) and id(value) not in registries:
                    yield value

    def changed(self, module: ModuleType) -> bool:
        return (
            self._differs(self.names, vars(module))
            or any(self._differs(old, _attributes(part)) for part, old in self.parts.items())
            or any(len(each) != size for each, size in self.sizes.values())
        )

    def walk_changed(self) -> bool:
        return self.walk is not None and self.walk.changed()

    def _differs(self, old: dict[str, Any], new: Any) -> bool:
        for name, value in new.items():
            before = old.get(name, _ABSENT)
            if value is before or (name.startswith("__") and name.endswith("__") and name not in _METHODS):
                continue
            if isinstance(value, ModuleType):
                continue  # a submodule that was imported
            if self.strict:
                if name not in ("_abc_impl",):
                    return True
            elif before is not _ABSENT and (isinstance(value, _CODE) or isinstance(before, _CODE)):
                return True
        return any(name not in new for name in old) if self.strict else False


def _attributes(part: Any) -> dict[str, Any]:
    if isinstance(part, FunctionType):
        return {**vars(part), "code": part.__code__, "defaults": part.__defaults__}
    return dict(vars(part))


_ABSENT = object()
_METHODS = frozenset(
    f"__{each}__"
    for each in "init new call str repr eq hash getattr getattribute setattr getitem iter len enter exit plugin".split()
)


def _registries() -> set[int]:
    """Containers that modules register themselves in."""
    from inmanta import plugins, references, resources
    from inmanta.agent.handler import Commander
    from inmanta.compiler import Finalizers
    from inmanta.export import Exporter

    found = [
        plugins.PluginMeta._PluginMeta__functions,  # type: ignore[attr-defined]
        plugins._objects,
        resources.resource._resources,
        references.reference._register,
        references.mutator._register,
        Finalizers._Finalizers__functions,  # type: ignore[attr-defined]
        Exporter._dependency_managers,
        Exporter._export_functions,
        Commander._handlers,
    ]
    return set(map(id, found))


def _process() -> tuple[Any, ...]:
    """State that all modules of the process share."""
    socket = sys.modules.get("socket")
    return (
        dict(os.environ._data),  # type: ignore[attr-defined]
        list(sys.path),
        list(map(id, sys.meta_path)),
        list(map(id, sys.path_hooks)),
        list(warnings.filters),
        list(logging.root.handlers),
        logging.root.level,
        logging.getLoggerClass(),
        threading.active_count(),
        sys.getrecursionlimit(),
        socket.getdefaulttimeout() if socket is not None else None,
        os.getcwd(),
    )


def _text(module: str) -> str:
    """The source of all files of a module of the model that were imported."""
    parts = []
    for name, each in list(sys.modules.items()):
        if top(name) == module:
            try:
                with open(each.__file__ or "", encoding="utf-8", errors="replace") as file:
                    parts.append(file.read())
            except (OSError, AttributeError, TypeError):
                continue
    return "\n".join(parts)


def _names(module: str, other: str) -> bool:
    """Whether the code of a module mentions another one. They may import each other, in an order that matters."""
    return re.search(rf"\b{re.escape(other.rpartition('.')[2])}\b", _text(module)) is not None


def _walk(module: ModuleType, of: str) -> statewalk.Walk:
    return statewalk.Walk(module, f"{PACKAGE}.{of}", "__subclasses__" in _text(of))


def _reached(module: str) -> set[str]:
    """The modules of the model that the code of one can reach: those that it mentions, those that these mention, and so on.

    Code that looks up Python modules by itself can reach all of them.
    """
    loaded = {each for each in map(top, list(sys.modules)) if each}
    found: set[str] = set()
    waiting = [module]
    while waiting:
        text = _text(waiting.pop())
        if re.search(r"\bsys\.modules\b|\b(importlib|__import__|gc|__subclasses__)\b", text):
            return loaded
        more = {each for each in loaded - found if re.search(rf"\b{re.escape(each)}\b", text)}
        found |= more
        waiting.extend(more)
    return found


_current: Optional[Record] = None


@contextmanager
def recording() -> Iterator[Record]:
    """A context in which imports are recorded."""
    global _current
    record = Record()
    bootstrap: Any = importlib._bootstrap  # type: ignore[attr-defined]
    load = bootstrap._load_unlocked

    def load_and_tell(spec: Any) -> Any:
        with record.importing(spec.name):
            made = load(spec)
        record.imported(spec.name)
        return made

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if _current is not None:
            _current.note(event, args)

    def write(text: str) -> int:
        record.problems.append("something was written to standard error")
        return type(sys.stderr).write(sys.stderr, text)

    sys.stderr.write = write  # type: ignore[method-assign]
    environ = os.environ.__class__
    sys.addaudithook(hook)
    os.environ.__class__ = _Watched
    bootstrap._load_unlocked = load_and_tell
    _current = record
    try:
        yield record
    finally:
        _current = None
        del sys.stderr.write
        bootstrap._load_unlocked = load
        os.environ.__class__ = environ
