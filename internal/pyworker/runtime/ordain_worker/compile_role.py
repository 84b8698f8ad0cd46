"""The compile role: runs plug-ins for the engine, and makes resources for the exporter.

Go asks ``start``, ``load``, ``call``, ``finalize`` and those of exporting.py; while it waits for
an answer it is asked for what the code reads (class EngineModel). PROTOCOL.md has the details.
"""

from __future__ import annotations

import faulthandler
import gc
import io
import os
import sys

from inmanta.ast import (
    CompilerException,
    Location,
    MultiUnsetException,
    NotFoundException,
    OptionalValueException,
    PluginException,
    Range,
    RuntimeException,
    TypeNotFoundException,
    UnknownException,
    UnsetException,
)
from inmanta.execute import runtime
from inmanta.execute.proxy import DynamicProxy, ProxyContext
from inmanta.execute.runtime import EMPTY, Instance, QueueScheduler, Resolver, ResultVariable
from inmanta.execute.util import NoneValue, Unknown
from ordain_worker import loading
from ordain_worker.frames import Channel, Dialogue, Failure, class_name
from ordain_worker.values import Codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Optional

_RUNTIME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Output(io.TextIOBase):
    """Standard output of the code: whole lines, in order.

    They go with the reply that they belong to; each is told at once too, so
    that what was printed is known of code that ends the process.
    """

    def __init__(self, tell: Callable[[str, Any], None]) -> None:
        self._tell = tell
        self._text = ""
        self._lines: list[str] = []

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def write(self, text: str) -> int:
        *lines, self._text = (self._text + text).split("\n")
        if lines:
            self._lines += lines
            self._tell("printed", {"lines": lines})
        return len(text)

    def take(self, all: bool = False) -> list[str]:
        if all and self._text:
            self.write("\n")
        lines, self._lines = self._lines, []
        return lines


class EngineModel:
    """The model, which the engine holds: what is not known here is asked for."""

    def __init__(self, talk: Dialogue, codec: Codec) -> None:
        self._talk = talk
        self._codec = codec
        self._missing: set[tuple[str, str]] = set()
        self._types: dict[str, Any] = {}
        # Variables without a value, one object for each, for as long as a call runs.
        self.unset: dict[Any, ResultVariable] = {}

    def read(self, instance: Instance, name: str) -> object:
        if (instance.entity_name, name) in self._missing:
            raise NotFoundException(None, name, f"attribute {name} not found on {instance.entity_name}")
        also = [each.id for each in instance.siblings or () if each is not instance and name not in each.known]
        reply = self._talk.ask("read", {"i": instance.id, "n": name, "also": also} if also else {"i": instance.id, "n": name})
        # In the order in which Go wrote them: what comes first introduces an instance to what follows.
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
        """Where a loop follows a relation, what is read of one end will be read of all."""
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
            variable = ResultVariable(slot=slot)
            variable._problem = UnsetException("Value not available", variable)
            self.unset[key] = variable
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
        return types.TYPES.get(name) or types.Any()

    def instances_of(self, name: str) -> list[Instance]:
        return self._codec.decode(self._talk.ask("instances", {"n": name}))

    def entities(self) -> list[str]:
        return self._talk.ask("entities", {})

    def accepts(self, name: str, value: object) -> bool:
        return self._talk.ask("accepts", {"n": name, "v": self._codec.encode(DynamicProxy.unwrap(value))})

    def origin(self, instance: Instance) -> list[Location]:
        return [Location(each["file"], each["line"]) for each in self._talk.ask("origin", {"i": instance.id}) or ()]


