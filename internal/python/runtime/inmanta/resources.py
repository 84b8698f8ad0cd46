"""Resources: units of desired state, and the ids that name them.

A subclass of :class:`Resource` says which fields a resource type has and where
their values come from. The decorator :class:`resource` ties it to an entity of
the model. The compiler makes resources from instances of that entity (driven by
:mod:`inmanta.export`), and the executor makes them again from the exported
attributes (:meth:`Resource.deserialize`).
"""

from __future__ import annotations

from inmanta import _lazy, _words
from inmanta._fallback import lacking
from inmanta.execute.util import Unknown

TYPE_CHECKING = False  # every module with resources imports this module, so it does without typing, logging and re
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, ClassVar, Optional

    from inmanta.types import JsonType

RESERVED_FOR_RESOURCE = {
    "id",
    "version",
    "model",
    "requires",
    "unknowns",
    "set_version",
    "clone",
    "is_type",
    "serialize",
}


class ResourceException(Exception):
    """A resource cannot be made from the model."""


class ResourceNotFoundExcpetion(Exception):
    """A resource does not exist. (The name is that of inmanta-core.)"""


class IgnoreResourceException(Exception):
    """Raised to leave out a resource from the export."""


class HostNotFoundException(Exception):
    """The machine of a resource cannot be reached."""

    def __init__(self, hostname: str, user: str, error: str) -> None:
        super().__init__(f"{user}@{hostname}: {error}")
        self.hostname = hostname
        self.user = user
        self.error = error


class resource:
    """Decorator: the class describes resources of one entity.

    :param name: the entity, such as ``fs::File``.
    :param id_attribute: the field that identifies a resource of an agent.
    :param agent: path from the instance to the name of the agent: ``host.name``.
    """

    # By entity, the class and its options. Tools that document modules read this.
    _resources: ClassVar[dict[str, tuple[type["Resource"], dict[str, str]]]] = {}

    def __init__(self, name: str, id_attribute: str, agent: str) -> None:
        if not isinstance(agent, str):
            raise ResourceException(f"The agent parameter has to be a string, got {agent} of type {type(agent)}")
        self._name = name
        self._said = {"agent": agent, "name": id_attribute}

    def __call__(self, described: type["Resource"]) -> type["Resource"]:
        resource.add_resource(self._name, described, self._said)
        return described

    @classmethod
    def reset(cls) -> None:
        resource._resources = {}

    @classmethod
    def add_resource(cls, cls_name: str, resource_type: type["Resource"], options: dict[str, str]) -> None:
        resource._resources[cls_name] = resource_type, options

    @classmethod
    def get_class(cls, name: str) -> tuple[Optional[type["Resource"]], Optional[dict[str, str]]]:
        _lazy.whole()
        known = resource._resources.get(name)
        return (None, None) if known is None else known

    @classmethod
    def get_resources(cls) -> Iterator[tuple[str, type["Resource"]]]:
        _lazy.whole()
        return ((name, described) for name, (described, _) in resource._resources.items())

    @classmethod
    def get_entity_resources(cls) -> Iterable[str]:
        _lazy.whole()
        return list(resource._resources)

    @classmethod
    def validate(cls) -> None:
        """Find mistakes in the registered classes."""
        for _, described in cls.get_resources():
            if issubclass(described, resource):
                from inmanta.ast import RuntimeException

                raise RuntimeException(
                    None,
                    f"Resource {described.__module__}.{described.__name__} is inheriting from the inmanta.resources.resource"
                    " decorator. Did you intend to inherit from inmanta.resources.Resource instead?",
                )
            described.validate()


class _Name(tuple):  # type: ignore[type-arg]
    """The parts of an id that stay the same in every version."""

    __slots__ = ()
    _fields = ("entity_type", "agent_name", "attribute", "attribute_value")

    def __new__(cls, *parts: str) -> _Name:
        return tuple.__new__(cls, parts)

    def __getattr__(self, name: str) -> str:
        if name not in self._fields:
            raise AttributeError(name)
        return self[self._fields.index(name)]

    def _asdict(self) -> dict[str, str]:
        return dict(zip(self._fields, self))

    # Characters that would end a part too early when an id is parsed.
    ENDS = {"agent_name": ",", "attribute": ",=", "attribute_value": "]"}

    def check(self) -> "_Name":
        _, agent, attribute, value = self
        if "," not in agent and "," not in attribute and "=" not in attribute and "]" not in value:
            return self
        for part, ends in self.ENDS.items():
            text = getattr(self, part)
            for char in ends:
                if char in text:
                    from inmanta._noted import noted

                    raise noted(
                        ValueError(f"Invalid {part.replace('_', ' ')} '{text}': cannot contain '{char}'."),
                        f"the id of a {self.entity_type} ends a part there: leave it out of the value",
                    )
        return self

    def __str__(self) -> str:
        return "%s[%s,%s=%s]" % tuple(self)


