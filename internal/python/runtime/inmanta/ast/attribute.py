"""Attributes and relations of entities, for code that inspects types."""

from typing import Any, Optional

from inmanta._fallback import lacking


class Attribute:
    """An attribute of an entity."""

    def __init__(self, entity: Any, name: str, type_name: str) -> None:
        self.entity = entity
        self.name = name
        self._type_name = type_name

    @property
    def type(self) -> Any:
        from inmanta.ast import type as types

        return types.parse(self._type_name)

    type_internal = type

    def get_type(self) -> Any:
        return self.type

    def get_name(self) -> str:
        return self.name

    def get_entity(self) -> Any:
        return self.entity

    def is_optional(self) -> bool:
        return self._type_name.endswith("?")

    def is_multi(self) -> bool:
        return "[]" in self._type_name

    def validate(self, value: object) -> None:
        self.type.validate(value)

    def __repr__(self) -> str:
        return self.name


class RelationAttribute(Attribute):
    """A relation, seen from one side."""

    def __init__(
        self, entity: Any, name: str, type_name: str, low: int, high: Optional[int], end: Optional[tuple[str, str]]
    ) -> None:
        super().__init__(entity, name, type_name)
        self.low = low
        self.high = high
        self._end = end

    @property
    def end(self) -> "Optional[RelationAttribute]":
        """The relation as seen from the other side; None if it has only one."""
        if self._end is None:
            return None
        from inmanta.execute import runtime

        entity, name = self._end
        return runtime.model().type_of(entity).get_attribute(name)

    def is_optional(self) -> bool:
        return self.low == 0 and self.high == 1

    def is_multi(self) -> bool:
        return self.high != 1

    def __str__(self) -> str:
        return f"{self.entity.get_full_name()}.{self.name}"

    def __repr__(self) -> str:
        return f"[{self.low}:{self.high if self.high is not None else ''}] {self.name}"


__getattr__ = lacking(__name__)