class CompileRole:
    """Answers what Go asks."""

    def __init__(self, channel: Channel) -> None:
        self.talk = Dialogue(channel, self.answer)
        self.codec = Codec()
        self.model = EngineModel(self.talk, self.codec)
        self.output = Output(self.talk.notify)
        self.plugins: dict[int, tuple[Any, _Converters]] = {}
        self.modules: Optional[loading.Modules] = None
        self._stopped: Optional[BaseException] = None  # a load that failed
        self.finder: Optional[loading.Finder] = None
        self.prepared: Optional[dict[str, Any]] = None  # the load that the template of this worker did
        self._exporting: Any = None
        self._compiler: Any = None

    def answer(self, op: str, args: Any) -> Any:
        if op == "call":
            self._decode_arguments(args)
            return self.call(args)
        if op == "calls":
            return self.calls(args["calls"])
        if op == "do":
            from ordain_worker import objects

            return objects.do(self.codec, args)
        if op in ("start", "load", "load_further", "finalize"):
            return getattr(self, op)(args)
        if op == "export_files" and self._exporting is None:
            return {}  # nobody had anything to upload with
        if op == "export_unknowns" and "inmanta.export" not in sys.modules:
            return {}  # nobody could have noted any
        if op.startswith("export_"):
            return self.guarded(lambda: self.exporting().answer(op, args))
        raise Failure(f"the compile role does not know {op!r}", kind="protocol")

    def exporting(self) -> Any:
        if self._exporting is None:
            from ordain_worker.exporting import Exporting

            self._exporting = Exporting(self.talk, self.codec, self.modules, describe)
        return self._exporting

    # Before the model runs.

    def start(self, args: dict[str, Any]) -> dict[str, Any]:
        """Import what every compile needs, while Go still parses."""
        from inmanta.config import Config
        from inmanta.protocol import endpoints

        sys.stdout = self.output  # type: ignore[assignment]
        import _signal  # signal itself imports enum

        if hasattr(_signal, "SIGUSR1"):
            # Go sends it when a call takes too long, to learn where it hangs.
            faulthandler.register(_signal.SIGUSR1, file=sys.__stderr__, all_threads=True, chain=False)
        Config.load_config_from_dict(args.get("settings") or {})
        known = args.get("known")
        if known is not None:
            endpoints.answer_with(lambda method, kwargs: _answer(known, method, kwargs))
        if self.finder is None:
            runtime.install(self.model)
            self.finder = loading.install()
        return {"pid": os.getpid(), "python": "%d.%d.%d" % sys.version_info[:3]}

    def load(self, args: dict[str, Any]) -> dict[str, Any]:
        from inmanta import module as project
        from inmanta.compiler import Compiler

        assert self.finder is not None, "start comes before load"
        if self.prepared is not None:
            return self._load_more(args)
        modules = args["modules"]
        project.Project.set(
            project.Project(
                args["project"],
                args.get("name") or "",
                [project.Module(each["name"], each["root"], each.get("version") or "") for each in modules],
                args.get("metadata"),
                args.get("modulepath") or (),
            )
        )
        lazy = args.get("lazy")
        self.finder.modulepath = list(args.get("modulepath") or ())
        self.modules = loading.Modules(self.finder, modules, lazy)
        self._compiler = Compiler()
        gc.disable()  # imports make much and free little
        try:
            if lazy is None:
                reply = self._load_all([each["name"] for each in modules], bool(args.get("record")))
            else:
                self.modules.shared()
                for name in args.get("expect") or ():
                    self.modules.need(name)
                reply = {}
        except BaseException as exc:
            self._stopped = exc
            return {"error": describe(exc), "output": self.output.take()}
        finally:
            gc.enable()
        # What is loaded stays; and a compile is short, so rubbish in circles may wait.
        gc.freeze()
        gc.set_threshold(200_000, 20, 20)
        return {**reply, "output": self.output.take()}

    def load_further(self, args: Any) -> dict[str, Any]:
        """What else is wrong after a load that failed."""
        assert self.modules is not None and self._stopped is not None
        found: list[BaseException] = []
        if isinstance(self._stopped, loading.ImportStopped):
            found += self.modules.further(self._stopped)
        wrong: list[Exception] = []
        if isinstance(self._stopped, loading.ImportStopped) or loading.is_annotation_error(self._stopped):
            loading.signatures(self.modules.names(), wrong)
        found += [exc for exc in wrong if str(exc) != str(self._stopped)]
        self.output.take()
        return {"errors": [describe(exc) for exc in found]}

    def _load_more(self, args: dict[str, Any]) -> dict[str, Any]:
        """What the template of this worker did not load."""
        assert self.modules is not None and self.prepared is not None
        if {**self.prepared, "expect": None} != {**args, "expect": None}:
            raise Failure("a warm worker was asked for another load than its template's", kind="protocol")
        try:
            for name in args.get("expect") or ():
                self.modules.need(name)
        except Exception as exc:
            return {"error": describe(exc), "output": self.output.take()}
        return {"output": self.output.take()}

    def _load_all(self, names: list[str], record: bool) -> dict[str, Any]:
        """Import all modules and tell what they bring; with ``record`` also what the compiler needs to keep that."""
        import contextlib

        table: dict[str, Any] = {}
        if record:
            from ordain_worker import exporting, recording

            with recording.recording() as notes:
                self.modules.all(notes.turn)
            table = notes.table()
        else:
            self.modules.all(lambda name: contextlib.nullcontext())
        _, signatures, warnings = loading.signatures(names)
        reply = {"plugins": signatures, "dataclasses": loading.dataclasses_of(names), "warnings": warnings}
        if record:
            with contextlib.suppress(Exception):  # an export will ask, and say it
                table["export"] = exporting.described()
                table["code"] = exporting.code_of([each["name"] for each in table["export"]["types"]])
            from inmanta.compiler import Finalizers

            table["finalizers"] = Finalizers.owners()
            reply["table"] = table
        return reply

    # While the model runs.

    def call(self, args: dict[str, Any]) -> dict[str, Any]:
        """A call whose arguments are decoded."""
        reply = self._call(args)
        lines = self.output.take()
        if lines:
            reply["out"] = lines
        self.model.unset.clear()
        return reply

    def calls(self, calls: list[dict[str, Any]]) -> None:
        """Calls one after the other, until one does not give what it declares: each outcome is told at once."""
        for each in calls:  # what is introduced by a call that will not run is known all the same
            self._decode_arguments(each)
        for each in calls:
            reply = self.call(each)
            self.talk.notify("result", reply)
            if "v" not in reply or not self.plugins[each["p"]][1].gives(reply["v"]):
                return

    def _decode_arguments(self, args: dict[str, Any]) -> None:
        decode = self.codec.decode
        args["a"] = [each if type(each) is str else decode(each) for each in args["a"]]
        named = args.get("k")
        if named:
            args["k"] = {name: decode(each) for name, each in named.items()}

    def _call(self, args: dict[str, Any]) -> dict[str, Any]:
        try:
            plugin, convert = self.plugins.get(args["p"]) or self._introduced(args)
            positional = [convert.at(index)(each) for index, each in enumerate(args["a"])]
            named = {name: convert.named(name)(each) for name, each in (args.get("k") or {}).items()}
            if plugin._context >= 0:
                context = self._context(plugin, args)
                if plugin.context_keyword_only:
                    named[plugin.context_name] = context
                else:
                    positional.insert(plugin._context, context)
            result = plugin(*positional, **named)
            return {"v": self.codec.encode(result)}
        except UnsetException as exc:
            variable = exc.get_result_variable()
            if getattr(variable, "slot", None) is None:
                return {"err": describe(exc)}
            return {"unset": [variable.slot]}
        except MultiUnsetException as exc:
            slots = sorted({each.slot for each in exc.result_variables if getattr(each, "slot", None) is not None})
            return {"unset": slots} if slots else {"err": describe(exc)}
        except UnknownException as exc:
            return {"err": describe(exc)} if plugin.opts.get("emits_statements") else {"v": self.codec.encode(exc.unknown)}
        except BaseException as exc:
            return {"err": describe(exc)}

    def _introduced(self, args: dict[str, Any]) -> tuple[Any, "_Converters"]:
        """A plug-in that is called for the first time: its module is imported now if it was not before."""
        from inmanta.plugins import one_plugin

        signature = args["sig"]
        self.modules.need(signature["name"].partition("::")[0])
        plugin = one_plugin(signature["name"])
        plugin._context, plugin.context_name, plugin.context_keyword_only = signature["context"]
        made = self.plugins[args["p"]] = plugin, _converters(signature, set(args.get("twins") or ()))
        return made

    def _context(self, plugin: Any, args: dict[str, Any]) -> Any:
        from inmanta.plugins import Context, Owner

        place = args.get("at") or ["", 0, 0, 0, 0]
        owner = Owner(args.get("ns") or "__config__", Range(*place), plugin.get_full_name())
        return Context(
            resolver=Resolver(owner.namespace),
            queue=QueueScheduler(self._compiler),
            owner=owner,
            plugin=plugin,
            result=ResultVariable(),
        )

    def finalize(self, args: Any) -> dict[str, Any]:
        from inmanta.compiler import Finalizers

        for module in args["modules"]:
            self.modules.need(loading.top(module))
        Finalizers.sort(lambda module: self.modules.position(loading.top(module)))
        return self.guarded(lambda: Finalizers.call_finalizers() or {})

    def guarded(self, work: Any) -> dict[str, Any]:
        """Run code of modules; what it raises and prints goes into the answer."""
        try:
            reply = work()
        except Failure:
            raise
        except BaseException as exc:
            reply = {"error": describe(exc)}
        lines = self.output.take(all=True)
        if lines:
            reply["output"] = lines
        return reply


