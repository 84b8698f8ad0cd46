"""The export half of the compile role.

Go knows the instances and writes plain fields itself. It asks here, for many
instances at a time, for the fields that a class computes, and for what
dependency managers add. Values in answers are plain JSON, not the tagged form.

Resources are objects only for dependency managers and export functions, which
get all of them. A class that has ways of its own (a ``serialize``, a property
for a field …) is *held* instead: its objects are made as soon as their fields
are, stay here, and write themselves at the end:

    export_fields ─▶ export_dependencies ─▶ export_functions ─▶ export_written
"""

import base64
import contextlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, Optional

from inmanta import references
from inmanta._making import COLLECTED
from inmanta.ast import UnknownException
from inmanta.ast.entity import Entity
from inmanta.execute.proxy import DynamicProxy, ExportContext, ProxyContext
from inmanta.execute.runtime import Instance, note_reads
from inmanta.execute.util import Unknown
from inmanta.export import Exporter, unknown_parameters
from inmanta.references import ResourceCollector
from inmanta.resources import Id, IgnoreResourceException, ManagedResource, Resource, ResourceMeta, resource
from inmanta.util import api_boundary_json_encoder
from ordain_worker import managers
from ordain_worker.frames import Dialogue, Failure
from ordain_worker.loading import Modules, top
from ordain_worker.values import Codec

# How Go gets the value of a field without us.
_BUILT_IN = {
    "send_event": (Resource, "flag_false"),
    "receive_events": (Resource, "flag_true"),
    "report_only": (Resource, "flag_false"),
    "managed": (ManagedResource, "managed"),
}
_FILES_PER_ANSWER = 8 << 20
# What makes, fills and writes a resource: a class with another one of these is held.
_MAKING = ("__new__", "__init__", "__setattr__", "__getattribute__", "populate", "serialize", "get_references", "get_mutators")
# What a resource has besides its fields.
_OWN = ("id", "requires", "resource_requires", "unknowns", "model", "is_undefined")


