"""The project and its modules, as far as plug-ins look at them."""

from __future__ import annotations

import os

from inmanta._fallback import lacking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, ClassVar, Optional


class ModuleException(Exception):
    """Something is wrong with a module."""


class ProjectNotFoundException(Exception):
    """There is no project here."""


class InvalidModuleException(ModuleException):
    """A folder is not a module."""


class ModuleNotFoundException(ModuleException):
    """There is no such module."""


class InvalidMetadata(ModuleException):
    """project.yml, or what describes a module, is wrong."""


class _Metadata:
    """Fields of project.yml or of a module's metadata as attributes."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class Module:
    """A module that the model loaded."""

    def __init__(self, name: str, path: str, version: str = "") -> None:
        self.name = name
        self._path = path  # std reads it
        self._version = version
        self.metadata = _Metadata({"name": name, "version": version})

    @property
    def path(self) -> str:
        return self._path

    @property
    def model_dir(self) -> str:
        return os.path.join(self._path, "model")

    def get_version(self) -> Any:
        """The version as one to compare, where the environment has what compares versions; else its text."""
        try:
            from packaging.version import InvalidVersion, Version
        except ImportError:
            return self._version
        try:
            return Version(self._version)
        except InvalidVersion:
            return self._version

    version = property(get_version)

    def get_plugin_dir(self) -> Optional[str]:
        below = os.path.join(self._path, "plugins")
        return below if os.path.isdir(below) else self._path


ModuleV1 = Module
ModuleV2 = Module


class Project:
    """The project that is compiled. There is one; :meth:`get` gives it."""

    _current: ClassVar[Optional["Project"]] = None

    def __init__(
        self,
        path: str,
        name: str = "",
        modules: Iterable[Module] = (),
        metadata: Optional[dict[str, Any]] = None,
        modulepath: Iterable[str] = (),
    ):
        self._path = path
        self.modulepath = list(modulepath)
        self.main_file = "main.cf"
        self.loaded = True
        self.modules: dict[str, Module] = {module.name: module for module in modules}
        self.metadata = _Metadata({"name": name, **(metadata or {})})

    @classmethod
    def set(cls, project: "Project", *, clean: bool = True) -> None:
        cls._current = project

    @classmethod
    def get(cls, main_file: str = "main.cf") -> "Project":
        if cls._current is None:
            raise ProjectNotFoundException("There is no project here: it exists during a compile only")
        return cls._current

    @property
    def path(self) -> str:
        return self._path

    @property
    def project_path(self) -> str:
        return self._path

    @property
    def name(self) -> str:
        return self.metadata.name

    def get_modules(self) -> dict[str, Module]:
        return self.modules

    def get_module(self, full_module_name: str, **_: object) -> Module:
        name = full_module_name.partition("::")[0]
        if name not in self.modules:
            raise InvalidModuleException(f"the model does not load module {name}")
        return self.modules[name]

    def sorted_modules(self) -> list[Module]:
        return [self.modules[name] for name in sorted(self.modules)]


__getattr__ = lacking(__name__)
