"""References: values that are only known at deployment.

In the compiler a module makes a :class:`Reference`. The exported resource has its
description (type name and arguments) in the field ``references``, and in
``mutators`` a mutator that puts the value in place. The executor makes both again
from the descriptions and runs the mutators (:class:`Resolver`).

Descriptions are plain dict-like values, so this module needs no third-party
library and the executor can use the JSON as it is.
"""

import builtins
import contextlib
import copy
import dataclasses
import enum
import hashlib
import json
import re
import typing
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Generic, Optional, TypeVar, Union

from inmanta import _jsonpath, _lazy
from inmanta._fallback import lacking
from inmanta.ast import UnknownException
from inmanta.execute.runtime import Instance
from inmanta.execute.util import NoneValue, ReferenceBase, Unknown

PrimitiveTypes = Union[str, int, float, bool, None]
RefValue = Any
ReferenceType = str
DataclassProtocol = object

T = TypeVar("T", covariant=True)

_LITERALS = (str, int, float, bool, type(None))
_PYTHON_TYPES = (str, float, int, bool)


class ReferenceCycleException(Exception):
    """A reference needs itself."""

    def __init__(self, first_ref: "Reference[Any]") -> None:
        self.references = [first_ref]
        self.complete = False

    def add(self, element: "Reference[Any]") -> None:
        if self.complete:
            return
        self.complete = any(element is known for known in self.references)
        self.references.append(element)

    def get_message(self) -> str:
        return "A reference needs itself: " + " -> ".join(repr(each) for each in self.references)

    def __str__(self) -> str:
        return self.get_message()


class ReferenceMissingError(TypeError):
    """No reference class has the name that an exported resource gives."""


class MutatorMissingError(TypeError):
    """No mutator class has the name that an exported resource gives."""


# Descriptions of arguments. Each has a type, a name and what it takes to get the value back.


@dataclasses.dataclass
class Argument:
    """One argument of the constructor of a reference or mutator."""

    type: ClassVar[str]
    name: str

    def get_arg_value(self, resource: Any, logger: Any) -> object:
        raise NotImplementedError()

    def dump(self) -> dict[str, object]:
        described: dict[str, object] = {"type": self.type}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            described[field.name] = str(value) if isinstance(value, uuid.UUID) else value
        return described

    model_dump = dump


@dataclasses.dataclass
class LiteralArgument(Argument):
    """A string, a number, true, false or null."""

    type: ClassVar[str] = "literal"
    value: PrimitiveTypes = None

    def get_arg_value(self, resource: Any, logger: Any) -> object:
        return self.value


@dataclasses.dataclass
class JsonArgument(Argument):
    """A list or a dict."""

    type: ClassVar[str] = "json"
    value: Any = None

    def get_arg_value(self, resource: Any, logger: Any) -> object:
        return self.value


@dataclasses.dataclass
class ReferenceArgument(Argument):
    """The value of another reference of the same resource."""

    type: ClassVar[str] = "reference"
    id: Any = None

    def get_arg_value(self, resource: Any, logger: Any) -> object:
        return resource.get_reference_value(self.id, logger)


@dataclasses.dataclass
class MutatedJsonArgument(Argument):
    """A list or dict with references, as null in place of their values and the paths of these."""

    type: ClassVar[str] = "mjson"
    value: Any = None
    references: dict[str, ReferenceArgument] = dataclasses.field(default_factory=dict)

    def get_arg_value(self, resource: Any, logger: Any) -> object:
        value = copy.deepcopy(self.value)
        for path, reference_argument in self.references.items():
            _jsonpath.replace(value, path, reference_argument.get_arg_value(resource, logger))
        return value

    def dump(self) -> dict[str, object]:
        return {**super().dump(), "references": {path: each.dump() for path, each in self.references.items()}}

    model_dump = dump


@dataclasses.dataclass
class GetArgument(Argument):
    """A value of the resource itself."""

    type: ClassVar[str] = "get"
    dict_path_expression: str = ""

    def get_arg_value(self, resource: Any, logger: Any) -> object:
        return None


