"""The model as plug-ins see it. Go has the model and answers requests for what is not known here."""

from __future__ import annotations

from inmanta.ast import Location, NotFoundException, OptionalValueException, RuntimeException, TypeNotFoundException
from inmanta.execute.runtime import EMPTY, Instance, ResultVariable
from ordain_worker.frames import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Optional

    from ordain_worker.frames import Dialogue
    from ordain_worker.values import Codec


class EngineModel:
    """Reads the model of the engine."""

    def __init__(self, talk: Dialogue, codec: Codec) -> None:
        self._talk = talk
        self._codec = codec
        self._missing: set[tuple[str, str]] = set()
        self._types: dict[str, Any] = {}
        # Whether the model has a namespace for a Python module.
        self.loaded: Callable[[str], bool] = bool
        # One object for each variable without a value, as long as a call runs.
        self.unset: dict[Any, ResultVariable] = {}
        # Warnings that were not sent to Go yet.
        self.warned: list[str] = []

    def read(self, instance: Instance, name: str) -> object:
        if (instance.entity_name, name) in self._missing:
            raise NotFoundException(None, name, f"attribute {name} not found on {instance.entity_name}")
        also = [each.id for each in instance.siblings or () if each is not instance and name not in each.known]
        reply = self._talk.ask(
            "read", {"i": instance.id, "n": name, "also": also} if also else {"i": instance.id, "n": name}
        )
        # In the order in which Go wrote them, because the first mention of an instance introduces it.
        value = self._codec.decode(reply["v"]) if "v" in reply else None
        for each in reply.get("know") or ():
            self._codec.decode(each)
        if "v" in reply:
            instance.known[name] = value
            if also and type(value) is Instance:
                self._relate(instance.siblings or (), name)
            return value
        if "slot" in reply:
            variable = self._without_value((instance.id, name), reply["slot"])
            return variable.get_value()
        if "optional" in reply:
            instance.known[name] = EMPTY
            raise OptionalValueException(instance, name)
        self._missing.add((instance.entity_name, name))
        raise NotFoundException(None, name, f"attribute {name} not found on {instance.entity_name}")

    def _relate(self, siblings: Any, name: str) -> None:
        """Remember the instances of a list together: a loop will read the same attributes of all."""
        ends = {end.id: end for each in siblings if type(end := each.known.get(name)) is Instance}
        if len(ends) > 1:
            together = list(ends.values())
            for end in together:
                end.siblings = together

    def variable(self, name: str) -> "ResultVariable":
        reply = self._talk.ask("variable", {"n": name})
        if "v" in reply:
            return ResultVariable(self._codec.decode(reply["v"]))
        if "slot" in reply:
            return self._without_value(name, reply["slot"])
        if "optional" in reply:
            return ResultVariable(problem=OptionalValueException(name, name))
        raise NotFoundException(None, name, f"variable {name} not found")

    def _without_value(self, key: Any, slot: int) -> "ResultVariable":
        variable = self.unset.get(key)
        if variable is None:
            variable = self.unset[key] = ResultVariable.without_value(slot)
        return variable

    def type_of(self, name: str) -> Any:
        if name not in self._types:
            described = self._talk.ask("type", {"n": name})
            if described is None:
                raise TypeNotFoundException(name, "")
            self._types[name] = self._make_type(name, described)
        return self._types[name]

    def _make_type(self, name: str, described: dict[str, Any]) -> Any:
        from inmanta.ast import type as types
        from inmanta.ast.entity import Entity

        if described["kind"] == "entity":
            return Entity(described)
        if described["kind"] == "typedef":
            return types.ConstraintType(described)
        if described["kind"] == "implementation":
            from inmanta.ast.entity import Implementation

            return Implementation(described)
        return types.TYPES.get(name) or types.Any()

    def instances_of(self, name: str) -> list[Instance]:
        return self._codec.decode(self._talk.ask("instances", {"n": name}))

    def types(self) -> list[str]:
        return self._talk.ask("types", {})

    def defaults_of(self, entity: str) -> list[Any]:
        from inmanta.ast.statements import told

        return [
            (name, each and told(each, self._codec.decode)) for name, each in self._talk.ask("defaults", {"n": entity})
        ]

    def owner(self) -> Any:
        from inmanta.ast.statements import WrittenCall

        written = self._talk.ask("owner", {})
        return None if written is None else WrittenCall(written, self._codec.decode)

    def imports_in(self, file: str) -> list[Any]:
        try:
            return self._talk.ask("imports", {"n": file})
        except Failure as failure:
            raise RuntimeException(None, str(failure)) from None

    def about_module(self, folder: str) -> Any:
        from inmanta.module import InvalidMetadata

        try:
            return self._talk.ask("module", {"n": folder})
        except Failure as failure:
            raise InvalidMetadata(str(failure)) from None

    def plugins(self) -> dict[str, Any]:
        from inmanta.plugins import all_plugins

        # Modules that were imported late have registered theirs in another order.
        order = {name: place for place, name in enumerate(self._talk.ask("plugins", {}))}
        found = all_plugins(self.loaded)
        return {name: found[name] for name in sorted(found, key=lambda name: order.get(name, len(order)))}

    def accepts(self, name: str, value: object) -> bool:
        return self._talk.ask("accepts", {"n": name, "v": self._codec.encode(value)})

    def check_result(self, plugin: str, value: object) -> None:
        wrong = self._talk.ask("fits", {"n": plugin, "v": self._codec.encode(value)})
        if wrong is not None:
            from ordain_worker.failures import told

            raise told(
                wrong, f"Return value {value} of plugin {plugin} has incompatible type. Expected type: {wrong['type']}"
            )

    def entity_of(self, cls: type) -> Optional[str]:
        from ordain_worker.annotations import dataclass_entity

        for name in filter(None, map(dataclass_entity, cls.__mro__)):
            try:
                described = self.type_of(name)
            except TypeNotFoundException:
                continue
            if described.is_entity() and "std::Dataclass" in described.get_all_parent_names():
                return name
        return None

    def deprecated(self, message: str) -> None:
        self.warned.append(message)

    def origin(self, instance: Instance) -> list[Location]:
        return [Location(each["file"], each["line"]) for each in self._talk.ask("origin", {"i": instance.id}) or ()]
