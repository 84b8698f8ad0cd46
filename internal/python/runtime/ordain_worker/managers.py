"""Finds dependency managers that have nothing to do for a set of resource types.

A manager that handles only resources of certain types, such as the one of std
that orders files after their folders, does nothing if there are none. Then its
module need not be imported and no resources need to be sent to it. To find out,
its source is analysed. Only this form is recognised:

    found = defaultdict(list)                         # an empty container of its own
    for id, resource in resources.items():
        if resource.id.get_entity_type() == "m::T":   # any body
            …
    for each in found.values():                       # empty when no body ran
        …

No name may have two meanings: a name that a loop binds is not a container any
more, and all names are local to the function. Any other function counts as one
that may always have something to do.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, Optional

_EMPTY_CALLS = {"defaultdict", "dict", "list", "set"}


def types_of(function: Callable[..., Any]) -> Optional[list[str]]:
    """The resource types without which the function does nothing, or None if that is unknown."""
    if not inspect.isfunction(function) or hasattr(function, "__wrapped__"):  # the source would be that of another one
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef) or not _takes_two(definition.args):
        return None
    code = function.__code__
    if definition.name != code.co_name:
        return None
    for name in _EMPTY_CALLS:  # a name of its own with another meaning
        if name != "defaultdict" and name in function.__globals__:
            return None
    import collections

    if function.__globals__.get("defaultdict", collections.defaultdict) is not collections.defaultdict:
        return None
    reader = _Reader([each.arg for each in definition.args.args], {*code.co_varnames, *code.co_cellvars})
    return sorted(reader.types) if reader.believes(definition.body) else None


class _Reader:
    def __init__(self, parameters: list[str], local: set[str]) -> None:
        self.types: set[str] = set()
        self._parameters = parameters
        self._resources = parameters[1]
        self._local = local - _EMPTY_CALLS - set(parameters)
        self._empty: set[str] = set()

    def believes(self, body: list[ast.stmt]) -> bool:
        return not _EMPTY_CALLS.intersection(self._parameters) and all(map(self._statement, body))

    def _statement(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            return True
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            if not _is_empty(node.value) or node.targets[0].id not in self._local:
                return False
            self._empty.add(node.targets[0].id)
            return True
        if not isinstance(node, ast.For) or node.orelse:
            return False
        over = _iterated(node.iter)
        if over in self._empty:
            return True
        if over != self._resources:
            return False
        bound = _bound(node.target)
        if bound is None or not bound <= self._local:
            return False
        self._empty -= bound
        keys, values = self._loop(node)
        return all(self._guarded(each, keys, values) for each in node.body)

    def _loop(self, node: ast.For) -> tuple[str, str]:
        """The names of the id and of the resource in a loop over the resources."""
        how = (
            node.iter.func.attr
            if isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Attribute)
            else "keys"
        )
        if how == "items":
            target = node.target
            if isinstance(target, ast.Tuple) and len(target.elts) == 2 == len(_bound(target) or ()):
                return target.elts[0].id, target.elts[1].id  # type: ignore[attr-defined]
            return "", ""
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        return (name, "") if how == "keys" else ("", name)

    def _guarded(self, node: ast.stmt, key: str, value: str) -> bool:
        return isinstance(node, ast.If) and not node.orelse and self._about_type(node.test, key, value)

    def _about_type(self, test: ast.expr, key: str, value: str) -> bool:
        """Whether the test holds only for resources of types that it names."""
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
            return all(self._about_type(each, key, value) for each in test.values)
        if isinstance(test, ast.BoolOp):  # the first decides whether the others are looked at
            return self._about_type(test.values[0], key, value)
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not _is_type_of(test.left, key, value):
            return False
        named = test.comparators[0]
        if isinstance(test.ops[0], ast.Eq):
            items = [named]
        elif isinstance(test.ops[0], ast.In) and isinstance(named, (ast.Tuple, ast.List, ast.Set)):
            items = named.elts
        else:
            return False
        for each in items:
            if not isinstance(each, ast.Constant) or not isinstance(each.value, str):
                return False
            self.types.add(each.value)
        return True


def _takes_two(args: ast.arguments) -> bool:
    return len(args.args) == 2 and not (args.posonlyargs or args.kwonlyargs or args.vararg or args.kwarg)


def _bound(target: ast.expr) -> Optional[set[str]]:
    """The names that a loop binds; None when it does more than that."""
    if isinstance(target, ast.Name):
        return {target.id}
    if not isinstance(target, (ast.Tuple, ast.List)):
        return None
    found: set[str] = set()
    for each in target.elts:
        names = _bound(each)
        if names is None:
            return None
        found |= names
    return found


def _is_empty(node: ast.expr) -> bool:
    if isinstance(node, (ast.List, ast.Tuple)):
        return not node.elts
    if isinstance(node, ast.Dict):
        return not node.keys
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in _EMPTY_CALLS
        and not node.keywords
    ):
        if node.func.id == "defaultdict":
            return len(node.args) == 1 and isinstance(node.args[0], ast.Name) and node.args[0].id in _EMPTY_CALLS
        return not node.args
    return False


def _iterated(node: ast.expr) -> str:
    """The name of the container that a loop goes over; empty for anything else."""
    if isinstance(node, ast.Call):
        if (
            node.args
            or node.keywords
            or not isinstance(node.func, ast.Attribute)
            or node.func.attr not in ("items", "values", "keys")
        ):
            return ""
        node = node.func.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_type_of(node: ast.expr, key: str, value: str) -> bool:
    """resource.id.get_entity_type(), id.get_entity_type() or the property of that name."""
    if isinstance(node, ast.Call):
        if (
            node.args
            or node.keywords
            or not isinstance(node.func, ast.Attribute)
            or node.func.attr != "get_entity_type"
        ):
            return False
        node = node.func.value
    elif isinstance(node, ast.Attribute) and node.attr == "entity_type":
        node = node.value
    else:
        return False
    if isinstance(node, ast.Name):
        return bool(key) and node.id == key
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "id"
        and isinstance(node.value, ast.Name)
        and bool(value)
        and node.value.id == value
    )