@dataclasses.dataclass
class PythonTypeArgument(Argument):
    """One of Python's str, int, float and bool."""

    type: ClassVar[str] = "python_type"
    value: str = ""

    def get_arg_value(self, resource: Any, logger: Any) -> object:
        return getattr(builtins, self.value)


@dataclasses.dataclass
class ResourceArgument(Argument):
    """The resource that the reference or mutator belongs to."""

    type: ClassVar[str] = "resource"
    id: str = ""

    def get_arg_value(self, resource: Any, logger: Any) -> object:
        if resource.id.resource_str() != self.id:
            raise Exception(
                f"A mutator of {resource.id.resource_str()} cannot work on {self.id}: only on its own resource"
            )
        return resource


ArgumentTypes = Union[
    LiteralArgument,
    ReferenceArgument,
    GetArgument,
    PythonTypeArgument,
    ResourceArgument,
    JsonArgument,
    MutatedJsonArgument,
]

_ARGUMENTS: dict[str, type[Argument]] = {
    each.type: each
    for each in (
        LiteralArgument,
        ReferenceArgument,
        GetArgument,
        PythonTypeArgument,
        ResourceArgument,
        JsonArgument,
        MutatedJsonArgument,
    )
}


def _argument(described: Any) -> Argument:
    """An argument from its description."""
    if isinstance(described, Argument):
        return described
    fields = dict(described)
    kind = _ARGUMENTS.get(fields.pop("type", ""))
    if kind is None:
        raise ValueError(f"A reference has an argument of an unknown type: {described}")
    if kind is MutatedJsonArgument:
        fields["references"] = {path: _argument(each) for path, each in fields["references"].items()}
    elif kind is ReferenceArgument and not isinstance(fields["id"], uuid.UUID):
        fields["id"] = uuid.UUID(fields["id"])
    return kind(**fields)


def compute_reference_or_mutator_id(reference_type: str, args: list[Any]) -> uuid.UUID:
    """The id of a description. Equal descriptions have equal ids."""
    text = json.dumps({"type": reference_type, "args": [each.dump() for each in args]}, sort_keys=True)
    name = hashlib.md5(text.encode(), usedforsecurity=False).digest()
    # uuid.uuid3 takes bytes only since Python 3.12.
    return uuid.UUID(bytes=hashlib.md5(uuid.NAMESPACE_OID.bytes + name, usedforsecurity=False).digest(), version=3)


@dataclasses.dataclass
class SerializedReferenceLike:
    """A reference or mutator in its exported form."""

    type: str
    args: list[Any]

    def __post_init__(self) -> None:
        self.args = [_argument(each) for each in self.args]

    def dump(self) -> dict[str, object]:
        return {"type": self.type, "args": [each.dump() for each in self.args]}

    def model_dump(self, **_: object) -> dict[str, object]:
        return self.dump()


@dataclasses.dataclass
class ReferenceModel(SerializedReferenceLike):
    id: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.id, uuid.UUID):
            self.id = uuid.UUID(self.id)

    def dump(self) -> dict[str, object]:
        return {**super().dump(), "id": str(self.id)}


@dataclasses.dataclass
class MutatorModel(SerializedReferenceLike):
    _id: Any = dataclasses.field(default=None, repr=False, compare=False)

    def get_id(self) -> uuid.UUID:
        if self._id is None:
            self._id = compute_reference_or_mutator_id(self.type, self.args)
        return self._id


_SERIALIZING = object()

# Names of references and mutators that were checked.
_well_named: set[str] = set()


