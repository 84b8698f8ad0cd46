"""Makes resources from instances of the model."""

from __future__ import annotations

from inmanta.ast import (
    CompilerException,
    ExplicitPluginException,
    ExternalException,
    PluginException,
    UnexpectedReference,
    UnknownException,
    UnsetException,
)
from inmanta.execute.util import Unknown
from inmanta.resources import Id, IgnoreResourceException, Resource, ResourceException, resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from inmanta.references import ResourceCollector

# Fields that the exporter fills in after all others.
COLLECTED = ("references", "mutators")


def object_to_id(cls: type[Resource], instance: Any, entity_name: str, attribute: str, agent_path: str) -> Id:
    """The id of the resource for an instance.

    Raises UnknownException if a part of it is unknown.
    """
    agent = _agent(instance, agent_path)
    try:
        value = cls.map_field(None, entity_name, attribute, instance)
    except UnexpectedReference:
        raise ResourceException(
            "Encountered reference in resource's id attribute. Id attribute values can not be references."
            f" Encountered at attribute {attribute!r} of resource instance {instance}"
        ) from None
    if isinstance(value, Unknown):
        raise UnknownException(value)
    if not isinstance(agent, str):
        from inmanta._noted import noted

        raise noted(
            ResourceException(f"The agent attribute should lead to a string, got {agent} of type {type(agent)}"),
            f"it leads along {agent_path}",
        )
    return Id(entity_name, agent, attribute, str(value))


def _agent(instance: Any, path: str) -> object:
    found = instance
    names = path.split(".")
    for at, name in enumerate(names):
        try:
            found = getattr(found, name)
        except UnexpectedReference:
            raise ResourceException(
                "Encountered reference in resource's agent attribute. Agent attribute values can not be references."
                f" Encountered at attribute {'.'.join(names[: at + 1])!r} of resource instance {instance}"
            ) from None
        except (ResourceException, UnknownException, UnsetException):
            raise
        except Exception as exc:
            # No class of its own: modules that catch ResourceException let it pass, as upstream.
            from inmanta._noted import noted

            raise noted(
                Exception(
                    f"Unable to get the name of agent {instance} belongs to. In path {path}, '{name}' does not exist"
                ),
                str(exc),
            ) from exc
    return found


def map_field(
    cls: type[Resource],
    exporter: Any,
    entity_name: str,
    field: str,
    instance: Any,
    collector: Optional[ResourceCollector] = None,
) -> Any:
    """The value of a field, which is unknown if it depends on something unknown."""
    try:
        if hasattr(cls, "get_" + field):
            value = getattr(cls, "get_" + field)(exporter, instance)
        elif field in getattr(cls, "map", {}):
            value = cls.map[field](exporter, instance)
        else:
            value = getattr(instance, field)
        if collector is not None:
            value = collector.clean(value, field)
        return value
    except UnknownException as unknown:
        return unknown.unknown
    except (IgnoreResourceException, CompilerException):
        raise
    except Exception as exc:
        kind = ExplicitPluginException if isinstance(exc, PluginException) else ExternalException
        raise kind(None, f"Failed to get attribute '{field}' for export on '{entity_name}'", exc) from exc


def create_from_model(exporter: Any, entity_name: str, instance: Any) -> Resource:
    """Make the whole resource."""
    cls, options = resource.get_class(entity_name)
    if cls is None or options is None:
        raise TypeError(f"No resource class registered for entity {entity_name}")
    made = cls(cls.object_to_id(instance, entity_name, options["name"], options["agent"]))
    made.model = instance
    from inmanta.execute.proxy import ExportContext
    from inmanta.references import ResourceCollector

    collector = ResourceCollector(made)
    with ExportContext():
        for field in cls.fields:
            if field not in COLLECTED:
                setattr(made, field, cls.map_field(exporter, entity_name, field, instance, collector))
    made.references = collector.exported_references()
    made.mutators = collector.exported_mutators()
    return made