class Exporting:
    """Answers the requests of an export."""

    def __init__(
        self, talk: Dialogue, codec: Codec, modules: Modules, describe: Callable[[BaseException], dict[str, Any]]
    ) -> None:
        self._talk = talk
        self._describe = describe
        self._modules = modules
        self._codec = codec
        self._exporter = Exporter()
        self._exporter.types = _Types()
        self._sent: set[str] = set()
        self._held: list[Resource] = []
        self._all: Optional[_All] = None
        self._failed = False

    def answer(self, op: str, args: Any) -> dict[str, Any]:
        with ExportContext():
            return getattr(self, op)(args)

    def export_types(self, args: Any) -> dict[str, Any]:
        """Which entities are resources, and how their fields get their values."""
        return _described()

    def export_fields(self, args: dict[str, Any]) -> dict[str, Any]:
        """Fields of many instances of one type.

        args: type, module (Python module of its class), names (of all), rows [[instance, id or null, names of this one]],
        failed (whether the export does, for what Go found)
        A row of the answer is an object with some of: id, values, reads, undefined, unfit (why values are no JSON),
        references, mutators, ignored, unknown_id, errors (of all fields that failed, in their order), held (its number,
        for a resource that is held: it has no values yet). reads has, by field, the [instance, attribute] that its value
        was made from.

        After the first error the others are still looked for; nobody is to see what that prints.
        """
        self._need(args["module"])
        with contextlib.ExitStack() as until_done:
            self._until_done = until_done
            if self._failed or args.get("failed"):
                self._fail()
            return self._fields(args)

    def _fail(self) -> None:
        self._failed = True
        self._until_done.enter_context(contextlib.redirect_stdout(io.StringIO()))

    def _fields(self, args: dict[str, Any]) -> dict[str, Any]:
        cls, options = resource._resources[args["type"]]
        held = is_held(cls)
        instances = self._codec.decode([row[0] for row in args["rows"]])
        if len(instances) == 1:
            instances[0].siblings = None
        rows = []
        for instance, row in zip(instances, args["rows"]):
            try:
                if held:
                    rows.append(self._hold(cls, options, args["type"], instance))
                else:
                    rows.append(self._row(cls, options, args["type"], instance, row[1], row[2] or args["names"] or []))
            except IgnoreResourceException:
                rows.append({"ignored": True})
            except Failure:
                raise
            except Exception as exc:  # the others are looked at all the same
                rows.append({"errors": [self._describe(exc)]})
                self._fail()
            finally:
                note_reads(None)
        return {"rows": rows}

    def _need(self, module: str) -> None:
        self._modules.need(top(module))

    def _row(
        self, cls: type[Resource], options: dict[str, str], kind: str, instance: Instance, known: Any, names: list[str]
    ) -> dict[str, Any]:
        proxy = DynamicProxy(instance)
        if known is None:
            try:
                made_id = cls.object_to_id(proxy, kind, options["name"], options["agent"])
            except UnknownException:
                return {"unknown_id": True}
        else:
            # The parts are what Go read of the model; the check of the characters is the same for all.
            made_id = Id(kind, *known)
        reply: dict[str, Any] = {}
        if known is None:
            reply["id"] = _parts(made_id)
        collector = ResourceCollector(made_id)
        values: dict[str, Any] = {}
        undefined: list[str] = []
        reads: dict[str, list[tuple[int, str]]] = {}
        errors: list[dict[str, Any]] = []
        for name in names:
            noted: list[tuple[int, str]] = []
            note_reads(noted)
            try:
                value = cls.map_field(self._exporter, kind, name, proxy, collector)
            except IgnoreResourceException:
                if errors:
                    break  # the resource failed before
                raise
            except Failure:
                raise
            except Exception as exc:
                errors.append(self._describe(exc))
                self._fail()
                continue
            if isinstance(value, Unknown):
                undefined.append(name)
                value = None
            else:
                try:
                    value = _plain(value, name, made_id)
                except TypeError as exc:
                    reply.setdefault("unfit", []).append(str(exc))
                    value = None
            values[name] = value
            if noted:
                reads[name] = list(dict.fromkeys(noted))
        if errors:
            return {"errors": errors}
        reply["values"] = values
        reply["reads"] = reads
        if undefined:
            reply["undefined"] = undefined
        if collector.references:
            reply["references"] = collector.exported_references()
            reply["mutators"] = collector.exported_mutators()
        return reply

    def _hold(self, cls: type[Resource], options: dict[str, str], kind: str, instance: Instance) -> dict[str, Any]:
        """Make a resource step by step as modules know it, and keep it."""
        proxy = DynamicProxy(instance)
        reads: dict[str, list[tuple[int, str]]] = {}
        try:
            made = cls(cls.object_to_id(proxy, kind, options["name"], options["agent"]))
            collector = ResourceCollector(made)
            fields: dict[str, object] = {}
            for name in cls.fields:
                noted: list[tuple[int, str]] = []
                note_reads(noted)
                fields[name] = cls.map_field(self._exporter, kind, name, proxy, collector)
                if noted:
                    reads[name] = list(dict.fromkeys(noted))
            note_reads(None)
            fields["references"] = collector.exported_references()
            fields["mutators"] = collector.exported_mutators()
            made.populate(fields)
            made.model = proxy
            undefined = list(made.unknowns)
            for name in undefined:
                getattr(made, name).source
            made.is_undefined = bool(undefined)  # type: ignore[attr-defined]
            reply = {"id": _parts(made.id), "reads": reads, "undefined": undefined}
        except UnknownException:
            return {"unknown_id": True}
        reply["types"] = [each["type"] for each in (*fields["references"], *fields["mutators"])]  # type: ignore[misc]
        self._held.append(made)
        reply["held"] = len(self._held)
        return reply

    def export_dependencies(self, args: dict[str, Any]) -> dict[str, Any]:
        """Make objects of all resources, and run the dependency managers.

        args: modules; managers, the names of all in their order, or none where they have nothing to do; rows [[kind, type, agent, attribute, value, instance,
        fields, [indexes of required rows], [undefined fields], number of a held one or 0]], where only those that are not
        held have fields.
        The answer is that of _All.graph.
        """
        for module in args["modules"]:
            self._need(module)
        order = {name: place for place, name in enumerate(args["managers"])}
        Exporter._dependency_managers.sort(key=lambda manager: order.get(_name_of(manager), len(order)))
        self._all = _All(args["rows"], self._codec.decode([row[5] for row in args["rows"]]), self._held)
        by_id = self._exporter._resources = self._all.by_id
        for manager in Exporter._dependency_managers if args["managers"] else ():
            try:
                manager(_Types(), by_id)
            except UnknownException:
                pass  # what it wanted to know is not known in this compile
        return self._all.graph()

    def export_written(self, args: Any) -> dict[str, Any]:
        """What became of the resources: the answer of _All.written, and, where export functions ran, that of graph again."""
        assert self._all is not None
        return {**(self._all.graph(clean=False) if args["again"] else {}), **self._all.written()}

    def export_functions(self, args: dict[str, Any]) -> dict[str, Any]:
        """Run export functions, by the names that they were registered with."""
        self._modules.rest()
        types = self._exporter.types
        for name in args["names"]:
            if name not in Exporter._export_functions:
                raise Exception(f"Export function {name} does not exist.")
            wanted, function = Exporter._export_functions[name]
            if wanted:
                function(self._exporter, types={each: _shown(types, each) for each in wanted})
            else:
                function(self._exporter)
        return {}

    def export_files(self, args: Any) -> dict[str, Any]:
        """Contents that were uploaded and not handed over yet: some now, more on the next request."""
        files, size = {}, 0
        for name in sorted(self._exporter._file_store):
            if name in self._sent:
                continue
            content = self._exporter._file_store[name]
            if files and size + len(content) > _FILES_PER_ANSWER:
                return {"files": files, "more": True}
            files[name] = base64.b64encode(content).decode("ascii")
            size += len(content)
            self._sent.add(name)
        return {"files": files, "more": False}

    def export_unknowns(self, args: Any) -> dict[str, Any]:
        return {"unknowns": [{key: str(value) for key, value in each.items()} for each in unknown_parameters]}

    def export_code(self, args: dict[str, Any]) -> dict[str, Any]:
        """By resource type, the Python modules that define its class, its handlers and their bases."""
        return {"modules": code_of(args["types"])}