class ReferenceLike:
    """Base of references and mutators. Their arguments are the attributes without a leading underscore."""

    type: ClassVar[str]

    def __init__(self) -> None:
        self._model: Any = None

    @property
    def arguments(self) -> Mapping[str, object]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def resolve_other(self, value: Any, logger: Any) -> Any:
        """The value itself or, for a reference, the value to which it resolves."""
        return value.get(logger) if isinstance(value, Reference) else value

    @classmethod
    def deserialize(cls, ref: SerializedReferenceLike, resource: Any, logger: Any) -> Any:
        return cls(**{each.name: each.get_arg_value(resource, logger) for each in ref.args})

    def serialize(self) -> SerializedReferenceLike:
        raise NotImplementedError()

    def serialize_arguments(self) -> tuple[uuid.UUID, list[Any]]:
        """The id and the arguments of the exported form."""
        args = [self._describe(name, value) for name, value in self.arguments.items()]
        if self.type not in _well_named:
            self._check_name()
        return compute_reference_or_mutator_id(self.type, args), args

    def _check_name(self) -> None:
        if not re.fullmatch("([a-z0-9_]+::)+[A-Z][A-z0-9_-]*", self.type):
            raise ValueError(
                f"{self.type!r} is no name for a {type(self).__name__}: an export knows it as module::Name"
            )
        _well_named.add(self.type)

    def _describe(self, name: str, value: object) -> Argument:
        from inmanta.resources import Id, Resource

        if isinstance(value, _LITERALS):
            if isinstance(value, int) and type(value) not in (int, bool):
                with contextlib.suppress(OverflowError):
                    value = float(value)  # a whole number of a class of its own, as an enumeration has them
            return LiteralArgument(name, value)
        if isinstance(value, (dict, list)):
            if not _keyed_by_strings(value):
                raise ValueError(f"Argument {name} of {self!r} holds a dict with keys that are no strings: {value}")
            found = Collector()
            try:
                cleaned = _as_json(found.clean(value, "$"))
            except (_NoJson, UnicodeDecodeError, RecursionError):
                raise ValueError(f"Argument {name} of {self!r} holds what JSON has no word for: {value}") from None
            if found.replacements:
                inner = {path: ReferenceArgument(path, model.id) for path, model in found.replacements.items()}
                return MutatedJsonArgument(name, cleaned, inner)
            return JsonArgument(name, cleaned)
        if isinstance(value, Reference):
            return ReferenceArgument(name, value.serialize().id)
        if isinstance(value, Resource):
            return ResourceArgument(name, value.id.resource_str())
        if isinstance(value, Id):  # the exporter names the resource, which it has not made
            return ResourceArgument(name, value.resource_str())
        if value in _PYTHON_TYPES:
            return PythonTypeArgument(name, value.__name__)  # type: ignore[attr-defined]
        raise TypeError(
            f"Argument {name} of {self!r} is {value!r}, and an export cannot carry a {type(value).__name__}"
        )

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.arguments == other.arguments  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]


def _keyed_by_strings(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_keyed_by_strings, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _keyed_by_strings(each) for key, each in value.items())
    return True


class _NoJson(Exception):
    """Something in a list or dict is neither JSON nor taken for it."""


def _as_json(value: Any) -> Any:
    """A value in a list or dict as JSON. Like inmanta-core, it accepts many objects as strings, numbers, lists or dicts."""
    if type(value) in _LITERALS:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, enum.Enum) and not isinstance(value, float):
        return str(value.value)
    if isinstance(value, (bytes, bytearray)):
        return value.decode()
    if isinstance(value, Mapping):
        return {_as_key(key): _as_json(each) for key, each in value.items()}
    kind = type(value)
    if hasattr(kind, "__float__") or hasattr(kind, "__index__"):
        return float(value)
    try:
        each_of = iter(value)
    except TypeError:
        raise _NoJson from None
    return [_as_json(each) for each in each_of]


def _as_key(key: object) -> str:
    if isinstance(key, enum.Enum):
        return str(key.value)
    if not isinstance(key, (str, bytes, bytearray)):
        raise _NoJson
    return _as_json(key)


class Mutator(ReferenceLike):
    """Changes a resource right before it is deployed."""

    def run(self, logger: Any) -> None:
        raise NotImplementedError()

    def serialize(self) -> MutatorModel:
        if self._model is None:
            made, args = self.serialize_arguments()
            self._model = MutatorModel(self.type, args, made)
        return self._model


