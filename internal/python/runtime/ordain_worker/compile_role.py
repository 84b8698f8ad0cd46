"""The compile role: runs plug-ins for the engine, and makes resources for the exporter.

Go sends ``start``, ``load``, ``call``, ``finalize`` and the requests of exporting.py. While it waits for a
reply, it answers requests for what the code reads of the model (enginemodel.py). PROTOCOL.md has the details.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import sys

from inmanta.ast import MultiUnsetException, Range, UnknownException, UnsetException
from inmanta.execute import runtime
from inmanta.execute.proxy import DynamicProxy
from inmanta.execute.runtime import ExecutionContext, QueueScheduler, ResultVariable
from ordain_worker import loading
from ordain_worker.converting import Converters, converters
from ordain_worker.enginemodel import EngineModel
from ordain_worker.failures import describe
from ordain_worker.frames import Channel, Dialogue, Failure
from ordain_worker.output import Output
from ordain_worker.values import Codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional


class CompileRole:
    """Answers the requests of Go."""

    def __init__(self, channel: Channel) -> None:
        self.talk = Dialogue(channel, self.answer)
        self.codec = Codec()
        self.model = EngineModel(self.talk, self.codec)
        self.output = Output(self.talk.notify)
        self.plugins: dict[int, tuple[Any, Converters]] = {}
        self.modules: Optional[loading.Modules] = None
        self._stopped: Optional[BaseException] = None  # the last load, if it failed
        self.finder: Optional[loading.Finder] = None
        self.prepared: Optional[dict[str, Any]] = None  # the load of the template from which this worker was copied
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
        if op in ("start", "load", "load_further", "twin", "finalize"):
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

    # Requests before the model runs.

    def start(self, args: dict[str, Any]) -> dict[str, Any]:
        """Import what every compile needs, while Go is still parsing."""
        from inmanta.config import Config
        from inmanta.protocol import endpoints

        sys.stdout = self.output  # type: ignore[assignment]
        import _signal  # signal itself imports enum

        if hasattr(_signal, "SIGUSR1"):
            # Go sends this signal when a call takes too long, to learn where it hangs.
            faulthandler.register(_signal.SIGUSR1, file=sys.__stderr__, all_threads=True, chain=False)
        Config.load_config_from_dict(args.get("settings") or {})
        known = args.get("known")
        endpoints.answer_with(lambda method, kwargs: _answer(known, method, kwargs, self.talk))
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
                modules,
                args.get("metadata"),
                args.get("modulepath") or (),
                bool(args.get("autostd")),
            )
        )
        lazy = args.get("lazy")
        self.finder.path.folders = list(args.get("modulepath") or ())
        self.modules = loading.Modules(self.finder, modules, lazy)
        self._compiler = Compiler(self.modules.has_space)
        self.model.loaded = self.modules.has_space
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
            told = describe(exc)
            if told["kind"] == "external" and not isinstance(exc, loading.ImportStopped):
                told["kind"] = "exit"  # no module's import failed: it passes everything by, as upstream
            return {"error": told, "output": self.output.take()}
        finally:
            gc.enable()
        # What is loaded stays, and a compile is short, so no collection of reference cycles is needed.
        gc.freeze()
        gc.set_threshold(200_000, 20, 20)
        return {**reply, "output": self.output.take()}

    def load_further(self, args: Any) -> dict[str, Any]:
        """Find further errors after a load that failed."""
        assert self.modules is not None and self._stopped is not None
        found: list[BaseException] = []
        if isinstance(self._stopped, loading.ImportStopped):
            found += self.modules.further(self._stopped)
        wrong: list[Exception] = []
        if isinstance(self._stopped, loading.ImportStopped) or loading.is_annotation_error(self._stopped):
            loading.signatures(self.modules.has_space, wrong)
        found += [exc for exc in wrong if str(exc) != str(self._stopped)]
        self.output.take()
        return {"errors": [describe(exc) for exc in found]}

    def twin(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return what Python has for an entity that should be a dataclass."""
        assert self.modules is not None
        self.modules.need(args["namespace"].partition("::")[0])

        def look() -> dict[str, Any]:
            found = loading.twin_of(args["namespace"], args["name"])
            return {key: describe(each) if isinstance(each, Exception) else each for key, each in found.items()}

        return self.guarded(look)

    def _load_more(self, args: dict[str, Any]) -> dict[str, Any]:
        """Load what the template of this worker has not loaded."""
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
        """Import all modules and describe them, with ``record`` also what the compiler needs to keep the description."""
        import contextlib

        table: dict[str, Any] = {}
        if record:
            from ordain_worker import recording, registered

            with recording.recording() as notes:
                self.modules.all(notes.turn)
            table = notes.table()
        else:
            self.modules.all(lambda name: contextlib.nullcontext())
        _, signatures, warnings = loading.signatures(self.modules.has_space)
        reply = {"plugins": signatures, "dataclasses": loading.dataclasses_of(names), "warnings": warnings}
        if record:
            with contextlib.suppress(Exception):  # an export will ask, and say it
                table["export"] = registered.described()
                table["code"] = registered.code_of([each["name"] for each in table["export"]["types"]])
            from inmanta.compiler import Finalizers

            table["finalizers"] = Finalizers.owners()
            reply["table"] = table
        return reply

    # Requests while the model runs.

    def call(self, args: dict[str, Any]) -> dict[str, Any]:
        """Call a plug-in."""
        reply = self._call(args)
        lines = self.output.take()
        if lines:
            reply["out"] = lines
        if self.model.warned:
            reply["warn"], self.model.warned = self.model.warned, []
        self.model.unset.clear()
        return reply

    def calls(self, calls: list[dict[str, Any]]) -> None:
        """Run calls in order until one returns something else than it declares. Each result is sent at once."""
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
            if plugin._is_patched() and "direct" not in args:
                return self._through_methods(plugin, convert, args)
            positional = [convert.at(index)(each) for index, each in enumerate(args["a"])]
            named = {name: convert.named(name)(each) for name, each in (args.get("k") or {}).items()}
            if plugin._context >= 0:
                context = self._context(plugin, args)
                if plugin.context_keyword_only:
                    named[plugin.context_name] = context
                else:
                    positional.insert(plugin._context, context)
            result = plugin._run(*positional, **named)
            if "direct" in args:
                result = DynamicProxy.unwrap(result)
            return {"v": self.codec.encode(result)}
        except UnsetException as exc:
            variable = exc.get_result_variable()
            if variable is None and "direct" not in args:
                return {"err": _nothing_to_wait_for(exc)}
            if getattr(variable, "slot", None) is None:
                return {"err": describe(exc)}
            return {"unset": [variable.slot]}
        except MultiUnsetException as exc:
            slots = sorted({each.slot for each in exc.result_variables if getattr(each, "slot", None) is not None})
            return {"unset": slots} if slots else {"err": describe(exc)}
        except UnknownException as exc:
            return (
                {"err": describe(exc)} if plugin.opts.get("emits_statements") else {"v": self.codec.encode(exc.unknown)}
            )
        except BaseException as exc:
            return {"err": describe(exc)}

    def _through_methods(self, plugin: Any, convert: Converters, args: dict[str, Any]) -> dict[str, Any]:
        """Call a plug-in whose methods a module has replaced, through these methods. Their result is not checked again."""
        from inmanta import plugins

        named = args.get("k") or {}
        if type(plugin).check_args is not plugins._CHECK:
            checked = plugin.check_args(args["a"], named)
        else:
            shown = [convert.at(index)(each) for index, each in enumerate(args["a"])]
            checked = plugins.CheckedArgs(
                shown, {name: convert.named(name)(each) for name, each in named.items()}, False
            )
        context = self._context(plugin, args)
        if plugin._context >= 0 and plugin.context_keyword_only:
            checked.kwargs[plugin.context_name] = context
        elif plugin._context >= 0:
            checked.args.insert(plugin._context, context)
        result = plugin.call_in_context(checked, context.resolver, context.queue, context.owner.location)
        return {"v": self.codec.encode(result), "checked": True}

    def _introduced(self, args: dict[str, Any]) -> tuple[Any, "Converters"]:
        """Return a plug-in that is called for the first time, importing its module if need be."""
        from inmanta.plugins import one_plugin

        signature = args["sig"]
        self.modules.need(signature["name"].partition("::")[0])
        plugin = one_plugin(signature["name"])
        plugin._context, plugin.context_name, plugin.context_keyword_only = signature["context"]
        made = self.plugins[args["p"]] = plugin, converters(signature, set(args.get("twins") or ()))
        return made

    def _context(self, plugin: Any, args: dict[str, Any]) -> Any:
        from inmanta.plugins import Context, Owner

        place = args.get("at") or ["", 0, 0, 0, 0]
        owner = Owner(args.get("ns") or "__config__", Range(*place), plugin.get_full_name())
        return Context(
            resolver=ExecutionContext(owner.namespace),
            queue=QueueScheduler(self._compiler),
            owner=owner,
            plugin=plugin,
            result=ResultVariable.without_value(),
        )

    def finalize(self, args: Any) -> dict[str, Any]:
        """Run the finalizers, which may call plug-ins."""
        from inmanta.compiler import Finalizers

        for module in args["modules"]:
            self.modules.need(loading.top(module))
        Finalizers.sort(lambda module: self.modules.position(loading.top(module)))
        return self.guarded(lambda: {"errors": [describe(exc) for exc in Finalizers.run()]})

    def guarded(self, work: Any) -> dict[str, Any]:
        """Run code of modules. What it raises and prints goes into the answer."""
        try:
            reply = work()
        except Failure:
            raise
        except BaseException as exc:
            reply = {"error": describe(exc)}
        if self.model.warned:
            reply["warn"], self.model.warned = self.model.warned, []
        lines = self.output.take(all=True)
        if lines:
            reply["output"] = lines
        return reply


def _nothing_to_wait_for(exc: UnsetException) -> dict[str, Any]:
    """The error about an UnsetException that a plug-in made itself, with which inmanta-core ends the compile."""
    return {
        **describe(exc),
        "kind": "exit",
        "class": "AttributeError",
        "message": "'NoneType' object has no attribute 'waitfor'",
        "hint": f"UnsetException({exc.get_message()!r}) names no variable that the plug-in could wait for: raise a PluginException",
        "causes": [],
    }


def _answer(known: Optional[dict[str, Any]], method: str, kwargs: dict[str, Any], talk: Dialogue) -> Any:
    """The answer to a call to the server. A compile knows only what the server sent with it."""
    from inmanta.protocol.common import Result

    if method == "ordain_clusters":  # of the module ordain
        return Result(200, {"data": talk.ask("clusters", {"n": kwargs["name"]})})
    if known is None:  # there is no server
        return None
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


def main(channel: Channel) -> None:
    CompileRole(channel).talk.serve()