_form: Optional[re.Pattern[str]] = None


def _match(resource_id: str) -> Optional[re.Match[str]]:
    global _form
    if _form is None:
        import re

        _form = re.compile(
            r"(?P<entity_type>[\w-]+(?:::[\w-]+)+)"
            r"\[(?P<agent_name>[^,]+),(?P<attribute>[^=]+)=(?P<attribute_value>[^\]]+)\](?:,v=(?P<version>[0-9]+))?$"
        )
    return _form.match(resource_id)


_parsed: dict[str, tuple[_Name, int]] = {}
"""Cache of parsed ids, because a handler parses the same few again and again."""


def _parse(resource_id: str) -> tuple[_Name, int]:
    found = _form.match(resource_id) if _form is not None else _match(resource_id)
    if found is None:
        from inmanta._noted import noted

        raise noted(
            ValueError(f"Invalid id for resource {resource_id}"),
            "an id is written module::Type[agent,attribute=value]",
        )
    kind, agent, attribute, value, version = found.groups()
    name: _Name = tuple.__new__(_Name, (kind, agent, attribute, value))
    if "," in attribute:  # the one thing that the form allows and a name does not
        name.check()
    if len(_parsed) >= 1024:
        _parsed.clear()
    _parsed[resource_id] = read = name, int(version) if version else 0
    return read


class Id:
    """The name of a resource: ``module::Type[agent,attribute=value]``, with ``,v=N`` for a version.

    Its parts can be read as properties and with getters, which are made below.
    """

    entity_type: str
    agent_name: str
    attribute: str
    attribute_value: str

    get_entity_type: Callable[[], str]
    get_agent_name: Callable[[], str]
    get_attribute: Callable[[], str]
    get_attribute_value: Callable[[], str]

    def __init__(
        self, entity_type: str, agent_name: str, attribute: str, attribute_value: str, version: int = 0
    ) -> None:
        self._name = _Name(entity_type, agent_name, attribute, attribute_value).check()
        self._version = version

    # From and to text.

    @classmethod
    def parse_id(cls, resource_id: str, version: Optional[int] = None) -> "Id":
        name, written = _parsed.get(resource_id) or _parse(resource_id)
        made = cls.__new__(cls)
        made._name = name
        made._version = written if version is None else version
        return made

    @classmethod
    def parse_resource_version_id(cls, resource_id: str) -> "Id":
        parsed = cls.parse_id(resource_id)
        if not parsed.is_resource_version_id_obj():
            raise ValueError(f"{resource_id} names no version: ,v=N is wanted at its end")
        return parsed

    @classmethod
    def is_resource_id(cls, value: str) -> bool:
        return _match(value) is not None

    @classmethod
    def is_resource_version_id(cls, value: str) -> bool:
        found = _match(value)
        return found is not None and found["version"] is not None

    @classmethod
    def set_version_in_id(cls, id_str: str, new_version: int) -> str:
        return cls.parse_id(id_str, version=new_version).resource_version_str()

    def resource_str(self) -> str:
        return str(self._name)

    def resource_version_str(self) -> str:
        return f"{self._name},v={self._version}"

    def __str__(self) -> str:
        return self.resource_version_str() if self._version > 0 else self.resource_str()

    __repr__ = __str__

    def to_dict(self) -> JsonType:
        return {**self._name._asdict(), "version": self._version}

    # The version.

    def set_version(self, version: int) -> None:
        if self._version not in (0, version):
            raise AttributeError(f"{self} has a version already")
        self._version = version

    def get_version(self) -> int:
        return self._version

    version = property(get_version, set_version)

    def is_resource_version_id_obj(self) -> bool:
        return self._version != 0

    def _copied(self) -> "Id":
        made = Id.__new__(Id)
        made._name, made._version = self._name, self._version
        return made

    def copy(self, *, version: int) -> "Id":
        return Id(*self._name, version)

    # What it names.

    def get_inmanta_module(self) -> str:
        return self.entity_type.partition("::")[0]

    def get_instance(self) -> Optional["Resource"]:
        """An empty resource of this type that has its identifying field set."""
        described, _ = resource.get_class(self.entity_type)
        made = None if described is None else described(self)
        if made is not None:
            setattr(made, self.attribute, self.attribute_value)
        return made

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._all() == other._all()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self._all())

    def _all(self) -> tuple[_Name, int]:
        return self._name, self._version