class Reference(ReferenceLike, ReferenceBase, Generic[T]):
    """A value that is only known when it is deployed."""

    def __init__(self) -> None:
        super().__init__()
        self._found: tuple[Any, ...] = ()  # the value, once there is one
        self._model_type: Any = None  # the type that it has in the model, once it is a value there

    @classmethod
    def get_reference_type(cls) -> Optional[type]:
        """The type of the value, as far as the class says it."""
        bases = [base for base in getattr(cls, "__orig_bases__", ()) if typing.get_origin(base) is Reference]
        return typing.get_args(bases[0])[0] if bases else None

    @classmethod
    def is_dataclass_reference(cls) -> bool:
        gives = cls.get_reference_type()
        return gives is not None and dataclasses.is_dataclass(gives)

    def resolve(self, logger: Any) -> Any:
        """Find the value. Subclasses implement it."""
        raise NotImplementedError()

    def get(self, logger: Any) -> Any:
        """Return the value, which is found only once."""
        if self._found:
            logger.debug("%(reference)s was resolved before; its value is used again", reference=repr(self))
        else:
            self._found = (self.resolve(logger),)
        return self._found[0]

    def serialize(self) -> ReferenceModel:
        if self._model is _SERIALIZING:
            raise ReferenceCycleException(self)
        if self._model is None:
            self._model = _SERIALIZING
            try:
                made, args = self.serialize_arguments()
            except ReferenceCycleException as cycle:
                cycle.add(self)
                raise
            finally:
                self._model = None
            self._model = ReferenceModel(self.type, args, made)
        return self._model

    def __bool__(self) -> bool:
        raise NotImplementedError(f"{self!r} has no value before it is deployed: it is neither true nor false here")


class Collector:
    """Replaces the references in a value and remembers their places."""

    def __init__(self) -> None:
        self.references: dict[uuid.UUID, ReferenceModel] = {}
        self.replacements: dict[str, ReferenceModel] = {}

    def clean(self, value: Any, path: str, viewed: bool = False) -> Any:
        """Return the value with null in place of references. A value without JSON is an error.

        :param viewed: the value is the model's: when it is unknown so is the whole, while an Unknown that Python
            code puts somewhere itself is an error.
        """
        if isinstance(value, _LITERALS):
            return value
        if hasattr(type(value), "_get_instance"):
            value, viewed = value._get_instance(), True
        if isinstance(value, list):
            return [self.clean(each, f"{path}[{index}]", viewed) for index, each in enumerate(value)]
        if isinstance(value, dict):
            return {key: self.clean(each, _jsonpath.below(path, key), viewed) for key, each in value.items()}
        if viewed and isinstance(value, Unknown):
            raise UnknownException(value)
        if isinstance(value, Reference):
            self.found(path, value)
            return None
        if viewed and isinstance(value, NoneValue):
            return None
        if isinstance(value, Unknown) or viewed and isinstance(value, Instance):
            raise TypeError(f"{value!r} in resource is not JSON serializable at path {path}")
        return value

    def found(self, path: str, value: "Reference[Any]") -> None:
        self._remember(value)
        self.replacements[path] = value.serialize()

    def _remember(self, value: object) -> None:
        if isinstance(value, list):
            for each in value:
                self._remember(each)
        elif isinstance(value, dict):
            for each in value.values():
                self._remember(each)
        elif isinstance(value, Reference):
            model = value.serialize()
            self.references[model.id] = model
            for each in value.arguments.values():
                self._remember(each)


class ResourceCollector(Collector):
    """A collector for the fields of a resource, where each reference gets a mutator that puts its value back.

    :param resource: the resource, or its id.
    """

    def __init__(self, resource: Any) -> None:
        super().__init__()
        self.resource = resource
        self.mutators: dict[uuid.UUID, MutatorModel] = {}

    def found(self, path: str, value: "Reference[Any]") -> None:
        super().found(path, value)
        model = ReplaceValue(resource=self.resource, value=value, destination=path).serialize()
        self.mutators[model.get_id()] = model

    def exported_references(self) -> list[dict[str, object]]:
        return [self.references[each].dump() for each in sorted(self.references)]

    def exported_mutators(self) -> list[dict[str, object]]:
        return [self.mutators[each].dump() for each in sorted(self.mutators)]


