"""The export half of the compile role.

Go has the instances and writes plain fields itself. For many instances at a time,
it requests the fields that a class computes and the requirements that dependency
managers add. Values in answers are plain JSON, not the tagged form.

Resource objects are usually made only for dependency managers and export
functions, which get all of them. Classes with special behaviour (a ``serialize``,
a property for a field …) are *held* instead: their objects are made with their
fields, stay here, and serialise themselves at the end:

    export_fields ─▶ export_dependencies ─▶ export_functions ─▶ export_written
"""

import base64
import contextlib
import io
from collections.abc import Callable
from typing import Any, Optional

from inmanta.ast import UnknownException
from inmanta.ast.entity import Entity
from inmanta.execute.proxy import ExportContext
from inmanta.execute.runtime import Instance, all_types, note_reads
from inmanta.execute.util import Unknown
from inmanta.export import Exporter, unknown_parameters
from inmanta.references import ResourceCollector
from inmanta.resources import Id, IgnoreResourceException, Resource, resource
from ordain_worker.frames import Dialogue, Failure
from ordain_worker.loading import Modules, top
from ordain_worker.plainjson import plain
from ordain_worker.registered import code_of, declared, is_held, name_of
from ordain_worker.resourcegraph import ResourceGraph, parts, view
from ordain_worker.values import Codec

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
        self._exporter.types = all_types()
        self._sent: set[str] = set()
        self._held: list[Resource] = []
        self._all: Optional[ResourceGraph] = None
        self._failed = False

    def answer(self, op: str, args: Any) -> dict[str, Any]:
        return getattr(self, op)(args)

    def export_types(self, args: Any) -> dict[str, Any]:
        """Describe which entities are resources, and how their fields get their values."""
        return declared()

    def export_fields(self, args: dict[str, Any]) -> dict[str, Any]:
        """Fields of many instances of one type.

        args: type, module (Python module of its class), names (of all), rows [[instance, id or null, names of this one]],
        failed (whether the export does, for what Go found)
        A row of the answer is an object with some of: id, values, reads, undefined, unfit (why values are no JSON),
        references, mutators, ignored, unknown_id, errors (of all fields that failed, in their order), held (its number,
        for a resource that is held: it has no values yet). reads has, by field, the [instance, attribute] that its value
        was made from.

        After the first error it goes on to find the others, but drops their output.
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
            except Exception as exc:  # goes on with the other fields
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
        proxy = view(instance)
        if known is None:
            try:
                made_id = cls.object_to_id(proxy, kind, options["name"], options["agent"])
            except UnknownException:
                return {"unknown_id": True}
        else:
            # Go has read the parts from the model. The check of their characters is the same for all.
            made_id = Id(kind, *known)
        reply: dict[str, Any] = {}
        if known is None:
            reply["id"] = parts(made_id)
        collector = ResourceCollector(made_id)
        values: dict[str, Any] = {}
        undefined: list[str] = []
        reads: dict[str, list[tuple[int, str]]] = {}
        errors: list[dict[str, Any]] = []
        with ExportContext():  # references are not allowed in the id
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
                        value = plain(value, name, made_id)
                    except TypeError as exc:
                        reply.setdefault("unfit", []).append([str(exc), *exc.__notes__])
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
        """Make a resource in the steps that modules know, and keep it."""
        proxy = view(instance)
        reads: dict[str, list[tuple[int, str]]] = {}
        try:
            made = cls(cls.object_to_id(proxy, kind, options["name"], options["agent"]))
            collector = ResourceCollector(made)
            fields: dict[str, object] = {}
            with ExportContext():
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
            reply = {"id": parts(made.id), "reads": reads, "undefined": undefined}
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
        The answer is that of ResourceGraph.graph.
        """
        for module in args["modules"]:
            self._need(module)
        order = {name: place for place, name in enumerate(args["managers"])}
        Exporter._dependency_managers.sort(key=lambda manager: order.get(name_of(manager), len(order)))
        self._all = ResourceGraph(args["rows"], self._codec.decode([row[5] for row in args["rows"]]), self._held)
        by_id = self._exporter._resources = self._all.by_id
        for manager in Exporter._dependency_managers if args["managers"] else ():
            try:
                manager(all_types(), by_id)
            except UnknownException:
                pass  # it depends on something unknown in this compile
        return self._all.graph()

    def export_written(self, args: Any) -> dict[str, Any]:
        """The final resources: the answer of ResourceGraph.written and, after export functions, that of graph again."""
        assert self._all is not None
        return {**(self._all.graph(clean=False) if args["again"] else {}), **self._all.written()}

    def export_functions(self, args: dict[str, Any]) -> dict[str, Any]:
        """Run export functions by their registered names."""
        self._modules.rest()
        types = self._exporter.types
        for name in args["names"]:
            if name not in Exporter._export_functions:
                raise Exception(f"Export function {name} does not exist.")
            wanted, function = Exporter._export_functions[name]
            with ExportContext():
                if wanted:
                    function(self._exporter, types={each: _shown(types, each) for each in wanted})
                else:
                    function(self._exporter)
        return {}

    def export_files(self, args: Any) -> dict[str, Any]:
        """Uploaded contents that were not sent yet. The next request gets more of them."""
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


def _shown(types: Any, name: str) -> list[Any]:
    """The instances of a type as export functions get them, or none if the model lacks the type."""
    entity = types.get(name)
    if not isinstance(entity, Entity):
        return []
    return [view(each) for each in entity.get_all_instances()]
