"""Binds the arguments of plug-ins that Python code calls. For calls from the model the engine does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inmanta.ast import MultiUnsetException, PluginTypeException, RuntimeException, UnsetException
from inmanta.execute.util import ReferenceBase, Unknown
from inmanta.plugins import CheckedArgs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inmanta.plugins import Plugin


def bind(plugin: Plugin, args: Sequence[object], kwargs: Mapping[str, object]) -> CheckedArgs:
    """Bind arguments to the function and check them against its annotations."""
    name = plugin.get_full_name()
    if plugin.var_args is None and len(args) > len(plugin.args):
        raise _unfit(f"{name}() takes {len(plugin.args)} positional arguments but {len(args)} were given")
    _missing(name, "positional", [each for each in plugin.args[len(args) :] if each.arg_name not in kwargs])
    _missing(name, "keyword-only", [each for each in plugin.kwargs.values() if each.arg_name not in kwargs])
    taken = plugin.args[: len(args)]
    parameters = taken + [plugin.var_args] * (len(args) - len(taken))
    shown = [_show(plugin, each, parameter) for each, parameter in zip(args, parameters)]
    named = {}
    for key, value in kwargs.items():
        parameter = plugin.all_args.get(key, plugin.var_kwargs)
        if parameter is None:
            raise _unfit(f"{name}() got an unexpected keyword argument: '{key}'")
        if parameter in taken:
            raise _unfit(f"{name}() got multiple values for argument '{key}'")
        named[key] = _show(plugin, value, parameter)
    unknowns = any(isinstance(each, Unknown) for each in (*shown, *named.values()))
    return CheckedArgs(shown, named, unknowns)


def _unfit(message: str) -> RuntimeException:
    return RuntimeException(None, message)


def _missing(name: str, sort: str, parameters: list[Any]) -> None:
    names = [repr(each.arg_name) for each in parameters if not each.has_default_value()]
    if len(names) == 1:
        raise _unfit(f"{name}() missing 1 required {sort} argument: {names[0]}")
    if names:
        raise _unfit(
            f"{name}() missing {len(names)} required {sort} arguments: {', '.join(names[:-1])} and {names[-1]}"
        )


def incompatible(plugin: Plugin, parameter: Any, value: object, why: RuntimeException) -> PluginTypeException:
    """The error about an argument that does not fit the declaration of the plug-in."""
    expected = parameter.resolved_type.type_string_internal()
    about = f"Value {value!r} for argument {parameter.arg_name} of plugin {plugin.get_full_name()}"
    return PluginTypeException(None, f"{about} has incompatible type. Expected type: {expected}", why)


def _show(plugin: Plugin, value: object, parameter: Any) -> object:
    """Convert an argument for the function."""
    from ordain_worker.annotations import Normalizer
    from ordain_worker.converting import converter

    if isinstance(value, Unknown):
        return value
    try:
        parameter.resolved_type.validate(value)
    except (UnsetException, MultiUnsetException):
        raise
    except RuntimeException as exc:
        if isinstance(value, ReferenceBase) and not parameter.resolved_type.supports_references():
            about = f"Value {value!r} for argument {parameter.arg_name} of plugin {plugin.get_full_name()}"
            hint = "To allow references, use `| Reference[...]` in your type annotation."
            raise PluginTypeException(None, f"{about} is a reference. {hint}", exc) from exc
        raise incompatible(plugin, parameter, value, exc) from exc
    told = Normalizer(plugin.get_full_name()).parameter(parameter.type_expression, parameter.arg_name)
    return converter(parameter.arg_name, told)(value)