def _answer(known: dict[str, Any], method: str, kwargs: dict[str, Any]) -> Any:
    """What the server gave along: all that a compile may learn from the outside."""
    from inmanta.protocol.common import Result

    facts: dict[str, dict[str, str]] = known.get("facts") or {}
    if method in ("get_environment", "environment_get") and known.get("environment"):
        return Result(200, {"environment": known["environment"], "data": known["environment"]})
    if method == "list_params":
        return Result(
            200,
            {
                "parameters": [
                    {"resource_id": resource, "name": name, "value": value}
                    for resource, known in facts.items()
                    for name, value in known.items()
                ]
            },
        )
    if method == "get_param":
        value = facts.get(kwargs.get("resource_id") or "", {}).get(kwargs.get("id") or "")
        if value is None:
            return Result(404, {"message": "the parameter is not known"})
        return Result(200, {"parameter": {"value": value}})
    if method == "get_facts":
        known = facts.get(kwargs.get("rid") or "", {})
        return Result(200, {"data": [{"name": name, "value": value} for name, value in known.items()]})
    return None


class _Converters:
    """How each argument of a plug-in is shown to it."""

    def __init__(self, positional: list[Any], rest: Any, named: dict[str, Any], extra: Any, result: Any) -> None:
        self._result = result
        self._positional = positional
        self._rest = rest
        self._named = named
        self._extra = extra

    def gives(self, value: Any) -> bool:
        """Whether the value of an answer is what a plug-in that gives a plain value declares."""
        return self._result is None or type(value) is self._result

    def at(self, index: int) -> Any:
        return self._positional[index] if index < len(self._positional) else self._rest

    def named(self, name: str) -> Any:
        return self._named.get(name) or self._extra