def _watch(value: Any) -> Any:
    """What tells whether a field was changed, also in place."""
    return repr(value) if value and isinstance(value, (list, dict)) else (type(value), value)


class _All:
    """All resources of an export, as objects.

    Go knows them by their places: first the rows that it sent, then those that modules added.
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
            each.__dict__.update(model=DynamicProxy(instance), is_undefined=bool(row[8]))
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
        """Which resources there are, and what requires what.

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
        reply["new"] = [_parts(each.id) for each in self._made[self._given :]]
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
                reply["required"][str(place)] = [places[id(self.by_id[other])] for other in each.requires if other in self.by_id]
        return reply

    def written(self) -> dict[str, Any]:
        """What resources say at the end.

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
                reply["changed"][str(place)] = {name: _plain(value, name, each.id) for name, value in changed.items()}
        return reply


def _whole(each: Resource) -> list[Any]:
    attributes = dict(each.serialize())
    name, requires = Id.parse_id(attributes.pop("id")), attributes.pop("requires")
    attributes.pop("version", None)
    undefined = [field for field, value in attributes.items() if isinstance(value, Unknown)]
    return [
        _parts(name),
        [_parts(Id.parse_id(other)) for other in requires],
        {field: _plain(value, field, name) for field, value in attributes.items()},
        undefined,
    ]


def _parts(name: Id) -> list[str]:
    return [name.entity_type, name.agent_name, name.attribute, name.attribute_value]


class _Types(Mapping[str, Any]):
    """The entities of the model by name, as dependency managers and export functions get them."""

    def __getitem__(self, name: str) -> Any:
        from inmanta.ast import TypeNotFoundException
        from inmanta.execute import runtime

        if "::" not in name:  # a type of the language itself
            raise KeyError(name)
        try:
            return runtime.model().type_of(name)
        except TypeNotFoundException:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        from inmanta.execute import runtime

        return iter(runtime.model().entities())

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _shown(types: _Types, name: str) -> list[Any]:
    """The instances of a type, as export functions get them; none of one that the model does not have."""
    entity = types.get(name)
    if not isinstance(entity, Entity):
        return []
    return [DynamicProxy.return_value(each, context=ProxyContext(path=f"<{each}>")) for each in entity.get_all_instances()]


def described() -> dict[str, Any]:
    """What the modules registered for an export, in the form of the answer to ``export_types``.

    It fails where a class has its own way to be validated: that has to run in the export, and once.
    """
    if any(cls.validate.__func__ is not Resource.validate.__func__ for cls, _ in resource._resources.values()):  # type: ignore[attr-defined]
        raise TypeError("a resource class has its own validate")
    return _described()


def _described() -> dict[str, Any]:
    resource.validate()
    return {
        "types": [_declare(name, cls, options) for name, (cls, options) in resource._resources.items()],
        "references": {
            name: cls.__module__
            for name, cls in [*references.reference.get_references(), *references.mutator.get_mutators()]
        },
        "managers": [
            {"name": _name_of(manager), "module": manager.__module__, "types": managers.types_of(manager)}
            for manager in Exporter._dependency_managers
        ],
    }


def code_of(types: Iterable[str]) -> dict[str, list[str]]:
    """By resource type, the Python modules that define its class, its handlers and their bases."""
    from inmanta.agent.handler import Commander

    found: dict[str, list[str]] = {}
    for kind in types:
        cls, _ = resource.get_class(kind)
        classes = [cls, *_handlers(Commander, kind)]
        modules = {base.__module__ for each in classes if each is not None for base in each.__mro__}
        found[kind] = sorted(each for each in modules if each.startswith("inmanta_plugins."))
    return found


def _declare(name: str, cls: type[Resource], options: dict[str, str]) -> dict[str, Any]:
    fields = []
    for field in cls.fields:
        if field not in COLLECTED:
            fields.append([field, _how(cls, field)])
    own_id = cls.object_to_id.__func__ is not Resource.object_to_id.__func__  # type: ignore[attr-defined]
    held = is_held(cls)
    own_fields = cls.map_field.__func__ is not Resource.map_field.__func__  # type: ignore[attr-defined]
    functions = {field: _written(cls, field) for field, how in fields if how == "python" or own_fields}
    if held:
        fields = [[field, "python"] for field, _ in fields]
    if held or _how(cls, options["name"]) != "plain":
        own_id = True
    return {
        "name": name,
        "agent": options["agent"],
        "id_attribute": options["name"],
        "own_id": own_id,
        "fields": fields,
        "functions": functions,
        "module": cls.__module__,
        "held": held,
    }


def is_held(cls: type[Resource]) -> bool:
    """Whether resources of the class have ways of their own to be made, filled or written."""
    if type(cls) is not ResourceMeta or hasattr(cls, "__getattr__"):
        return True
    if cls.map_field.__func__ is not Resource.map_field.__func__:  # type: ignore[attr-defined]
        return True
    if any(getattr(cls, name) is not getattr(Resource, name) for name in _MAKING) or not set(COLLECTED).issubset(cls.fields):
        return True
    # One that takes part when an attribute is set or read.
    return any(hasattr(type(_static(cls, str(name))), "__set__") for name in (*cls.fields, *_OWN))


def _static(cls: type, name: str) -> object:
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def _name_of(manager: Callable[..., Any]) -> str:
    """What tells a dependency manager from the others, in any process."""
    line = manager.__code__.co_firstlineno if hasattr(manager, "__code__") else 0
    return f"{manager.__module__}.{getattr(manager, '__qualname__', '')}:{line}"


def _written(cls: type[Resource], field: str) -> list[Any]:
    """File, line and name of the function that computes a field; empty and 0 where it is none of Python's."""
    mapped = getattr(cls, "map", None)
    function = getattr(cls, "get_" + field, None) or (isinstance(mapped, dict) and mapped.get(field)) or cls.map_field
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", field)
    return [code.co_filename, code.co_firstlineno, name] if code is not None else ["", 0, name]


