"""Reads the files of a project and its modules, for the few plug-ins that want to know."""

from __future__ import annotations

import os
import re
from enum import Enum
from typing import Any, Optional

from inmanta.ast import Location, Range
from inmanta.execute import runtime
from inmanta.module import InvalidMetadata, InvalidModuleException, Module, Project


class ModuleGeneration(Enum):
    """The kind of a module: a folder on the modulepath, or a Python package."""

    V1 = 1
    V2 = 2


class InstallMode(str, Enum):
    """Which versions of a module may be installed."""

    release = "release"
    prerelease = "prerelease"
    master = "master"


class ModuleRepoType(Enum):
    """What a repository of modules is."""

    git = "git"
    package = "package"


class Fields:
    """A record that prints with the names of its fields."""

    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)

    def model_dump(self) -> dict[str, Any]:
        return {name: _plain(each) for name, each in vars(self).items()}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return " ".join(f"{name}={each!r}" for name, each in vars(self).items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={each!r}' for name, each in vars(self).items())})"


def _plain(value: object) -> object:
    if isinstance(value, Fields):
        return value.model_dump()
    return [_plain(each) for each in value] if isinstance(value, list) else value


class ModuleRepoInfo(Fields):
    """A repository of modules."""


class ProjectPipConfig(Fields):
    """Where packages come from."""


def comparable(version: str) -> Any:
    """A version that can be compared, if the environment has the package for it, or else its text."""
    try:
        from packaging.version import InvalidVersion, Version
    except ImportError:
        return version
    try:
        return Version(version)
    except InvalidVersion:
        return version


class ProjectMetadata(Fields):
    """project.yml."""


class ModuleV1Metadata(Fields):
    """module.yml."""

    def get_full_version(self) -> Any:
        return comparable(self.version)  # type: ignore[attr-defined]


class ModuleV2Metadata(Fields):
    """setup.cfg."""

    def get_full_version(self) -> Any:
        tag = self.version_tag  # type: ignore[attr-defined]
        return comparable(f"{self.version}.{tag}" if tag else self.version)  # type: ignore[attr-defined]


class Requirement:
    """A module, and what is wanted of its version."""

    def __init__(self, text: str) -> None:
        name = text.strip()
        end = next((at for at, char in enumerate(name) if not (char.isalnum() or char in "-_.")), len(name))
        self.name = self.key = name[:end].replace("-", "_")
        self._wanted = "".join(name[end:].split())

    @property
    def specifier(self) -> Any:
        from packaging.specifiers import SpecifierSet

        return SpecifierSet(self._wanted)

    def __str__(self) -> str:
        return self.name + self._wanted

    def __repr__(self) -> str:
        return f"Requirement({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Requirement) and str(other) == str(self)

    def __hash__(self) -> int:
        return hash(str(self))


class DefineImport:
    """An import of a file."""

    def __init__(self, name: str, toname: str, location: Location) -> None:
        self.name, self.toname, self.location = name, toname, location

    def get_location(self) -> Location:
        return self.location

    def __str__(self) -> str:
        return f"import {self.name}" if self.name == self.toname else f"import {self.name} as {self.toname}"


def project_metadata(project: Project) -> ProjectMetadata:
    said = project._said
    pip = said.get("pip") or {}
    return ProjectMetadata(
        requires=said.get("requires") or [],
        name=project.name,
        description=said.get("description"),
        freeze_recursive=said.get("freeze_recursive", False),
        freeze_operator=said.get("freeze_operator", "~="),
        author=said.get("author"),
        author_email=said.get("author_email"),
        license=said.get("license"),
        copyright=said.get("copyright"),
        modulepath=list(project.modulepath),
        repo=[ModuleRepoInfo(url=url, type=ModuleRepoType(kind)) for url, kind in said.get("repo") or ()],
        downloadpath=said.get("downloadpath"),
        install_mode=InstallMode(said.get("install_mode", "release")),
        relation_precedence_policy=said.get("relation_precedence_policy") or [],
        pip=ProjectPipConfig(
            index_url=pip.get("index_url"),
            extra_index_url=pip.get("extra_index_url") or [],
            pre=pip.get("pre"),
            use_system_config=pip.get("use_system_config", False),
        ),
        environment_settings=said.get("environment_settings"),
    )


def metadata_of(module: Module) -> Any:
    with open(module.get_metadata_file_path(), "rb"):  # read here, so that a recorded load depends on the file
        pass
    told = runtime.model().about_module(module._path)
    if told is None:
        raise InvalidMetadata(f"nothing is known of the module in {module._path}")
    return (ModuleV1Metadata if told["generation"] == 1 else ModuleV2Metadata)(**dict(told["fields"]))


def requirements(folder: str) -> list[str]:
    """The requirements in requirements.txt."""
    try:
        with open(os.path.join(folder, "requirements.txt"), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    named = (re.split(r"\s#", line.lstrip(), maxsplit=1)[0] for line in lines)
    return [line for line in named if line.strip() and not line.startswith("#")]


def submodules(module: Module) -> list[str]:
    found: list[str] = []

    def walk(folder: str, namespace: str) -> None:
        if not os.path.exists(os.path.join(folder, "_init.cf")):
            return
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if os.path.isdir(path):
                walk(path, f"{namespace}::{name}")
            elif name.endswith(".cf"):
                found.append(namespace if name == "_init.cf" else f"{namespace}::{name[:-3]}")

    walk(module.model_dir, module.name)
    return found


def _file_of(module: Module, name: str) -> str:
    parts = name.split("::")[1:]
    folder = os.path.join(module.model_dir, *parts)
    return os.path.join(folder, "_init.cf") if not parts or os.path.isdir(folder) else folder + ".cf"


def imports_of(module: Module, name: str) -> list[DefineImport]:
    if module._project is None:
        raise ValueError("Can only get module's imports in the context of a project.")
    try:
        return read_imports(module._project, _file_of(module, name), module.name != "std")
    except FileNotFoundError as exc:
        raise InvalidModuleException(f"could not locate module with name: {name}") from exc


def read_imports(project: Project, file: str, implied: bool) -> list[DefineImport]:
    """The imports of a file, including std if every file imports it."""
    with open(file, "rb"):  # read here, so that a recorded load depends on the file
        pass
    found = [
        DefineImport(name, toname, Location(file, line)) for name, toname, line in runtime.model().imports_in(file)
    ]
    if implied and project.autostd:
        found.insert(0, DefineImport("std", "std", Range("__internal__", 1, 1, 1, 1)))
    return found


def frozen(module: Module, namespace: str, recursive: bool, mode: str) -> dict[str, str]:
    if module._project is None:
        raise ValueError("Can only get module's freeze in the context of a project.")
    out: dict[str, str] = {}
    todo = [each.name for each in module.get_imports(namespace)]
    for name in todo:
        if name not in out:
            of = module._project.get_module(name)
            out[name] = f"{mode} {of.version}"
            if recursive:
                todo += [each.name for each in of.get_imports(name)]
    return {name: version for name, version in out.items() if "::" not in name}


def all_requires(module: Module) -> list[Requirement]:
    wanted = {each.name: each for each in module.requires()}
    names = {
        each.name.partition("::")[0]
        for name in sorted(module.get_all_submodules())
        for each in module.get_imports(name)
    }
    return [wanted.get(name) or Requirement(name) for name in sorted(names)]


def plugin_files(module: Module) -> list[tuple[str, str]]:
    folder: Optional[str] = module.get_plugin_dir()
    if folder is None:
        return []
    if not any(os.path.exists(os.path.join(folder, name)) for name in ("__init__.py", "__init__.pyc")):
        raise InvalidModuleException(f"Directory {folder} should be a valid python package with a __init__.py file")
    found = []
    for base, below, files in os.walk(folder):
        below[:] = sorted(
            each
            for each in below
            if each != "__pycache__" and not (base == folder and each in ("model", "files", "templates"))
        )
        names = [each for each in files if each.endswith(".py") or (each.endswith(".pyc") and each[:-1] not in files)]
        for name in sorted(names, key=lambda each: (not each.startswith("__init__."), each)):
            parts = [each for each in os.path.relpath(base, folder).split(os.sep) if each != "."] + [
                name.partition(".")[0]
            ]
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found.append((os.path.join(base, name), ".".join(["inmanta_plugins", module.name, *parts])))
    return found