class Resolver:
    """Resolves the references of one resource, each once."""

    def __init__(self) -> None:
        self._models: dict[uuid.UUID, ReferenceModel] = {}
        self._made: dict[uuid.UUID, Reference[Any]] = {}
        self._done = False

    def shared(self) -> "Resolver":
        """A resolver for a copy of the resource, with all values that this one has found."""
        twin = Resolver()
        twin._models, twin._made, twin._done = self._models, self._made, self._done
        return twin

    def resolve(self, resource: Any, logger: Any) -> None:
        if self._done:
            return
        for described in resource.references or ():
            model = _model(ReferenceModel, described)
            self._models.setdefault(model.id, model)
        for described in resource.mutators or ():
            model = _model(MutatorModel, described)
            mutator.get_class(model.type).deserialize(model, resource, logger).run(logger)
        self._done = True

    def value(self, resource: Any, id: Any, logger: Any) -> object:
        if not isinstance(id, uuid.UUID):
            id = uuid.UUID(id)
        if id not in self._made:
            if id not in self._models:
                raise KeyError(f"{resource.id} uses the reference {id}, and its export does not describe it")
            model = self._models[id]
            self._made[id] = reference.get_class(model.type).deserialize(model, resource, logger)
        return self._made[id].get(logger)


def _model(kind: Any, described: Any) -> Any:
    return described if isinstance(described, kind) else kind(**described)


class _Register(dict[str, type]):
    """Classes by their names in exports."""

    def __init__(self, what: str, missing: type[TypeError]) -> None:
        super().__init__()
        self._what = what
        self._error = missing

    def __missing__(self, name: str) -> type:
        raise self._error(f"The code that was loaded has no {self._what} {name}")

    def keep_own(self) -> None:
        """Forget the classes of modules."""
        for name in [name for name in self if not name.startswith("core::")]:
            del self[name]


class _Named:
    """Base of the decorators that put a class into a register."""

    _register: ClassVar[_Register]

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, cls: type) -> type:
        cls.type = self.name  # type: ignore[attr-defined]
        self._register[self.name] = cls
        return cls

    @classmethod
    def get_class(cls, name: str) -> type[Any]:
        if name not in cls._register:
            _lazy.whole()
        return cls._register[name]

    @classmethod
    def reset(cls) -> None:
        cls._register.keep_own()


class reference(_Named):
    """Decorator: registers a reference class under a name."""

    _register = _Register("reference class", ReferenceMissingError)

    @classmethod
    def add_reference(cls, name: str, reference_type: type) -> None:
        cls._register[name] = reference_type

    @classmethod
    def get_references(cls) -> Iterator[tuple[str, type[Reference[Any]]]]:
        _lazy.whole()
        yield from cls._register.items()


class mutator(_Named):
    """Decorator: registers a mutator class under a name."""

    _register = _Register("mutator class", MutatorMissingError)

    @classmethod
    def add_mutator(cls, name: str, mutator_type: type) -> None:
        cls._register[name] = mutator_type

    @classmethod
    def get_mutators(cls) -> Iterator[tuple[str, type[Mutator]]]:
        _lazy.whole()
        yield from cls._register.items()


@reference("core::AttributeReference")
class AttributeReference(Reference[T]):
    """The value of an attribute of a dataclass that is itself only known at deployment."""

    attribute_name: str
    reference: Any

    def __init__(self, reference: Any, attribute_name: str) -> None:
        super().__init__()
        # In the order of the exported arguments.
        vars(self).update(attribute_name=attribute_name, reference=reference)

    def resolve(self, logger: Any) -> Any:
        return getattr(self.resolve_other(self.reference, logger), self.attribute_name)


@mutator("core::Replace")
class ReplaceValue(Mutator):
    """Puts a value in its place in the resource."""

    resource: Any
    value: Any
    destination: str

    def __init__(self, resource: Any, value: Any, destination: str) -> None:
        super().__init__()
        vars(self).update(resource=resource, value=value, destination=destination)

    def run(self, logger: Any) -> None:
        _jsonpath.replace(self.resource, self.destination, self.resolve_other(self.value, logger))


def is_reference_of(instance: Optional[object], type_class: type) -> bool:
    """Whether instance is a reference to a value of that type."""
    return isinstance(instance, Reference) and instance.get_reference_type() == type_class


def unwrap_reference(value: object) -> Optional[Reference[Any]]:
    """The reference that a value is, or for which it stands."""
    if hasattr(type(value), "_get_instance"):  # a view
        value = value._get_instance()  # type: ignore[attr-defined]
    return value if isinstance(value, Reference) else None


__getattr__ = lacking(__name__)