def _converters(signature: dict[str, Any], twins: set[str]) -> _Converters:
    positional, rest, named, extra = [], None, {}, None
    namespace = signature["name"].rpartition("::")[0]
    for param in signature["params"]:
        convert = _converter(param["name"], _with_twins(param["type"], namespace, twins))
        kind = param["kind"]
        if kind == "positional":
            positional.append(convert)
            named[param["name"]] = convert
        elif kind == "varargs":
            rest = convert
        elif kind == "keyword":
            named[param["name"]] = convert
        else:
            extra = convert
    plain = _converter("argument", {"k": "any"})
    result = _PLAIN.get((signature["return"] or {}).get("name"))
    return _Converters(positional, rest or plain, named, extra or plain, result)


_PLAIN = {"string": str, "int": int, "float": float, "bool": bool}


def _converter(name: str, annotation: dict[str, Any]) -> Any:
    if _mentions_dataclass(annotation):
        return lambda value: _to_python(value, annotation, name)
    context = ProxyContext(path=name)  # Go held it against the annotation

    def show(value: Any) -> Any:
        # Only a plug-in that takes unknown values is called with one.
        return value if isinstance(value, Unknown) else DynamicProxy.return_value(value, context=context)

    return show


def _with_twins(annotation: dict[str, Any], namespace: str, twins: set[str]) -> dict[str, Any]:
    """The annotation, where entities that are dataclasses in Python are named as such."""
    if annotation.get("of"):
        return {**annotation, "of": [_with_twins(each, namespace, twins) for each in annotation["of"]]}
    if annotation["k"] != "dsl" or not twins:
        return annotation
    name = annotation["name"].strip()
    if annotation.get("view") and not name.endswith(("?", "[]")):
        return annotation
    for end, kind in (("?", "nullable"), ("[]", "list")):
        if name.endswith(end):
            inner = _with_twins({"k": "dsl", "name": name.removesuffix(end)}, namespace, twins)
            return {"k": kind, "of": [inner]}
    if "::" not in name:
        while namespace and f"{namespace}::{name}" not in twins:
            namespace = namespace.rpartition("::")[0]
        name = f"{namespace}::{name}"
    return {"k": "dataclass", "name": name} if name in twins else annotation


