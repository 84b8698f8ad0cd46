"""Compiles projects with the reference and writes what came of each as a line of JSON.

It reads from standard input one JSON object a line, {"name", "dir", "std", "export", "partial", "delete", "env"}, and answers
{"name", "document"} in any order; the document has the form that `ordain compile --model-json`
writes. Each project is compiled in a process of its own, forked after the imports: so plug-ins
of one never meet those of another, and hundreds take seconds.
"""

import contextlib
import io
import json
import logging
import math
import os
import re
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Mapping

from inmanta import compiler, module, references
from inmanta.ast import CompilerException, MultiException
from inmanta.ast.attribute import RelationAttribute
from inmanta.ast.entity import Entity
from inmanta.ast.variables import Reference  # noqa: F401  (imported before the fork, as are the next)
from inmanta.compiler import config as compiler_config  # noqa: F401
from inmanta.execute.proxy import DynamicProxy
from inmanta.execute.runtime import Instance, ResultVariable
from inmanta.execute.util import NoneValue, Unknown
from inmanta.export import Exporter, unknown_parameters
from inmanta.protocol import json_encode
from inmanta.warnings import InmantaWarning, WarningsManager

SECONDS = 60


def value(v):
    if isinstance(v, Instance):
        return {"$ref": str(id(v))}
    if isinstance(v, DynamicProxy):
        return value(v._get_instance())
    if v is None or isinstance(v, NoneValue):
        return None
    if isinstance(v, Unknown):
        return {"$unknown": True}
    if isinstance(v, float) and not math.isfinite(v):
        return {"$float": str(v)}
    if isinstance(v, (str, bool, int, float)):
        return v
    if isinstance(v, references.Reference):
        return {"$reference": {"type": v.type, "args": {n: value(a) for n, a in sorted(v.arguments.items())}}}
    if isinstance(v, Mapping):
        return {"$dict": {k: value(e) for k, e in v.items()}}
    if isinstance(v, list):
        return [value(e) for e in v]
    return {"$python": type(v).__name__}


def slot(variable):
    """The value of a variable, null where it has none."""
    if not isinstance(variable, ResultVariable):
        return variable
    if not variable.is_ready():
        if not variable.can_get():
            return None
        variable.freeze()
    try:
        return variable.get_value()
    except CompilerException:
        return None


def instance(i):
    attributes, relations = {}, {}
    for name, variable in i.slots.items():
        if name == "self":
            continue
        v = slot(variable)
        if isinstance(i.type.get_attribute(name), RelationAttribute):
            items = v if isinstance(v, list) else [] if v is None or isinstance(v, NoneValue) else [v]
            relations[name] = [str(id(e)) if isinstance(e, Instance) else value(e) for e in items]
        else:
            attributes[name] = value(v)
    return {"id": str(id(i)), "type": i.type.get_full_name(), "attributes": attributes, "relations": relations}


def place(location):
    if location is None:
        return None
    out = {"file": getattr(location, "file", None), "line": getattr(location, "lnr", None)}
    if getattr(location, "start_char", None):
        out["column"] = location.start_char
        out["end_line"] = location.end_lnr
        out["end_column"] = location.end_char
    return out


def error(e):
    kind = type(e)
    if not isinstance(e, CompilerException):
        return {"kind": f"{kind.__module__}.{kind.__name__}", "message": str(e), "location": None, "causes": []}
    report = e.export()  # what the compile report shows: of a PluginException, that one
    return {
        "kind": report.type,
        "message": report.message,
        "location": None if isinstance(e, MultiException) else place(e.get_location()),
        "trace": e.format_trace(indent="  "),
        "causes": [error(c) for c in e.get_causes()],
    }


def model(types, root):
    instances, variables = [], {}
    for t in {id(t): t for t in types.values()}.values():
        if isinstance(t, Entity):
            instances += [i for i in t.get_all_instances() if i.type is t]
    todo = list(root.children())
    while todo:
        ns = todo.pop()
        todo += ns.children()
        scope = ns.scope
        for name, variable in (scope.slots if scope is not None else {}).items():
            if isinstance(variable, ResultVariable):
                variables[f"{ns.get_full_name()}::{name}"] = value(slot(variable))
    return list(map(instance, {id(i): i for i in instances}.values())), variables


def versionless(resource_id):
    return re.sub(r",v=\d+$", "", resource_id)


def export(types, root, case):
    """What would be sent to the server, had there been one."""
    exporter = Exporter()
    exporter.run(types, root, no_commit=True, partial_compile=case["partial"], resource_sets_to_remove=case["delete"])
    out = []
    for r in json.loads(json_encode(exporter.resources_to_list())):
        name, requires = r.pop("id"), r.pop("requires")
        out.append({"id": versionless(name), "attributes": r, "requires": [versionless(i) for i in requires]})
    return {
        "resources": out,
        "resource_sets": exporter._resource_sets,
        "removed_sets": list(exporter._removed_resource_sets),
        "unknowns": [f"{u['parameter']} of {u.get('resource', '')}" for u in unknown_parameters],
    }


def run(case):
    doc = {"success": True, "instances": [], "variables": {}, "output": [], "warnings": [], "error": None}
    said = []

    def show(message, category, filename, lineno, file=None, line=None):
        at = message.get_location() if hasattr(message, "get_location") else getattr(message, "location", None)
        if isinstance(message, InmantaWarning):
            said.append({"kind": f"{type(message).__module__}.{type(message).__name__}", "message": str(message), "location": place(at)})

    WarningsManager.apply_config({"default": "warn"})
    warnings.showwarning = show
    os.environ.update(v.split("=", 1) for v in case["env"] or [])
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            os.chdir(case["dir"])
            project = module.Project(case["dir"], autostd=case["std"], attach_cf_cache=False)
            module.Project.set(project)
            types, root = compiler.do_compile()
        doc["instances"], doc["variables"] = model(types, root)
        if case["export"]:
            with contextlib.redirect_stdout(out):
                doc |= export(types, root, case)
    except BaseException as e:
        doc["success"], doc["error"] = False, error(e)
        doc["error"].setdefault("trace", traceback.format_exc())
    doc["output"] = out.getvalue().splitlines()
    doc["warnings"] = said
    return doc


def main():
    logging.disable(logging.CRITICAL)
    sys.setrecursionlimit(3000)
    running = {}
    warm = os.environ.get("PARITY_JOBS", "2")

    def reap():
        pid, _ = os.wait()
        name, path = running.pop(pid)
        try:
            with open(path, encoding="utf-8") as f:
                doc = json.load(f)
        except ValueError:
            doc = None  # it took too long, or died
        os.unlink(path)
        sys.stdout.write(json.dumps({"name": name, "document": doc}) + "\n")
        sys.stdout.flush()

    for line in sys.stdin:
        case = json.loads(line)
        while len(running) >= int(warm):
            reap()
        fd, path = tempfile.mkstemp()
        os.close(fd)
        pid = os.fork()
        if pid == 0:
            signal.alarm(SECONDS)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            if not os.environ.get("PARITY_DEBUG"):
                os.dup2(null, 2)
            with open(path, "w", encoding="utf-8", errors="surrogatepass") as f:
                json.dump(run(case), f)
            os._exit(0)
        running[pid] = (case["name"], path)
    while running:
        reap()


main()
