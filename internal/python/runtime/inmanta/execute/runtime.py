"""Instances and variables of a model that lives in another process.

The compile role installs a :class:`Model`; until then there is none, as in the
executor, where the classes here only serve isinstance checks and annotations.
"""

from __future__ import annotations

from inmanta._fallback import lacking
from inmanta.ast import Location, NotFoundException, OptionalValueException, UnsetException

TYPE_CHECKING = False  # every compile imports this module, so it does without typing
if TYPE_CHECKING:
    from typing import Any, Optional


class Model:
    """The requests of Python to the engine."""

    def read(self, instance: "Instance", name: str) -> object:
        """The value of an attribute. Raises UnsetException, OptionalValueException or NotFoundException."""

    def variable(self, name: str) -> ResultVariable:
        """The variable of that name in the scope of the call. Raises NotFoundException."""

    def type_of(self, name: str) -> Any:
        """The type of that name. Raises TypeNotFoundException."""

    def instances_of(self, name: str) -> "list[Instance]":
        """All instances of an entity and its children so far."""

    def types(self) -> list[str]:
        """The names of all types of the model except plug-ins, in the order of its text."""

    def defaults_of(self, entity: str) -> list[Any]:
        """The default values that an entity gives itself: pairs of name and expression or None."""

    def owner(self) -> Any:
        """The running call, as it is written."""

    def imports_in(self, file: str) -> list[Any]:
        """Name, alias and line of the imports of a file."""

    def about_module(self, folder: str) -> Any:
        """The generation and the metadata of the module in a folder."""

    def plugins(self) -> dict[str, Any]:
        """The plug-ins of the model, by name."""

    def accepts(self, name: str, value: object) -> bool:
        """Whether value belongs to the type of that name."""

    def check_result(self, plugin: str, value: object) -> None:
        """Raises PluginTypeException if value is not of the type that the plug-in declares."""

    def entity_of(self, cls: type) -> Optional[str]:
        """The entity whose instances are objects of a dataclass in Python."""

    def deprecated(self, message: str) -> None:
        """Tell the author of the model that something deprecated was used."""

    def origin(self, instance: "Instance") -> list[Location]:
        """Where an instance was made."""


_model: Optional[Model] = None
_types: Any = None


def all_types() -> Any:
    """The types of the model by name, always the same dict."""
    global _types
    if _types is None:
        from inmanta.execute._types import Types

        _types = Types()
    return _types


def install(model: Optional[Model]) -> None:
    """Set the model of all instances."""
    global _model, _types
    _model, _types = model, None


def is_installed() -> bool:
    return _model is not None


def model() -> Model:
    if _model is None:
        raise RuntimeError("There is no model here: instances exist during a compile only")
    return _model


# A list that records reads of attributes, to find out from what a value was made.
_noted: Optional[list[tuple[int, str]]] = None


def note_reads(into: Optional[list[tuple[int, str]]]) -> None:
    """From now on append instance and name of every attribute that is read to this list; None stops that."""
    global _noted
    _noted = into


class ResultVariable:
    """A variable of the model: a value, or the reason why there is none."""

    __class_getitem__ = classmethod(type(list[int]))  # for annotations
    __slots__ = ("_value", "_problem", "slot", "__weakref__")

    def __init__(self, value: Any = None, *, problem: Optional[Exception] = None, slot: Optional[int] = None) -> None:
        self._value = value
        self._problem = problem
        self.slot = slot

    @classmethod
    def without_value(cls, slot: Optional[int] = None) -> ResultVariable:
        made = cls(slot=slot)
        made._problem = UnsetException("Value not available", made)
        return made

    def get_value(self) -> Any:
        if self._problem is not None:
            raise self._problem
        return self._value

    def is_ready(self) -> bool:
        return self._problem is None or not isinstance(self._problem, UnsetException)

    can_get = is_ready


# In Instance.known: an optional relation without a value.
EMPTY = object()


class Instance:
    """An instance of an entity. There is one object for each, so ``is`` and ``==`` agree.

    Values that were read are kept, because variables of the model never change.
    """

    __slots__ = ("id", "entity_name", "known", "siblings", "dataclass_self", "__weakref__")

    def __init__(self, id: int, entity_name: str) -> None:
        self.id = id
        self.entity_name = entity_name
        self.known: dict[str, object] = {}
        # Instances of the same list: a loop will read the same attributes of all.
        self.siblings: Optional[list[Instance]] = None
        # The Python object from which it was made, or that was made of it for a plug-in.
        self.dataclass_self: object = None

    def read(self, name: str) -> object:
        if _noted is not None:
            _noted.append((self.id, name))
        try:
            value = self.known[name]
        except KeyError:
            return model().read(self, name)
        if value is EMPTY:
            raise OptionalValueException(self, name)
        return value

    def get_attribute(self, name: str) -> ResultVariable:
        try:
            return ResultVariable(self.read(name))
        except UnsetException as unset:
            return unset.get_result_variable()
        except OptionalValueException as empty:
            return ResultVariable(problem=empty)

    def lookup(self, name: str, root: object = None) -> ResultVariable:
        try:
            return self.get_attribute(name)
        except NotFoundException:
            return model().variable(name)

    def get_type(self) -> Any:
        return model().type_of(self.entity_name)

    @property
    def type(self) -> Any:
        return self.get_type()

    def get_location(self) -> Optional[Location]:
        places = model().origin(self)
        return places[0] if places else None

    @property
    def location(self) -> Optional[Location]:
        return self.get_location()

    def get_locations(self) -> list[Location]:
        return model().origin(self)

    @property
    def locations(self) -> list[Location]:
        return self.get_locations()

    @property
    def implementations(self) -> set[Any]:
        return set()  # the engine keeps them

    @property
    def slots(self) -> dict[str, ResultVariable]:
        names = self.get_type().get_all_attribute_names()
        return {**{name: self.get_attribute(name) for name in names}, "self": ResultVariable(self)}

    def __repr__(self) -> str:
        return f"{self.entity_name} {self.id:012x}"  # as long as the addresses that the reference shows

    def __str__(self) -> str:
        places = model().origin(self)
        if not places:
            return self.entity_name
        return f"{self.entity_name} (instantiated at {','.join(map(str, places))})"


class Resolver:
    """Names as the place of a call sees them."""

    def __init__(self, namespace: Any) -> None:
        self.namespace = namespace

    def lookup(self, name: str, root: object = None) -> ResultVariable:
        return model().variable(name)

    def get_root_resolver(self) -> "Resolver":
        return self

    def for_namespace(self, namespace: Any) -> "Resolver":
        return Resolver(namespace)


class ExecutionContext(Resolver):
    """Names as a block of the model sees them."""


class QueueScheduler:
    """Stands for the engine where inmanta-core passes its queue."""

    def __init__(self, compiler: Any) -> None:
        self._compiler = compiler

    def get_compiler(self) -> Any:
        return self._compiler

    def get_types(self) -> Any:
        return all_types()

    types = property(get_types)


__getattr__ = lacking(__name__)
