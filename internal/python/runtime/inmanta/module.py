"""The project and its modules, for plug-ins that inspect them."""

from __future__ import annotations

import os

from inmanta._fallback import lacking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
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
    """project.yml, or the file that describes a module, is wrong."""


class ModuleLike:
    """Base of projects and modules: a folder with a file that describes it."""

    name: str
    _path: str
    _metadata: Any = None

    @property
    def path(self) -> str:
        return self._path

    @property
    def metadata(self) -> Any:
        """The content of project.yml or the file of the module."""
        if self._metadata is None:
            self._metadata = self._read_metadata()
        return self._metadata

    def _read_metadata(self) -> Any:
        raise NotImplementedError()

    def get_metadata_file_path(self) -> str:
        raise NotImplementedError()

    def get_all_python_requirements_as_list(self) -> list[str]:
        from inmanta import _modulefiles

        return _modulefiles.requirements(self._path)

    def get_strict_python_requirements_as_list(self) -> list[str]:
        """The requirements that are not modules."""
        return [each for each in self.get_all_python_requirements_as_list() if not each.startswith(_DISTRIBUTION)]

    def get_module_v2_requirements(self) -> list[Any]:
        from inmanta import _modulefiles

        found = (each for each in self.get_all_python_requirements_as_list() if each.startswith(_DISTRIBUTION))
        return [_modulefiles.Requirement(each.removeprefix(_DISTRIBUTION)) for each in found]

    def get_module_requirements(self) -> list[str]:
        return [*getattr(self.metadata, "requires", ()), *map(str, self.get_module_v2_requirements())]

    def requires(self) -> list[Any]:
        """The required modules, with the constraints on their versions."""
        from inmanta import _modulefiles

        return [_modulefiles.Requirement(each) for each in self.get_module_requirements()]

    def has_module_requirement(self, module_name: str) -> bool:
        return any(each.name == module_name for each in self.requires())

    @property
    def freeze_recursive(self) -> bool:
        return self.metadata.freeze_recursive

    @property
    def freeze_operator(self) -> str:
        return self.metadata.freeze_operator

    @classmethod
    def get_first_directory_containing_file(cls, cur_dir: str, filename: str) -> str:
        """The nearest folder, from this one upwards, with a file of that name."""
        while not os.path.exists(os.path.join(cur_dir, filename)):
            above = os.path.abspath(os.path.join(cur_dir, os.pardir))
            if above == cur_dir:
                raise FileNotFoundError(f"No file with name {filename} exists in any of the parent directories")
            cur_dir = above
        return cur_dir


_DISTRIBUTION = "inmanta-module-"


class _Generation:
    """The attribute GENERATION of the classes of modules. An enum costs an import, and few ask."""

    def __get__(self, made: object, cls: Any = None) -> Any:
        from inmanta._modulefiles import ModuleGeneration

        return ModuleGeneration.V2 if issubclass(cls, ModuleV2) else ModuleGeneration.V1


class Module(ModuleLike):
    """A module on the disk; mostly one that the model loaded."""

    GENERATION = _Generation()

    MODULE_FILE = "module.yml"
    MODEL_DIR = "model"

    def __init__(self, project: Optional[Project], path: str, name: Optional[str] = None, version: str = "") -> None:
        self._project = project
        self._path = path  # std reads it
        if name is None:
            name = self._name_of(self.metadata.name)
            version = version or self.metadata.version
        self.name = name
        self._version = version

    @staticmethod
    def _name_of(said: str) -> str:
        return said

    def _read_metadata(self) -> Any:
        from inmanta import _modulefiles

        return _modulefiles.metadata_of(self)

    @classmethod
    def from_path(cls, path: str) -> Optional[Module]:
        for kind in (ModuleV1, ModuleV2) if cls is Module else (cls,):
            if os.path.exists(os.path.join(path, kind.MODULE_FILE)):
                return kind(None, path)
        return None

    @classmethod
    def get_module_dir(cls, module_subdirectory: str) -> str:
        try:
            return cls.get_first_directory_containing_file(module_subdirectory, cls.MODULE_FILE)
        except FileNotFoundError:
            raise InvalidModuleException(
                f"Directory {module_subdirectory} is not part of a valid {cls.GENERATION.name} module"
            ) from None

    @property
    def model_dir(self) -> str:
        return os.path.join(self._path, "model")

    def get_metadata_file_path(self) -> str:
        return os.path.join(self._path, self.MODULE_FILE)

    def get_version(self) -> Any:
        """The version, comparable if the environment has the package for it, or else as text."""
        from inmanta import _modulefiles

        return _modulefiles.comparable(self._version)

    version = property(get_version)

    def get_plugin_dir(self) -> Optional[str]:
        below = os.path.join(self._path, "plugins")
        return below if os.path.exists(below) else None

    def get_plugin_files(self) -> Iterator[tuple[str, str]]:
        """The Python files of the module, with the names of their modules."""
        from inmanta import _modulefiles

        return iter(_modulefiles.plugin_files(self))

    def get_all_submodules(self) -> list[str]:
        """The names of all namespaces with a file, whether the model loads them or not."""
        from inmanta import _modulefiles

        return _modulefiles.submodules(self)

    def get_imports(self, name: str) -> list[Any]:
        """The imports of the file of a namespace."""
        from inmanta import _modulefiles

        return _modulefiles.imports_of(self, name)

    def get_freeze(self, submodule: str, recursive: bool = False, mode: str = ">=") -> dict[str, str]:
        from inmanta import _modulefiles

        return _modulefiles.frozen(self, submodule, recursive, mode)

    def ensure_versioned(self) -> None:
        """Does nothing, because a compile does not care whether a module is in a repository."""