def _give_parts() -> None:
    for position, part in enumerate(_Name._fields):

        def read(self: Id, position: int = position) -> str:
            return self._name[position]

        setattr(Id, part, property(read))
        setattr(Id, "get_" + part, lambda self, read=read: read(self))


_give_parts()


def to_id(entity: Any) -> Optional[str]:
    """The id of the resource for an instance of the model, or None if there is none."""
    kind = entity._type()
    for name in [str(kind), *kind.get_all_parent_names()]:
        cls, options = resource.get_class(name)
        if cls is not None and options is not None:
            return str(cls.object_to_id(entity, name, options["name"], options["agent"]))
    return None


def _common() -> JsonType:
    """The fields of every resource in the order of exports, with the values for exports that lack them."""
    return {_SEND_EVENTS: False, _RECEIVE_EVENTS: True, _REFERENCES: [], _MUTATORS: [], _REPORT_ONLY: False}


_SEND_EVENTS, _RECEIVE_EVENTS = _words.RESOURCE_ATTRIBUTE_SEND_EVENTS, _words.RESOURCE_ATTRIBUTE_RECEIVE_EVENTS
_REFERENCES, _MUTATORS = _words.RESOURCE_ATTRIBUTE_REFERENCES, _words.RESOURCE_ATTRIBUTE_MUTATORS
_REPORT_ONLY = _words.RESOURCE_ATTRIBUTE_REPORT_ONLY
_COMMON = frozenset(_common())


def _registered(resource_id: Id) -> Optional[type["Resource"]]:
    """The class of the resource type of an id."""
    if _lazy._rest is not None:
        _lazy.whole()
    known = resource._resources.get(resource_id._name[0])
    return None if known is None else known[0]


_made_by: Any = None


def _resolver() -> Any:
    global _made_by
    if _made_by is None:
        from inmanta import references

        _made_by = references.Resolver
    return _made_by()


class _Lazily:
    """The resolver of a resource, made on first use, because most resources have no references."""

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        made = instance.__dict__["_resolver"] = _resolver()
        return made


def _fields_of(bases: tuple[type, ...]) -> list[str]:
    """The fields of the bases, including mix-ins and their bases."""
    found: list[str] = []
    for base in bases:
        own = base.__dict__.get("fields", ())
        if not isinstance(own, (tuple, list)):
            raise Exception(f"fields attribute of {base} should be a tuple or list")
        found.extend(own)
        found.extend(_fields_of(base.__bases__))
    return found


class ResourceMeta(type):
    """Gives every class the fields of its bases, in order, and then its own."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
        merged = _fields_of(bases)
        own = namespace.get("fields", ())
        if not isinstance(own, (tuple, list)):
            raise Exception(f"fields attribute of {name} should be a tuple or list")
        merged.extend(own)
        namespace["fields"] = tuple(dict.fromkeys(merged))
        made = super().__new__(mcs, name, bases, namespace)
        made._plain = made.__setattr__ is _setter() and not any(
            hasattr(getattr(made, str(field), None), "__set__") for field in made.fields
        )
        made._plain = made._plain and made.__getattribute__ is object.__getattribute__
        made._ordinary = made._plain and all(
            getattr(getattr(made, method), "__func__", getattr(made, method)) is own
            for method, own in _copying().items()
        )
        return made

    _plain: bool
    """The classes whose fields are plain entries of the instance's dict."""
    _ordinary: bool
    """The plain classes that also use the default way to make, serialise and deserialise resources."""


def _setter() -> object:
    return globals()["Resource"].__setattr__ if "Resource" in globals() else None


def _copying() -> dict[str, object]:
    """The methods of Resource that take part in copying."""
    base = globals().get("Resource")
    return {name: vars(base).get(name) for name in ("__init__", "populate", "serialize")} if base else {}


