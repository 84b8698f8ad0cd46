"""Entities, for code that inspects types."""

import functools
from collections.abc import Mapping
from typing import Any, Optional

from inmanta._fallback import lacking
from inmanta.ast import Location, Namespace
from inmanta.ast.attribute import Attribute, RelationAttribute
from inmanta.ast.type import NamedType


class Entity(NamedType):
    """An entity of the model, made from the engine's description of it."""

    def __init__(self, described: dict[str, Any]) -> None:
        super().__init__()
        self._full_name: str = described["name"]
        self._parents: list[str] = described.get("parents") or []
        self._children: list[str] = described.get("children") or []
        at = described.get("at")
        # std::Entity stands in no file.
        self.set_location(Location(at["file"], at["line"]) if at else Location("internal", 1))
        self._index_names: list[list[str]] = described.get("indexes") or []
        self.comment: Optional[str] = described.get("doc") or None
        self.attributes: dict[str, Attribute] = {}
        for each in described.get("attributes") or ():
            self.attributes[each["name"]] = self._attribute(each)

    def _attribute(self, described: dict[str, Any]) -> Attribute:
        if not described.get("relation"):
            return Attribute(self, described["name"], described["type"])
        end = (described["end_entity"], described["end"]) if described.get("end") else None
        return RelationAttribute(
            self, described["name"], described["type"], described.get("low", 0), described.get("high") or None, end
        )

    @property
    def namespace(self) -> Namespace:
        return Namespace.of(self._full_name.rpartition("::")[0])

    def get_namespace(self) -> Namespace:
        return self.namespace

    @property
    def name(self) -> str:
        return self._full_name.rpartition("::")[2]

    def get_name(self) -> str:
        return self.name

    def get_full_name(self) -> str:
        return self._full_name

    def type_string(self) -> str:
        return self._full_name

    type_string_internal = type_string

    def is_entity(self) -> bool:
        return True

    @functools.cached_property
    def parent_entities(self) -> "list[Entity]":
        from inmanta.execute import runtime

        return [runtime.model().type_of(name) for name in self._parents]

    @functools.cached_property
    def child_entities(self) -> "list[Entity]":
        from inmanta.execute import runtime

        return [runtime.model().type_of(name) for name in self._children]

    def get_all_child_entities(self) -> "set[Entity]":
        return {below for child in self.child_entities for below in (child, *child.get_all_child_entities())}

    def get_all_parent_entities_sorted(self) -> "list[Entity]":
        """All ancestors, the nearest first, each once."""
        return list(self._ancestors)

    @functools.cached_property
    def _ancestors(self) -> "list[Entity]":
        found: dict[str, Entity] = {}
        level = self.parent_entities
        while level:
            for parent in level:
                found.setdefault(parent._full_name, parent)
            level = [above for parent in level for above in parent.parent_entities if above._full_name not in found]
        return list(found.values())

    def get_all_parent_entities(self) -> "set[Entity]":
        return set(self.get_all_parent_entities_sorted())

    def get_all_parent_names(self) -> list[str]:
        return [parent._full_name for parent in self._ancestors]

    def is_parent(self, parent_candidate: "Entity") -> bool:
        return parent_candidate._full_name in self.get_all_parent_names()

    def is_subclass(self, superclass_candidate: "Entity", *, strict: bool = True) -> bool:
        if superclass_candidate._full_name == self._full_name:
            return not strict
        return self.is_parent(superclass_candidate)

    def get_attributes(self) -> dict[str, Attribute]:
        return self.attributes

    def get_all_attributes(self) -> dict[str, Attribute]:
        """Own and inherited attributes, inherited ones first, with the nearest definition of each."""
        merged: dict[str, Attribute] = {}
        for parent in reversed(self.get_all_parent_entities_sorted()):
            merged.update(parent.attributes)
        merged.update(self.attributes)
        return merged

    def get_all_attribute_names(self) -> list[str]:
        return list(self.get_all_attributes())

    def get_attribute(self, name: str) -> Optional[Attribute]:
        if name in self.attributes:
            return self.attributes[name]
        for parent in self.get_all_parent_entities_sorted():
            if name in parent.attributes:
                return parent.attributes[name]
        return None

    def has_attribute(self, attribute: str) -> bool:
        return self.get_attribute(attribute) is not None

    def get_indices(self) -> list[list[str]]:
        return self._index_names

    @functools.cached_property
    def implementations(self) -> "list[Implementation]":
        """All implementations for this entity, whether an implement statement uses them or not."""
        from inmanta.execute import runtime

        model = runtime.model()
        found = (model.type_of(name) for name in model.types())
        return [each for each in found if isinstance(each, Implementation) and each._target == self._full_name]

    @functools.cached_property
    def _own_defaults(self) -> dict[str, Any]:
        from inmanta.execute import runtime

        return dict(runtime.model().defaults_of(self._full_name))

    def get_default_values(self) -> Mapping[str, Any]:
        """The defaults of own and inherited attributes, as expressions."""
        merged: dict[str, Any] = {}
        for each in (*self.get_all_parent_entities_sorted(), self):
            merged.update(each._own_defaults)
        return {name: default for name, default in merged.items() if default is not None}

    def get_default(self, name: str) -> Any:
        defaults = self.get_default_values()
        if name not in defaults:
            raise AttributeError(name)
        return defaults[name]

    def get_all_instances(self) -> list[Any]:
        from inmanta.execute import runtime

        return runtime.model().instances_of(self._full_name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entity) and other._full_name == self._full_name

    def __hash__(self) -> int:
        return hash(self._full_name)

    def __repr__(self) -> str:
        return f"Entity({self._full_name})"

    def __str__(self) -> str:
        return self._full_name


class Implementation(NamedType):
    """A named body of statements for an entity."""

    def __init__(self, described: dict[str, Any]) -> None:
        super().__init__()
        namespace, _, self.name = described["name"].rpartition("::")
        self.namespace = Namespace.of(namespace)
        self.comment: Optional[str] = described.get("doc") or None
        self._target: str = described.get("for") or ""
        at = described.get("at")
        if at:
            self.set_location(Location(at["file"], at["line"]))

    @property
    def entity(self) -> Entity:
        from inmanta.execute import runtime

        return runtime.model().type_of(self._target)

    def get_full_name(self) -> str:
        return f"{self.namespace}::{self.name}"

    type_string = type_string_internal = get_full_name

    def get_namespace(self) -> Namespace:
        return self.namespace

    def __repr__(self) -> str:
        return f"Implementation(name = {self.name})"


__getattr__ = lacking(__name__)