class ModuleV1(Module):
    """A folder on the modulepath."""

    @property
    def compiler_version(self) -> Optional[str]:
        return str(self.metadata.compiler_version)

    def get_all_requires(self) -> list[Any]:
        """A requirement for each module that one of its files imports."""
        from inmanta import _modulefiles

        return _modulefiles.all_requires(self)


class ModuleV2(Module):
    """A Python package."""

    MODULE_FILE = "setup.cfg"
    PKG_NAME_PREFIX = _DISTRIBUTION

    _editable = False

    @staticmethod
    def _name_of(said: str) -> str:
        return said.removeprefix(_DISTRIBUTION).replace("-", "_")

    def is_editable(self) -> bool:
        return self._editable

    def get_plugin_dir(self) -> str:
        return os.path.join(self._path, "inmanta_plugins", self.name) if self._editable else self._path

    def get_all_python_requirements_as_list(self) -> list[str]:
        return list(self.metadata.install_requires)


def loaded_module(project: Project, described: dict[str, Any]) -> Module:
    """A module as the compiler found it."""
    root, folder = described["root"], described.get("dir")
    first = not folder or folder == os.path.join(root, "plugins")
    made = (ModuleV1 if first else ModuleV2)(project, root, described["name"], described.get("version") or "")
    if isinstance(made, ModuleV2):
        made._editable = folder != root
    return made


class Project(ModuleLike):
    """The project that is compiled. :meth:`get` returns it."""

    PROJECT_FILE = "project.yml"

    _current: ClassVar[Optional["Project"]] = None

    def __init__(
        self,
        path: str,
        name: str = "",
        modules: Iterable[dict[str, Any]] = (),
        metadata: Optional[dict[str, Any]] = None,
        modulepath: Iterable[str] = (),
        autostd: bool = True,
    ):
        self._path = path
        self.name = name
        self.modulepath = list(modulepath)
        self.main_file = "main.cf"
        self.loaded = True
        self.autostd = autostd
        self.modules: dict[str, Module] = {each["name"]: loaded_module(self, each) for each in modules}
        self._said = metadata or {}

    def _read_metadata(self) -> Any:
        from inmanta import _modulefiles

        return _modulefiles.project_metadata(self)

    @classmethod
    def set(cls, project: "Project", *, clean: bool = True) -> None:
        cls._current = project

    @classmethod
    def get(cls, main_file: str = "main.cf") -> "Project":
        if cls._current is None:
            raise ProjectNotFoundException("There is no project here: it exists during a compile only")
        return cls._current

    @classmethod
    def get_project_dir(cls, cur_dir: str) -> str:
        try:
            return cls.get_first_directory_containing_file(cur_dir, cls.PROJECT_FILE)
        except FileNotFoundError:
            raise ProjectNotFoundException(f"Unable to find an inmanta project ({cls.PROJECT_FILE} expected)") from None

    def get_metadata_file_path(self) -> str:
        return os.path.join(self._path, self.PROJECT_FILE)

    @property
    def project_path(self) -> str:
        return self._path

    @property
    def downloadpath(self) -> Optional[str]:
        return self.metadata.downloadpath

    @property
    def install_mode(self) -> Any:
        return self.metadata.install_mode

    @property
    def root_ns(self) -> Any:
        return self.get_root_namespace()

    def get_root_namespace(self) -> Any:
        from inmanta.ast import Namespace

        return Namespace("__root__")

    def load(self, install: bool = False) -> None:
        """Does nothing, because the project is loaded already."""

    def get_imports(self) -> list[Any]:
        """The imports of main.cf."""
        from inmanta import _modulefiles

        return _modulefiles.read_imports(self, os.path.join(self._path, self.main_file), True)

    def get_freeze(self, mode: str = "==", recursive: bool = False) -> dict[str, str]:
        names = self.modules if recursive else [each.name.partition("::")[0] for each in self.get_imports()]
        return {name: f"{mode} {self.modules[name].version}" for name in names}

    def get_all_python_requirements_as_list(self) -> list[str]:
        return [*super().get_all_python_requirements_as_list(), *([_DISTRIBUTION + "std"] if self.autostd else [])]

    def collect_requirements(self) -> dict[str, list[Any]]:
        """The requirements of the project and its modules on modules, by module."""
        found: dict[str, list[Any]] = {}
        for each in (self, *self.modules.values()):
            for wish in each.requires():
                found.setdefault(wish.name, []).append(wish)
        return found

    def collect_imported_requirements(self) -> dict[str, list[Any]]:
        """The requirements on imported modules, by module. A module without any has just its name."""
        from inmanta import _modulefiles

        wanted = self.collect_requirements()
        return {name: wanted.get(name) or [_modulefiles.Requirement(name)] for name in self.modules}

    def module_v2_source_configured(self) -> bool:
        return any(each.type.name == "package" for each in self.metadata.repo)

    def get_modules(self) -> dict[str, Module]:
        return self.modules

    def get_module(self, full_module_name: str, **_: object) -> Module:
        name = full_module_name.partition("::")[0]
        if name not in self.modules:
            raise ModuleNotFoundException(f"Could not find module {name}: the model does not load it")
        return self.modules[name]

    def sorted_modules(self) -> list[Module]:
        return [self.modules[name] for name in sorted(self.modules)]


_lacking = lacking(__name__)


def __getattr__(name: str) -> object:
    if name in ("InstallMode", "ModuleGeneration", "ModuleRepoInfo", "ModuleRepoType", "ProjectPipConfig"):
        from inmanta import _modulefiles

        return getattr(_modulefiles, name)
    return _lacking(name)