class Resource(metaclass=ResourceMeta):
    """Base of all resource classes.

    The value of a field comes from a static or class method ``get_<field>(exporter, instance)``, or else from
    ``map[field](exporter, instance)``, or else from the instance's attribute of that name.
    """

    fields: Sequence[str] = tuple(_common())
    send_event: bool
    receive_events: bool
    report_only: bool
    model: Any
    map: dict[str, Callable[[Any, Any], Any]]
    _resolver: Any = _Lazily()

    def __init__(self, _id: Id) -> None:
        if type(self)._plain:
            self.__dict__.update(
                id=_id, requires=set(), resource_requires=set(), unknowns=set(), **dict.fromkeys(type(self).fields)
            )
            return
        self.id = _id
        self.requires: set[Any] = set()
        self.resource_requires: set["Resource"] = set()
        self.unknowns: set[str] = set()
        for field in type(self).fields:
            setattr(self, field, None)
        # A class with a __setattr__ of its own may look at each; what is done with them is for _resolver.
        self._references_model: dict[Any, Any] = {}
        self._references: dict[Any, Any] = {}
        self._resolved = False

    # Called by the compiler, in the export.

    @staticmethod
    def get_send_event(_exporter: Any, obj: Any) -> bool:
        return _attribute_or(obj, "send_event", False)

    @staticmethod
    def get_receive_events(_exporter: Any, obj: Any) -> bool:
        return _attribute_or(obj, "receive_events", True)

    @staticmethod
    def get_report_only(_exporter: Any, obj: Any) -> bool:
        return _attribute_or(obj, "report_only", False)

    @staticmethod
    def get_references(_exporter: Any, _obj: Any) -> list[Any]:
        return []  # filled in by the exporter once all fields are known

    @staticmethod
    def get_mutators(_exporter: Any, _obj: Any) -> list[Any]:
        return []

    @classmethod
    def object_to_id(cls, model_object: Any, entity_name: str, attribute_name: str, agent_attribute: str) -> Id:
        return _making.object_to_id(cls, model_object, entity_name, attribute_name, agent_attribute)

    @classmethod
    def map_field(
        cls,
        exporter: Any,
        entity_name: str,
        field_name: str,
        model_object: Any,
        reference_collector: Any = None,
    ) -> object:
        return _making.map_field(cls, exporter, entity_name, field_name, model_object, reference_collector)

    @classmethod
    def create_from_model(cls, exporter: Any, entity_name: str, model_object: Any) -> "Resource":
        return _making.create_from_model(exporter, entity_name, model_object)

    @classmethod
    def validate(cls) -> None:
        """Raise if a field has a forbidden name."""
        for wrong in (name for name in cls.fields if name.startswith("_") or name in RESERVED_FOR_RESOURCE):
            if wrong.startswith("_"):
                raise ResourceException(f"Resource field names can not start with _, reported in {cls.__name__}")
            raise ResourceException(
                f"Resource {wrong} is a reserved keyword and not a valid field name, reported in {cls.__name__}"
            )

    # Called by the executor.

    @classmethod
    def deserialize(cls, obj_map: JsonType, force_fields: bool = False) -> "Resource":
        """Make a resource from its exported attributes, including ``id`` and ``requires``.

        :param force_fields: a missing field is an error even if it has a default.
        """
        resource_id = Id.parse_id(obj_map["id"])
        registered = _registered(resource_id)
        if registered is None:
            raise TypeError(f"No resource class registered for entity {resource_id.entity_type}")
        if registered._ordinary and not force_fields:
            made = registered._filled(resource_id, obj_map)
            made.unknowns.update(name for name, value in made.__dict__.items() if isinstance(value, Unknown))
            return made
        made = registered(resource_id)
        known = _common()
        known.update(obj_map)
        made.populate(known, force_fields)
        return made

    @classmethod
    def of_json(cls, resource_id: Id, obj_map: JsonType) -> "Resource":
        """Like deserialize, for attributes from JSON, in which nothing is unknown."""
        registered = _registered(resource_id)
        if registered is None or not registered._ordinary:
            return Resource.deserialize(obj_map)
        return registered._filled(resource_id, obj_map)

    @classmethod
    def _filled(cls, resource_id: Id, values: JsonType) -> "Resource":
        """Does in one step what __init__ and populate do, for values without unknowns."""
        made = cls.__new__(cls)
        fields = made.__dict__
        fields["id"] = resource_id
        required = values.get("requires")
        fields["requires"] = set(map(Id.parse_id, required)) if required else set()
        fields["resource_requires"], fields["unknowns"] = set(), set()
        for name in cls.fields:
            if name in values:
                value = values[name]
            elif name in _COMMON:
                value = _common()[name]
            else:
                raise Exception(f"The export of {values['id']} does not have field {name}")
            fields[name] = value
        return made

    def populate(self, fields: dict[str, object], force_fields: bool = False) -> None:
        plain = self.__dict__ if type(self)._plain else None
        for name in type(self).fields:
            if not force_fields and name not in fields:
                raise Exception(f"The export of {fields.get('id', self.id)} does not have field {name}")
            value = fields[name]
            if plain is None or isinstance(value, Unknown):
                setattr(self, name, value)
            else:
                plain[name] = value
        self.requires.update(map(Id.parse_id, fields.get("requires", ())))  # type: ignore[call-overload]

    def serialize(self) -> JsonType:
        attributes = {field: getattr(self, field) for field in type(self).fields}
        attributes["requires"] = [str(required) for required in self.requires]
        attributes["id"] = self.id.resource_version_str()
        return attributes

    def _copied(self) -> Optional["Resource"]:
        """Does in one step what serialize and deserialize do, or returns None if the class may override them."""
        made = type(self)
        if not made._ordinary or self.unknowns or _registered(self.id) is not made:
            return None
        if made.deserialize.__func__ is not Resource.deserialize.__func__:  # type: ignore[attr-defined]
            return None
        copy = made.__new__(made)
        fields, own = copy.__dict__, self.__dict__
        fields["id"] = self.id._copied() if type(self.id) is Id else Id.parse_id(self.id.resource_version_str())
        fields["requires"] = {Id.parse_id(str(required)) for required in self.requires} if self.requires else set()
        fields["resource_requires"], fields["unknowns"] = set(), set()
        try:
            for field in made.fields:
                fields[field] = own[field]
        except KeyError:  # one that was deleted may be that of the class
            fields.update((field, getattr(self, field)) for field in made.fields)
        return copy

    def clone(self, **kwargs: Any) -> "Resource":
        """Return a copy with some fields replaced. References stay resolved."""
        copy = self._copied() or type(self).deserialize(self.serialize())
        for field, value in kwargs.items():
            setattr(copy, field, value)
        if "_resolver" in self.__dict__ or self.references or self.mutators:  # who has none, has nothing to share
            copy._resolver = self._resolver.shared()
        return copy

    def resolve_all_references(self, logger: Any) -> None:
        """Put the values of references in place. A second call does nothing."""
        self._resolver.resolve(self, logger)

    def get_reference_value(self, id: Any, logger: Any) -> object:
        return self._resolver.value(self, id, logger)

    # A resource can be read like a dict of its fields.

    def __contains__(self, item: str) -> bool:
        return item in type(self).fields

    def _known(self, name: str) -> str:
        if name not in self:
            raise KeyError(name)
        return name

    def __getitem__(self, key: str) -> object:
        return getattr(self, self._known(key))

    def __setitem__(self, key: str, value: object) -> None:
        setattr(self, self._known(key), value)

    def get(self, key: str, default: object = None) -> object:
        return self[key] if key in self else default

    def items(self) -> Iterator[tuple[str, object]]:
        return ((name, self[name]) for name in type(self).fields)

    def clear(self) -> None:
        """A resource has all its fields, always."""
        raise Exception(f"The fields of {self} cannot be deleted")

    def __delitem__(self, key: str) -> None:
        self.clear()

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Unknown):
            self.unknowns.add(name)
        self.__dict__[name] = value

    def is_type(self, type_name: str) -> bool:
        return str(self.model._type()) == type_name

    def __str__(self) -> str:
        return str(self.id)

    __repr__ = __str__


def _attribute_or(obj: Any, name: str, default: bool) -> bool:
    try:
        return getattr(obj._allow_references(), name)  # its value may be known at deployment only
    except Exception:
        return default


class PurgeableResource(Resource):
    """A resource whose desired state may be absence."""

    purged: bool
    purge_on_delete: bool

    fields = ("purged", "purge_on_delete")


class DiscoveryResource(Resource):
    """A resource that finds others."""

    fields = ()


class ManagedResource(Resource):
    """A resource that can be unmanaged."""

    fields = ("managed",)
    managed: bool

    @staticmethod
    def get_managed(_exporter: Any, obj: Any) -> bool:
        if managed := obj.managed:
            return managed
        raise IgnoreResourceException()


_lacking = lacking(__name__)


def __getattr__(name: str) -> object:
    if name in ("const", "references"):
        return __import__(f"inmanta.{name}", fromlist=["*"])
    if name == "LOGGER":
        import logging

        return logging.getLogger(__name__)
    return _lacking(name)


# Imported last, because inmanta._making imports these classes.
from inmanta import _making