def _resource(cls: type[Resource], id: Id, fields: dict[str, Any]) -> Resource:
    """A resource with all its fields, of a class that is not held: made without a detour over empty ones."""
    made = cls.__new__(cls)
    made.__dict__.update(fields)
    made.__dict__.update(
        id=id, requires=set(), resource_requires=set(), unknowns=set(), _resolver=references.Resolver()
    )
    return made


def _how(cls: type[Resource], field: str) -> str:
    if type(field) is not str:
        return "python"  # which says what is wrong with that
    if hasattr(cls, "get_" + field):
        getter = getattr(cls, "get_" + field)
        base, how = _BUILT_IN.get(field, (None, ""))
        return how if base is not None and getter is getattr(base, "get_" + field) else "python"
    mapped = getattr(cls, "map", {})
    return "python" if not isinstance(mapped, dict) or field in mapped else "plain"


def _plain(value: Any, name: str, id: Id) -> Any:
    """The value as plain JSON; what is none is an error that names the place."""
    if _is_plain(value):
        return value
    try:
        # Through text: this is what the server would see.
        return json.loads(json.dumps(value, default=api_boundary_json_encoder, allow_nan=False))
    except (TypeError, ValueError) as exc:
        raise TypeError(f"Field {name} of {id} is not JSON: {exc}") from exc


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return True
    if kind is float:
        return isfinite(value)
    if kind is list:
        return all(_is_plain(each) for each in value)
    if kind is dict:
        return all(type(key) is str and _is_plain(each) for key, each in value.items())
    return False


def _required(each: Resource, other: Any) -> Id:
    if isinstance(other, Resource):
        return other.id
    if isinstance(other, Id):
        return other
    if isinstance(other, str):
        return Id.parse_id(other)
    raise Exception(
        f"A dependency manager made {each.id} require {other!r}, a {type(other).__name__};"
        " it can require resources, ids and their texts"
    )


def _handlers(commander: Any, kind: str) -> list[type]:
    return [cls for name, cls in commander.get_providers() if name == kind]