def _mentions_dataclass(annotation: dict[str, Any]) -> bool:
    return annotation["k"] == "dataclass" or any(
        _mentions_dataclass(each) for each in annotation.get("of") or () if annotation["k"] != "reference"
    )


def _to_python(value: Any, annotation: dict[str, Any], path: str) -> Any:
    """A value for an annotation with dataclasses in it: their instances become objects of those classes."""
    from ordain_worker.annotations import dataclass_entity

    kind = annotation["k"]
    if isinstance(value, NoneValue):
        return None
    if kind in ("list", "dict") and isinstance(value, (list, dict)):
        inner = annotation["of"][0]
        if isinstance(value, list):
            return [_to_python(each, inner, f"{path}[{index}]") for index, each in enumerate(value)]
        return {key: _to_python(each, inner, f"{path}[{key!r}]") for key, each in value.items()}
    if kind in ("nullable", "union") or kind == "dataclass":
        wanted = [annotation] if kind == "dataclass" else annotation["of"]
        if isinstance(value, Instance):
            names = _lineage(value)
            if "std::Dataclass" in names:
                names += [dataclass_entity(_class_of(each)) for each in names if each.count("::")]
            for each in wanted:
                if each["k"] == "dataclass" and "std::Dataclass" in names and any(one["name"] in names for one in (each, *each.get("of", ()))):
                    return _make_dataclass(value, _class_of(value.entity_name))
        for each in wanted:
            if each["k"] in ("list", "dict", "nullable", "union") and isinstance(value, (list, dict, Instance)):
                return _to_python(value, each, path)
    return DynamicProxy.return_value(value, context=ProxyContext(path=path))


def _lineage(instance: Instance) -> list[str]:
    return [instance.entity_name, *instance.get_type().get_all_parent_names()]


def _class_of(entity: str) -> Any:
    """The class that an entity is paired with: what its module binds to its name; None where it has none."""
    import importlib

    module, _, name = entity.rpartition("::")
    try:
        return getattr(importlib.import_module(".".join(["inmanta_plugins", *module.split("::")])), name, None)
    except ModuleNotFoundError:
        return None


