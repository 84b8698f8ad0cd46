"""All resources of an export as objects, for dependency managers and export functions."""

from typing import Any

from inmanta import references
from inmanta.execute.proxy import DynamicProxy, ProxyContext
from inmanta.execute.runtime import Instance
from inmanta.execute.util import Unknown
from inmanta.resources import Id, Resource, resource
from ordain_worker.plainjson import plain


class ResourceGraph:
    """All resources of an export, as objects.

    Go identifies them by position: first the rows that it sent, then those that modules added.
    """

    def __init__(self, rows: list[Any], instances: list[Instance], held: list[Resource]) -> None:
        self._rows = rows
        self._given = len(rows)
        self._made: list[Resource] = []
        by_type: dict[str, list[Instance]] = {}
        for row, instance in zip(rows, instances):
            by_type.setdefault(instance.entity_name, []).append(instance)
            if row[9]:
                self._made.append(held[row[9] - 1])
                continue
            each = _resource(resource._resources[row[0]][0], Id(*row[1:5]), row[6])
            each.__dict__.update(model=view(instance), is_undefined=bool(row[8]))
            for name in row[8] or ():
                setattr(each, name, Unknown())
            self._made.append(each)
        for siblings in by_type.values():
            for instance in siblings:
                instance.siblings = siblings if len(siblings) > 1 else None
        for row, each in zip(rows, self._made):
            if row[9]:
                each.model  # its class may see who reads that, and the requirements are the model's
            required = [self._made[index] for index in row[7]]
            each.resource_requires = set(required)
            each.requires = {other.id for other in required}
        self._ids = [each.id for each in self._made]
        self._before = [set(each.requires) for each in self._made]
        self._fields = [
            {name: _watch(value) for name, value in each.__dict__.items() if name in row[6]} if not row[9] else {}
            for row, each in zip(rows, self._made)
        ]
        self.by_id = dict(zip(self._ids, self._made))

    def graph(self, clean: bool = True) -> dict[str, Any]:
        """Return which resources there are, and their requirements.

        The answer has: required, the places of all that is required now, by place, where that is not as it was; new, the ids
        of resources at the places after the known ones; removed, places; and, as [id, lost], a requirement that leads
        nowhere.
        """
        places = {id(each): place for place, each in enumerate(self._made)}
        reply: dict[str, Any] = {"required": {}, "new": [], "removed": []}
        for each in self.by_id.values():
            if id(each) not in places:
                places[id(each)] = len(self._made)
                self._made.append(each)
        reply["new"] = [parts(each.id) for each in self._made[self._given :]]
        there = {id(each) for each in self.by_id.values()}
        reply["removed"] = [place for place, each in enumerate(self._made) if id(each) not in there]
        for each in self.by_id.values():
            place = places[id(each)]
            if clean:
                each.requires = {_required(each, other) for other in each.requires}
                lost = [other for other in each.requires if other not in self.by_id]
                if lost:
                    reply["lost"] = [str(each.id), str(lost[0])]
                    return reply
                each.resource_requires = {self.by_id[other] for other in each.requires}
            if place >= self._given or each.requires != self._before[place]:
                reply["required"][str(place)] = [
                    places[id(self.by_id[other])] for other in each.requires if other in self.by_id
                ]
        return reply

    def written(self) -> dict[str, Any]:
        """Return the final state of the resources.

        The answer has, by place, changed: the fields that are not as they were; and whole: [id, requires, attributes, names
        of undefined ones] of each that has to be asked for all of that.
        """
        places = {id(each): place for place, each in enumerate(self._made)}
        renamed = any(each.id is not name and each.id != name for each, name in zip(self._made, self._ids))
        reply: dict[str, Any] = {"changed": {}, "whole": {}}
        for each in self.by_id.values():
            place = places[id(each)]
            if renamed or place >= self._given or self._rows[place][9]:
                reply["whole"][str(place)] = _whole(each)
                continue
            now = {name: getattr(each, name) for name in self._fields[place]}
            changed = {name: value for name, value in now.items() if _watch(value) != self._fields[place][name]}
            if changed:
                reply["changed"][str(place)] = {name: plain(value, name, each.id) for name, value in changed.items()}
        return reply


def _whole(each: Resource) -> list[Any]:
    attributes = dict(each.serialize())
    name, requires = Id.parse_id(attributes.pop("id")), attributes.pop("requires")
    attributes.pop("version", None)
    undefined = [field for field, value in attributes.items() if isinstance(value, Unknown)]
    return [
        parts(name),
        [parts(Id.parse_id(other)) for other in requires],
        {field: plain(value, field, name) for field, value in attributes.items()},
        undefined,
    ]


class _Path:
    """The path of a value below an instance. Only errors show it, so it is built when needed."""

    def __init__(self, instance: Instance, below: str = "") -> None:
        self._instance, self._below = instance, below

    def __add__(self, relative_path: str) -> "_Path":
        return _Path(self._instance, self._below + relative_path)

    def __str__(self) -> str:
        return f"<{self._instance}>{self._below}"


def view(instance: Instance) -> DynamicProxy:
    """A view on the instance of a resource, of which references may be read if the export context allows it."""
    return DynamicProxy(instance, context=ProxyContext(path=_Path(instance), validated=False))  # type: ignore[arg-type]


def parts(name: Id) -> list[str]:
    """The parts of an id as text, because a class may have made it of any objects."""
    return list(map(str, (name.entity_type, name.agent_name, name.attribute, name.attribute_value)))


def _watch(value: Any) -> Any:
    """A value that differs after a field was changed, even in place."""
    return repr(value) if value and isinstance(value, (list, dict)) else (type(value), value)


def _resource(cls: type[Resource], id: Id, fields: dict[str, Any]) -> Resource:
    """Make a resource of a class that is not held, with all its fields at once."""
    made = cls.__new__(cls)
    made.__dict__.update(fields)
    made.__dict__.update(
        id=id, requires=set(), resource_requires=set(), unknowns=set(), _resolver=references.Resolver()
    )
    return made


def _required(each: Resource, other: Any) -> Id:
    if isinstance(other, Resource):
        return other.id
    if isinstance(other, Id):
        return other
    if isinstance(other, str):
        return Id.parse_id(other)
    from inmanta._noted import noted

    raise noted(
        Exception(
            f"A dependency manager inserted the object {other!r} of type {type(other)} into a requires relation."
            " However, only string, Resource or Id are allowable types "
        ),
        f"{each.id} was made to require it",
    )
