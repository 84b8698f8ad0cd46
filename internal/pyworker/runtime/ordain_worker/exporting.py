"""The export half of the compile role.

Go knows the instances and writes plain fields itself. It asks here, for many
instances at a time, for the fields that a class computes, and for what
dependency managers add. Values in answers are plain JSON, not the tagged form.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from inmanta import references
from inmanta._making import COLLECTED
from inmanta.ast import UnknownException
from inmanta.ast.entity import Entity
from inmanta.execute.proxy import DynamicProxy, ExportContext, ProxyContext
from inmanta.execute.runtime import Instance, note_reads
from inmanta.execute.util import Unknown
from inmanta.export import Exporter, unknown_parameters
from inmanta.references import ResourceCollector
from inmanta.resources import Id, IgnoreResourceException, ManagedResource, Resource, resource
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
        self._sent: set[str] = set()

    def answer(self, op: str, args: Any) -> dict[str, Any]:
        with ExportContext():
            return getattr(self, op)(args)

    def export_types(self, args: Any) -> dict[str, Any]:
        """Which entities are resources, and how their fields get their values."""
        return described()

    def export_fields(self, args: dict[str, Any]) -> dict[str, Any]:
        """Fields of many instances of one type.

        args: type, module (Python module of its class), names (of all), rows [[instance, id or null, names of this one]]
        A row of the answer is an object with some of: id, values, reads, undefined, unfit (why values are no JSON),
        references, mutators, ignored, unknown_id, errors (of all fields that failed, in their order). reads has, by field,
        the [instance, attribute] that its value was made from.
        """
        self._need(args["module"])
        cls, options = resource._resources[args["type"]]
        instances = self._codec.decode([row[0] for row in args["rows"]])
        if len(instances) == 1:
            instances[0].siblings = None
        rows = []
        for instance, row in zip(instances, args["rows"]):
            try:
                rows.append(self._row(cls, options, args["type"], instance, row[1], row[2] or args["names"] or []))
            except IgnoreResourceException:
                rows.append({"ignored": True})
            except Failure:
                raise
            except Exception as exc:  # the others are looked at all the same
                rows.append({"errors": [self._describe(exc)]})
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
            reply["id"] = [made_id.agent_name, made_id.attribute, made_id.attribute_value]
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

    def export_dependencies(self, args: dict[str, Any]) -> dict[str, Any]:
        """Run the dependency managers.

        args: rows [[type, agent, attribute, value, instance, fields, [indexes of required rows], [undefined fields]]]
        The answer has, by index of the row, all ids that are required now, where that is not as before, and the
        fields that were changed; rows that were removed; and, as [row, id], a requirement that leads nowhere.
        """
        for module in args["modules"]:
            self._need(module)
        Exporter._dependency_managers.sort(key=lambda manager: self._modules.position(top(manager.__module__)))
        instances = self._codec.decode([row[4] for row in args["rows"]])
        by_type: dict[str, list[Instance]] = {}
        made: list[Resource] = []
        for row, instance in zip(args["rows"], instances):
            cls, _ = resource._resources[row[0]]
            each = _resource(cls, Id(row[0], row[1], row[2], row[3]), row[5])
            each.__dict__["model"] = DynamicProxy(instance)
            for name in row[7] or ():
                setattr(each, name, Unknown())
            by_type.setdefault(instance.entity_name, []).append(instance)
            made.append(each)
        for siblings in by_type.values():
            for instance in siblings:
                instance.siblings = siblings if len(siblings) > 1 else None
        for row, each in zip(args["rows"], made):
            each.requires = {made[index].id for index in row[6]}
            each.resource_requires = {made[index] for index in row[6]}
        before = [set(each.requires) for each in made]
        fields = [{name: _watch(value) for name, value in each.__dict__.items() if name in row[5]} for row, each in zip(args["rows"], made)]
        by_id = {each.id: each for each in made}
        for manager in Exporter._dependency_managers:
            try:
                manager(_Types(), by_id)
            except UnknownException:
                pass  # what it wanted to know is not known in this compile
        reply: dict[str, Any] = {"added": {}, "changed": {}, "removed": []}
        for index, each in enumerate(made):
            if by_id.get(each.id) is not each:
                reply["removed"].append(index)
                continue
            required = [_required(each, other) for other in each.requires]
            lost = [id for id in required if id not in by_id]
            if lost:
                reply.setdefault("lost", [index, str(lost[0])])
            if each.requires != before[index]:
                reply["added"][str(index)] = sorted(map(str, required))
            changed = {name: each.__dict__[name] for name, was in fields[index].items() if _watch(each.__dict__[name]) != was}
            if changed:
                reply["changed"][str(index)] = {name: _plain(value, name, each.id) for name, value in changed.items()}
        return reply

    def export_functions(self, args: dict[str, Any]) -> dict[str, Any]:
        """Run export functions, by the names that they were registered with."""
        self._modules.rest()
        types = self._exporter.types = _Types()
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
        for name in sorted(self._exporter.files):
            if name in self._sent:
                continue
            content = self._exporter.files[name]
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


class _Types(Mapping[str, Any]):
    """The entities of the model by name, as dependency managers and export functions get them."""

    def __getitem__(self, name: str) -> Any:
        from inmanta.ast import TypeNotFoundException
        from inmanta.execute import runtime

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
    """What the modules registered for an export, in the form of the answer to ``export_types``."""
    resource.validate()
    return {
        "types": [_declare(name, cls, options) for name, (cls, options) in resource._resources.items()],
        "references": {
            name: cls.__module__
            for name, cls in [*references.reference.get_references(), *references.mutator.get_mutators()]
        },
        "managers": [
            {"module": manager.__module__, "types": managers.types_of(manager)} for manager in Exporter._dependency_managers
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
    own_making = (
        cls.map_field.__func__ is not Resource.map_field.__func__  # type: ignore[attr-defined]
    )
    if own_making:
        fields = [[field, "python"] for field, _ in fields]
    if own_making or _how(cls, options["name"]) != "plain":
        own_id = True
    return {
        "name": name,
        "agent": options["agent"],
        "id_attribute": options["name"],
        "own_id": own_id,
        "fields": fields,
        "functions": {field: _written(cls, field) for field, how in fields if how == "python"},
        "module": cls.__module__,
    }


def _written(cls: type[Resource], field: str) -> list[Any]:
    """File, line and name of the function that computes a field; empty and 0 where it is none of Python's."""
    function = getattr(cls, "get_" + field, None) or getattr(cls, "map", {}).get(field) or cls.map_field
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", field)
    return [code.co_filename, code.co_firstlineno, name] if code is not None else ["", 0, name]


def _resource(cls: type[Resource], id: Id, fields: dict[str, Any]) -> Resource:
    """A resource with all its fields, made without a detour over empty ones where the class allows it."""
    if cls.__init__ is not Resource.__init__:
        made = cls(id)
        made.__dict__.update(fields)
        return made
    made = cls.__new__(cls)
    made.__dict__.update(fields)
    made.__dict__.update(
        id=id, requires=set(), resource_requires=set(), unknowns=set(), _resolver=references.Resolver()
    )
    return made


def _how(cls: type[Resource], field: str) -> str:
    getter = getattr(cls, "get_" + field, None)
    if getter is not None:
        base, how = _BUILT_IN.get(field, (None, ""))
        return how if base is not None and getter is getattr(base, "get_" + field) else "python"
    return "python" if field in getattr(cls, "map", {}) else "plain"


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