def _make_dataclass(instance: Instance, cls: Any) -> Any:
    import dataclasses

    proxy = DynamicProxy(instance)._allow_references()
    return cls(**{field.name: _deep(getattr(proxy, field.name)) for field in dataclasses.fields(cls)})


def _deep(value: Any) -> Any:
    """Lists and dicts of their own for a dataclass, not views."""
    if isinstance(value, DynamicProxy):
        inner = value._get_instance()
        if isinstance(inner, list):
            return [_deep(each) for each in value]
        if isinstance(inner, dict):
            return {key: _deep(each) for key, each in value.items()}  # type: ignore[attr-defined]
    return value


def describe(exc: BaseException, importing: str = "") -> dict[str, Any]:
    """An exception for the author of a model: with the frames of modules only.

    :param importing: the file that was imported, when it arose there: that has the place.
    """
    if isinstance(exc, loading.ImportStopped) and exc.__cause__ is not None:
        return {**describe(exc.__cause__, exc.file), "module": exc.module, "importing": exc.importing}
    import traceback

    frames = _module_frames(exc)
    if not frames and isinstance(exc, CompilerException) and exc.__cause__ is not None:
        frames = _module_frames(exc.__cause__)  # our words for what a module raised
    unread = exc if isinstance(exc, SyntaxError) and exc.filename and not exc.filename.startswith("<") else None
    if unread is not None and unread.filename:
        frames.append(traceback.FrameSummary(exc.filename, exc.lineno or 0, "<module>", line=(exc.text or "").strip()))
    if isinstance(exc, PluginException):
        kind = "plugin"
    elif isinstance(exc, RuntimeException):
        kind = "compiler"
    elif loading.is_annotation_error(exc):
        kind = "annotation"
    else:
        kind = "external" if isinstance(exc, Exception) else "exit"
    try:
        message = exc.get_message() if isinstance(exc, CompilerException) else str(exc)
    except Exception as broken:
        message = f"(its message cannot be shown: {type(broken).__name__})"
    innermost = _innermost(frames, importing)
    described: dict[str, Any] = {
        "kind": kind,
        "class": exc.error if kind == "annotation" else class_name(type(exc)),  # type: ignore[attr-defined]
        "message": message,
        "file": innermost.filename if innermost else "",
        "line": (innermost.lineno or 0) if innermost else 0,
        "trace": "".join(traceback.format_list(frames)),
    }
    if kind == "annotation":
        described["file"], described["line"] = exc.place  # type: ignore[attr-defined]
    if isinstance(exc, CompilerException):
        place = exc.get_location()
        if place is not None:
            described["at"] = [place.file, place.lnr, getattr(place, "start_char", 0)]
        described["causes"] = [describe(each) for each in exc.get_causes()]
    if unread is not None and unread.offset:
        described["column"] = unread.offset
    if isinstance(exc, ModuleNotFoundError):
        described["missing"] = exc.name or ""
    return described


def _module_frames(exc: BaseException) -> list[Any]:
    import traceback

    return [frame for frame in traceback.extract_tb(exc.__traceback__) if _is_module_frame(frame.filename)]


def _innermost(frames: list[Any], importing: str) -> Any:
    """The last frame in the file that is imported, or else in a file of plug-ins."""
    for belongs in (
        lambda name: name == importing,
        lambda name: "inmanta_plugins" in name or f"{os.sep}plugins{os.sep}" in name,
        lambda name: True,
    ):
        for frame in reversed(frames):
            if belongs(frame.filename):
                return frame
    return None


def _is_module_frame(filename: str) -> bool:
    return not (filename.startswith(_RUNTIME) or filename.startswith("<frozen") or f"{os.sep}importlib{os.sep}" in filename)


def main(channel: Channel) -> None:
    CompileRole(channel).talk.serve()
