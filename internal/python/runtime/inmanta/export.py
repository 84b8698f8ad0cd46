"""Exporting: what modules register for it, and what their functions get."""

from collections.abc import Callable
from typing import Any, ClassVar, Union

from inmanta import resources, util
from inmanta._fallback import lacking
from inmanta.ast.entity import Entity
from inmanta.execute.proxy import DynamicProxy
from inmanta.execute.util import Unknown
from inmanta.resources import Id, Resource
from inmanta.util import hash_file

ModelDict = dict[str, Entity]
ResourceDict = dict[Id, Resource]
ProxiedType = dict[str, Any]

# Parameters that plug-ins requested and that are unknown: {"resource": id, "parameter": name, "source": "fact"}.
unknown_parameters: list[dict[str, str]] = []


class DependencyCycleException(Exception):
    """Resources require each other in a circle."""

    def __init__(self, start: Resource) -> None:
        self.start = start
        self.cycle = [start]

    def __str__(self) -> str:
        return f"Cycle in dependencies: {self.cycle}"


class Exporter:
    """The exporter that methods of resource classes get."""

    _dependency_managers: ClassVar[list[Callable[[ModelDict, ResourceDict], None]]] = []
    _export_functions: ClassVar[dict[str, tuple[tuple[str, ...], Callable[..., None]]]] = {}

    # All resources by id, for export functions and dependency managers.
    _resources: ResourceDict

    def __init__(self, options: object = None) -> None:
        self.options = options
        self.failed = False
        self.types: Any = None  # the entities of the model by name
        self._version = 0  # given by the server, later
        self._file_store: dict[str, bytes] = {}

    @property
    def client(self) -> Any:
        from inmanta.protocol.endpoints import SyncClient

        return SyncClient("compiler")

    def add_resource(self, resource: Resource) -> None:
        """Add a resource to the export."""
        if resource.id in self._resources:
            from inmanta.ast import CompilerException

            raise CompilerException(f"Resource {resource.id} exists more than once in the configuration model")
        resource.is_undefined = bool(resource.unknowns)  # type: ignore[attr-defined]
        self._resources[resource.id] = resource

    @classmethod
    def clear(cls) -> None:
        cls._dependency_managers = []
        cls._export_functions = {}

    @classmethod
    def add(cls, name: str, types: Any, function: Callable[..., None]) -> None:
        cls._export_functions[name] = (tuple(types), function)

    @classmethod
    def add_dependency_manager(cls, function: Callable[[ModelDict, ResourceDict], None]) -> None:
        cls._dependency_managers.append(function)

    def upload_file(self, content: Union[str, bytes]) -> str:
        """Keep a content for the server's file store, and return its name there."""
        if not isinstance(content, bytes):
            content = content.encode("utf-8")
        name = hash_file(content)
        self._file_store[name] = content
        return name

    def get_environment_id(self) -> str:
        from inmanta.config import Config

        return str(Config.get("config", "environment", None))  # "None" if the compile is not for an environment


class dependency_manager:
    """Decorator: the function may add requirements between resources. The decorated name is not a function any more."""

    def __init__(self, function: Callable[[ModelDict, ResourceDict], None]) -> None:
        Exporter.add_dependency_manager(function)


class code_manager:
    """Decorator of older modules; it does nothing."""

    def __init__(self, function: Callable[[], None]) -> None:
        self.function = function


class export:
    """Decorator: an export function, run when the project asks for it by name."""

    def __init__(self, name: str, *args: str) -> None:
        self._wanted = (name, args)

    def __call__(self, function: Callable[..., None]) -> Callable[..., None]:
        Exporter.add(*self._wanted, function)
        return function


__all__ = [
    "DependencyCycleException",
    "DynamicProxy",
    "Exporter",
    "ModelDict",
    "ResourceDict",
    "Unknown",
    "dependency_manager",
    "export",
    "hash_file",
    "resources",
    "unknown_parameters",
    "util",
]

__getattr__ = lacking(__name__)
