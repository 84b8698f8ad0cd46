"""Resources: units of desired state, and the ids that name them.

A class below :class:`Resource` says which fields a resource type has and where
their values come from; the decorator :class:`resource` ties it to an entity of
the model. The compiler makes resources from instances of that entity
(:mod:`inmanta.export` drives it), the executor makes them again from the
exported attributes (:meth:`Resource.deserialize`).
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Optional

from inmanta import const, references
from inmanta._fallback import lacking
from inmanta.execute.util import Unknown
from inmanta.types import JsonType

LOGGER = logging.getLogger(__name__)

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
    """A resource that was asked for does not exist. (The name is upstream's.)"""


class IgnoreResourceException(Exception):
    """Raised while a resource is made: it shall not be exported."""


class HostNotFoundException(Exception):
    """The machine that a resource lives on cannot be reached."""

    def __init__(self, hostname: str, user: str, error: str) -> None:
        super().__init__(f"{user}@{hostname}: {error}")
        self.hostname = hostname
        self.user = user
        self.error = error


class resource:  # noqa: N801
    """Decorator: the class describes resources of one entity.

    :param name: the entity, such as ``fs::File``.
    :param id_attribute: the field that tells resources of one agent apart.
    :param agent: path from the instance to the name of the agent: ``host.name``.
    """

    _resources: ClassVar[dict[str, tuple[type["Resource"], dict[str, str]]]] = {}

    def __init__(self, name: str, id_attribute: str, agent: str) -> None:
        if not isinstance(agent, str):
            raise ResourceException(f"The agent of resource {name} must be a path in a string, not {agent!r}")
        self._name = name
        self._options = {"agent": agent, "name": id_attribute}

    def __call__(self, cls: type["Resource"]) -> type["Resource"]:
        resource._resources[self._name] = (cls, self._options)
        return cls

    @classmethod
    def add_resource(cls, cls_name: str, resource_type: type["Resource"], options: dict[str, str]) -> None:
        cls._resources[cls_name] = (resource_type, options)

    @classmethod
    def validate(cls) -> None:
        """Find mistakes in the registered classes."""
        for registered, _ in cls._resources.values():
            if issubclass(registered, resource):
                raise ResourceException(
                    f"{registered.__module__}.{registered.__name__} inherits from the decorator"
                    " inmanta.resources.resource; it should inherit from inmanta.resources.Resource"
                )
            registered.validate()

    @classmethod
    def get_entity_resources(cls) -> Iterable[str]:
        return cls._resources.keys()

    @classmethod
    def get_class(cls, name: str) -> tuple[Optional[type["Resource"]], Optional[dict[str, str]]]:
        return cls._resources.get(name, (None, None))

    @classmethod
    def get_resources(cls) -> Iterator[tuple[str, type["Resource"]]]:
        return ((name, registered) for name, (registered, _) in cls._resources.items())

    @classmethod
    def reset(cls) -> None:
        cls._resources = {}


_ID = re.compile(
    r"(?P<type>[\w-]+(?:::[\w-]+)+)\[(?P<agent>[^,]+),(?P<attribute>[^=]+)=(?P<value>[^\]]+)\](?:,v=(?P<version>[0-9]+))?\Z"
)


class Id:
    """The name of a resource: ``module::Type[agent,attribute=value]``, with ``,v=N`` in one version."""

    def __init__(
        self, entity_type: str, agent_name: str, attribute: str, attribute_value: str, version: int = 0
    ) -> None:
        for what, text, forbidden in (
            ("agent name", agent_name, ","),
            ("attribute name", attribute, ",="),
            ("attribute value", attribute_value, "]"),
        ):
            for char in forbidden:
                if char in text:
                    raise ValueError(f"Invalid {what} '{text}': cannot contain '{char}'.")
        self._entity_type = entity_type
        self._agent_name = agent_name
        self._attribute = attribute
        self._attribute_value = attribute_value
        self._version = version

    @classmethod
    def parse_id(cls, resource_id: str, version: Optional[int] = None) -> "Id":
        found = _ID.match(resource_id)
        if found is None:
            raise ValueError(f"Invalid id for resource {resource_id}")
        if version is None:
            version = int(found["version"] or 0)
        return cls(found["type"], found["agent"], found["attribute"], found["value"], version)

    @classmethod
    def parse_resource_version_id(cls, resource_id: str) -> "Id":
        parsed = cls.parse_id(resource_id)
        if parsed.version == 0:
            raise ValueError(f"Version is missing from resource id: {resource_id}")
        return parsed

    @classmethod
    def is_resource_id(cls, value: str) -> bool:
        return _ID.match(value) is not None

    @classmethod
    def is_resource_version_id(cls, value: str) -> bool:
        found = _ID.match(value)
        return found is not None and found["version"] is not None

    @classmethod
    def set_version_in_id(cls, id_str: str, new_version: int) -> str:
        return cls.parse_id(id_str, version=new_version).resource_version_str()

    def copy(self, *, version: int) -> "Id":
        return Id(self._entity_type, self._agent_name, self._attribute, self._attribute_value, version)

    def is_resource_version_id_obj(self) -> bool:
        return self._version != 0

    def get_entity_type(self) -> str:
        return self._entity_type

    def get_agent_name(self) -> str:
        return self._agent_name

    def get_attribute(self) -> str:
        return self._attribute

    def get_attribute_value(self) -> str:
        return self._attribute_value

    def get_version(self) -> int:
        return self._version

    def set_version(self, version: int) -> None:
        if self._version > 0 and version != self._version:
            raise AttributeError(f"{self} has a version already")
        self._version = version

    def get_inmanta_module(self) -> str:
        return self._entity_type.partition("::")[0]

    def get_instance(self) -> Optional["Resource"]:
        """An empty resource of this type that has its identifying field set."""
        cls, _ = resource.get_class(self._entity_type)
        if cls is None:
            return None
        made = cls(self)
        setattr(made, self._attribute, self._attribute_value)
        return made

    def to_dict(self) -> JsonType:
        return {
            "entity_type": self._entity_type,
            "agent_name": self._agent_name,
            "attribute": self._attribute,
            "attribute_value": self._attribute_value,
            "version": self._version,
        }

    def resource_str(self) -> str:
        return f"{self._entity_type}[{self._agent_name},{self._attribute}={self._attribute_value}]"

    def resource_version_str(self) -> str:
        return f"{self.resource_str()},v={self._version}"

    def __str__(self) -> str:
        return self.resource_version_str() if self._version > 0 else self.resource_str()

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash(str(self))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and str(self) == str(other)

    entity_type = property(get_entity_type)
    agent_name = property(get_agent_name)
    attribute = property(get_attribute)
    attribute_value = property(get_attribute_value)
    version = property(get_version, set_version)


def to_id(entity: Any) -> Optional[str]:
    """The id of the resource that an instance of the model stands for, or None when it stands for none."""
    kind = entity._type()
    for name in [str(kind), *kind.get_all_parent_names()]:
        cls, options = resource.get_class(name)
        if cls is not None and options is not None:
            return str(cls.object_to_id(entity, name, options["name"], options["agent"]))
    return None


class ResourceMeta(type):
    """Gives every class the fields of its bases, in their order, and then its own."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
        merged: list[str] = []
        for base in bases:
            # A base of this metaclass has merged fields already, a mix-in has its own.
            merged.extend(getattr(base, "fields", ()))
        own = namespace.get("fields", ())
        if not isinstance(own, (tuple, list)):
            raise Exception(f"fields attribute of {name} should be a tuple or list")
        merged.extend(own)
        namespace["fields"] = tuple(dict.fromkeys(merged))
        return super().__new__(mcs, name, bases, namespace)


class Resource(metaclass=ResourceMeta):
    """Base of all resource classes.

    The value of a field comes from a static or class method ``get_<field>(exporter, instance)``, else from
    ``map[field](exporter, instance)``, else from the instance's attribute of that name.
    """

    fields: Sequence[str] = (
        const.RESOURCE_ATTRIBUTE_SEND_EVENTS,
        const.RESOURCE_ATTRIBUTE_RECEIVE_EVENTS,
        const.RESOURCE_ATTRIBUTE_REFERENCES,
        const.RESOURCE_ATTRIBUTE_MUTATORS,
        const.RESOURCE_ATTRIBUTE_REPORT_ONLY,
    )
    send_event: bool
    receive_events: bool
    report_only: bool
    model: Any
    map: dict[str, Callable[[Any, Any], Any]]

    def __init__(self, _id: Id) -> None:
        self.id = _id
        self.requires: set[Any] = set()
        self.resource_requires: set["Resource"] = set()
        self.unknowns: set[str] = set()
        for field in type(self).fields:
            setattr(self, field, None)
        self._resolver = references.Resolver()

    # What the compiler calls, in export.

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
        for field in cls.fields:
            if field.startswith("_"):
                raise ResourceException(f"Resource field names can not start with _, reported in {cls.__name__}")
            if field in RESERVED_FOR_RESOURCE:
                raise ResourceException(
                    f"Resource {field} is a reserved keyword and not a valid field name, reported in {cls.__name__}"
                )

    # What the executor calls.

    @classmethod
    def deserialize(cls, obj_map: JsonType, force_fields: bool = False) -> "Resource":
        """Make a resource from its exported attributes, with ``id`` and ``requires`` among them.

        :param force_fields: a field that is not there is an error even where it has a default.
        """
        resource_id = Id.parse_id(obj_map["id"])
        registered, _ = resource.get_class(resource_id.entity_type)
        if registered is None:
            raise TypeError(f"No resource class registered for entity {resource_id.entity_type}")
        made = registered(resource_id)
        made.populate({**_defaults(), **obj_map}, force_fields)
        return made

    def populate(self, fields: dict[str, object], force_fields: bool = False) -> None:
        for field in type(self).fields:
            if field in fields or force_fields:
                setattr(self, field, fields[field])
            else:
                raise Exception(f"Resource with id {fields.get('id', self.id)} does not have field {field}")
        for require in fields.get("requires", ()):  # type: ignore[attr-defined]
            self.requires.add(Id.parse_id(require))

    def serialize(self) -> JsonType:
        attributes = {field: getattr(self, field) for field in type(self).fields}
        attributes["requires"] = [str(required) for required in self.requires]
        attributes["id"] = self.id.resource_version_str()
        return attributes

    def clone(self, **kwargs: Any) -> "Resource":
        """A copy, with some fields replaced. References that were resolved stay so."""
        copy = type(self).deserialize(self.serialize())
        for field, value in kwargs.items():
            setattr(copy, field, value)
        copy._resolver = self._resolver.shared()
        return copy

    def resolve_all_references(self, logger: Any) -> None:
        """Put the values of references where they belong; a second call does nothing."""
        self._resolver.resolve(self, logger)

    def get_reference_value(self, id: Any, logger: Any) -> object:
        return self._resolver.value(self, id, logger)

    # Reading a resource like a dict of its fields.

    def get(self, key: str, default: object = None) -> object:
        return getattr(self, key) if key in type(self).fields else default

    def items(self) -> Iterator[tuple[str, object]]:
        return ((field, getattr(self, field)) for field in type(self).fields)

    def __getitem__(self, key: str) -> object:
        if key not in type(self).fields:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: object) -> None:
        if key not in type(self).fields:
            raise KeyError(key)
        setattr(self, key, value)

    def __delitem__(self, key: str) -> None:
        raise Exception("Deleting fields is not allowed on a resource")

    def clear(self) -> None:
        raise Exception("Deleting fields is not allowed on a resource")

    def __contains__(self, item: str) -> bool:
        return item in type(self).fields

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
        return getattr(obj, name)
    except Exception:
        return default


def _defaults() -> JsonType:
    """Fields that older exports do not have."""
    return {"send_event": False, "receive_events": True, "report_only": False, "references": [], "mutators": []}


class PurgeableResource(Resource):
    """A resource whose desired state may be absence."""

    fields = ("purged", "purge_on_delete")
    purged: bool
    purge_on_delete: bool


class DiscoveryResource(Resource):
    """A resource that finds others."""

    fields = ()


class ManagedResource(Resource):
    """A resource that can be left alone."""

    fields = ("managed",)
    managed: bool

    @staticmethod
    def get_managed(_exporter: Any, obj: Any) -> bool:
        if not obj.managed:
            raise IgnoreResourceException()
        return obj.managed


__getattr__ = lacking(__name__)

# How resources are made knows these classes, which call it.
from inmanta import _making  # noqa: E402
