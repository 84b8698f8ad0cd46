"""Plug-ins: Python functions that a model calls."""

from __future__ import annotations

import os
import sys

from inmanta import _lazy
from inmanta._fallback import lacking
from inmanta.ast import Location, Namespace, PluginException, Range, RuntimeException
from inmanta.ast.type import NamedType
from inmanta.execute import runtime
from inmanta.execute.proxy import DynamicProxy
from inmanta.execute.runtime import QueueScheduler, Resolver, ResultVariable
from inmanta.execute.util import ReferenceBase, Unknown

TYPE_CHECKING = False  # every compile imports this module, so it does without typing, inspect and dataclasses
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any, Optional, TypeVar, Union

    T = TypeVar("T")
    T_FUNC = TypeVar("T_FUNC", bound=Callable[..., Any])

PLUGINS_PACKAGE = "inmanta_plugins"
_PLAIN = {str: "string", int: "int", float: "float", bool: "bool"}


class PluginDeprecationWarning(Warning):
    """A deprecated plug-in was called."""


class ModelType:
    """In ``Annotated[…, ModelType["mod::Entity"]]``: the type as a model writes it."""

    __slots__ = ("model_type",)

    def __init__(self, model_type: str) -> None:
        self.model_type = model_type

    def __class_getitem__(cls, key: str) -> "ModelType":
        return cls(key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModelType) and other.model_type == self.model_type

    def __hash__(self) -> int:
        return hash(self.model_type)

    def __repr__(self) -> str:
        return f"ModelType(model_type={self.model_type!r})"


class CheckedArgs:
    """Arguments that are ready for the function."""

    def __init__(self, args: list[object], kwargs: Mapping[str, object], unknowns: bool) -> None:
        self.args, self.kwargs, self.unknowns = args, kwargs, unknowns

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CheckedArgs) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class Owner:
    """A call in the model, with its place."""

    def __init__(self, namespace: str, location: Range, name: str) -> None:
        self.namespace = Namespace.of(namespace)
        self.location = location
        self.name = name

    def get_location(self) -> Range:
        return self.location

    def get_namespace(self) -> Namespace:
        return self.namespace

    @property
    def _written(self) -> Any:
        """The call as the model has it, which the engine knows while the call runs."""
        if "_told" not in self.__dict__:
            self._told = runtime.model().owner() if runtime.is_installed() else None
        return self._told

    def __getattr__(self, name: str) -> Any:
        """The attributes of a call that are made of its text, such as arguments and kwargs."""
        if name.startswith("_") or self._written is None:
            raise AttributeError(f"the call of {self.name} has no attribute {name!r}")
        return getattr(self._written, name)

    def __str__(self) -> str:
        return f"{self.name}(...)" if self._written is None else str(self._written)

    __repr__ = __str__


class Context:
    """The context of a call. A plug-in gets it in a parameter that is annotated with this class."""

    def __init__(
        self, resolver: Resolver, queue: QueueScheduler, owner: Any, plugin: Plugin, result: ResultVariable
    ) -> None:
        self.resolver, self.queue, self.owner, self.plugin, self.result = resolver, queue, owner, plugin, result

    @property
    def compiler(self) -> Any:
        return self.queue.get_compiler()

    def get_compiler(self) -> Any:
        return self.compiler

    def get_queue_scheduler(self) -> QueueScheduler:
        return self.queue

    def get_resolver(self) -> Resolver:
        return self.resolver

    def get_type(self, name: Any) -> Any:
        """The type of this name in the model."""
        from inmanta.ast import TypeNotFoundException

        text = str(name)
        try:
            if text[-1:] not in ("?", "]"):
                return self.queue.get_types()[text]
        except KeyError:
            pass
        # Only a name with a place in the model can be reported as one that is missing there.
        raise TypeNotFoundException(name, self.owner.namespace)

    def get_environment_id(self) -> str:
        from inmanta.config import Config

        return str(Config.get("config", "environment", None))

    def get_data_dir(self) -> str:
        """A folder of the project for the data of the plug-in's module, which is made if need be."""
        folder = os.path.join("data", self.plugin.get_full_name().partition("::")[0])
        os.makedirs(folder, exist_ok=True)
        return folder

    def get_client(self) -> Any:
        from inmanta.protocol import endpoints

        return endpoints.Client("compiler")

    def get_sync_client(self) -> Any:
        from inmanta.protocol import endpoints

        return endpoints.SyncClient("compiler")

    def run_sync(self, function: Callable[[], Awaitable[T]], timeout: int = 5) -> T:
        """Run a coroutine to its end. One that takes too long is a ConnectionRefusedError."""
        import asyncio
        import inspect

        async def wait() -> T:
            return await asyncio.wait_for(result, timeout)

        try:
            result = function()
            if not inspect.isawaitable(result):
                raise TypeError(f"{result!r} is nothing to wait for")
            if asyncio._get_running_loop() is not None:
                raise Exception("wait_sync can not be called from an async context")
            return asyncio.run(wait())
        except (TimeoutError, asyncio.TimeoutError):  # two classes before Python 3.11
            raise ConnectionRefusedError() from None


class PluginMeta(type):
    """Knows all plug-ins by their full names."""

    __functions: dict[str, type["Plugin"]] = {}

    @classmethod
    def add_function(mcs, plugin_class: type["Plugin"]) -> None:
        mcs.__functions[plugin_class.__fq_plugin_name__] = plugin_class

    @classmethod
    def get_functions(mcs) -> dict[str, type["Plugin"]]:
        _lazy.whole()
        return dict(mcs.__functions)

    @classmethod
    def imported(mcs, name: str) -> type["Plugin"]:
        """The plug-in of that name in a module that is imported already."""
        return mcs.__functions[name]

    @classmethod
    def clear(mcs, inmanta_module: Optional[str] = None) -> None:
        if inmanta_module is None:
            mcs.__functions = {}
            return
        prefix = inmanta_module + "::"
        mcs.__functions = {k: v for k, v in mcs.__functions.items() if not k.startswith(prefix)}


class Plugin(NamedType, metaclass=PluginMeta):
    """A plug-in. There is a subclass for each, which is the function's ``__plugin__``."""

    __function_name__: str
    __fq_plugin_name__: str
    __function__: Callable[..., Any]
    opts: dict[str, Any]
    deprecated: bool = False
    replaced_by: Optional[str] = None

    def __init__(self, namespace: Optional[Namespace] = None) -> None:
        super().__init__()
        self.namespace = namespace or Namespace.of(self.__fq_plugin_name__.rpartition("::")[0])

    # What the function takes and gives: found when somebody asks, which few modules do.
    args: list[Any]
    var_args: Any
    kwargs: dict[str, Any]
    var_kwargs: Any
    all_args: dict[str, Any]
    return_type: Any

    # Where the context goes: found when somebody asks, for a recorded load tells it.
    _context: int
    context_name: Optional[str]
    context_keyword_only: bool

    def __getattr__(self, name: str) -> Any:
        if name in ("args", "var_args", "kwargs", "var_kwargs", "all_args", "return_type"):
            from inmanta import _signature

            self.__dict__.update(_signature.of(self))
        elif name in ("_context", "context_name", "context_keyword_only"):
            self._find_context()
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.__dict__[name]

    def _find_context(self) -> None:
        import inspect

        # Any other parameter that is annotated with it takes what the model gives, as if it were not.
        self._context, self.context_name, self.context_keyword_only = -1, None, False
        found = inspect.getfullargspec(self.__function__)
        for position, name in enumerate(found.args):
            if found.annotations.get(name) is Context:
                self._context, self.context_name = position, name

    @classmethod
    def deprecate_function(cls, replaced_by: Optional[str] = None) -> None:
        cls.deprecated, cls.replaced_by = True, replaced_by

    def get_full_name(self) -> str:
        return self.__fq_plugin_name__

    def type_string(self) -> str:
        return self.__fq_plugin_name__

    def get_namespace(self) -> Namespace:
        return self.namespace

    @property
    def ns(self) -> Namespace:
        return self.namespace

    @property
    def comment(self) -> Optional[str]:
        return self.__function__.__doc__ or None

    def get_location(self) -> Location:
        from inmanta import _signature

        return _signature.place(self.__function__)

    def get_signature(self, *, use_dsl_types: bool = False) -> str:
        from inmanta import _signature

        return _signature.show(self, use_dsl_types)

    def is_accept_unknowns(self) -> bool:
        return bool(self.opts.get("allow_unknown"))

    def check_requirements(self) -> None:
        """Check that the programs exist that the plug-in declares."""
        import shutil

        for program in self.opts.get("bin") or ():
            if shutil.which(program) is None:
                raise Exception(
                    f"The plug-in {self.get_full_name()} runs {program}, which is not installed here (not in PATH)"
                )

    def check_args(self, args: Sequence[object], kwargs: Mapping[str, object]) -> CheckedArgs:
        """The arguments for the function, without the context. Raises RuntimeException if they do not fit."""
        from inmanta import _binding

        return _binding.bind(self, args, kwargs)

    def call_in_context(self, processed_args: CheckedArgs, resolver: Any, queue: Any, location: Any) -> object:
        """Call it as the model would, and return the resulting value of the model."""
        self._warn()
        value = self._run(*processed_args.args, **processed_args.kwargs)
        value = DynamicProxy.unwrap(value, dynamic_context=self)
        if not _stands_for_instances(value):  # the engine makes them, and looks then
            self._check(value)
        return value

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Modules replace this method in a plug-in's class to wrap the plug-in."""
        return self.__function__(*args, **kwargs)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with arguments that the engine has checked. The engine checks the result, too."""
        if self.opts["bin"]:
            self.check_requirements()
        return self.call(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it from Python code, such as a template. It gets views of the arguments and returns a value of the model."""
        self._warn()
        shown = [self._show(each) for each in args]
        named = {name: self._show(each) for name, each in kwargs.items()}
        value = DynamicProxy.unwrap(self._run(*shown, **named))
        self._check(value)
        return value

    def _check(self, value: object) -> None:
        if not self._obviously_gives(value) and runtime.is_installed():
            runtime.model().check_result(self.get_full_name(), value)

    def _is_patched(self) -> bool:
        """Whether a module has replaced the methods that run a call from the model."""
        cls = type(self)
        return cls.call_in_context is not _CALL or cls.check_args is not _CHECK or "call_in_context" in self.__dict__

    def _show(self, arg: object) -> object:
        if isinstance(arg, Context) or (isinstance(arg, Unknown) and self.is_accept_unknowns()):
            return arg
        return DynamicProxy.return_value(arg)

    def _obviously_gives(self, value: object) -> bool:
        """Whether a result certainly has the declared type, without asking the engine."""
        kind = type(value)
        if kind is Unknown:
            return True
        function = self.__function__
        if type(function) is not type(one_plugin):  # another callable may declare it in a way of its own
            return False
        declared = function.__annotations__.get("return", "any")
        if declared == "any" or declared is object or declared is getattr(sys.modules.get("typing"), "Any", None):
            return not isinstance(value, ReferenceBase)
        return kind in _PLAIN and (declared is kind or declared == _PLAIN[kind])

    def _warn(self) -> None:
        if not self.deprecated:
            return
        message = f"Plugin '{self.get_full_name()}' is deprecated."
        if self.replaced_by:
            message += f" It should be replaced by '{self.replaced_by}'."
        if runtime.is_installed():
            runtime.model().deprecated(message)
        else:
            import warnings

            warnings.warn(PluginDeprecationWarning(message))


_CALL, _CHECK = Plugin.call_in_context, Plugin.check_args


def _stands_for_instances(value: object) -> bool:
    """Whether a value contains objects of dataclasses."""
    if isinstance(value, list):
        return any(map(_stands_for_instances, value))
    if isinstance(value, dict):
        return any(map(_stands_for_instances, value.values()))
    return isinstance(value, ReferenceBase) or hasattr(type(value), "__dataclass_fields__")


def plugin(
    function: Union[T_FUNC, str, None] = None,
    commands: Optional[list[str]] = None,
    emits_statements: bool = False,
    allow_unknown: bool = False,
) -> Any:
    """Decorator: a model may call the function as ``module::name``.

    Written as ``@plugin``, ``@plugin("name")`` or ``@plugin(allow_unknown=True)``.
    """

    def register(function: Callable[..., Any], name: Optional[str] = None) -> Callable[..., Any]:
        name = name or function.__name__
        parts = function.__module__.split(".")
        if parts[0] != PLUGINS_PACKAGE:
            from inmanta._noted import noted

            raise noted(
                Exception(f"All plugin modules should be loaded in the {PLUGINS_PACKAGE} package"),
                f"plug-in {name} is in the Python module {function.__module__}",
            )
        made = PluginMeta(
            name,
            (Plugin,),
            {
                "__module__": function.__module__,
                "__function_name__": name,
                "__fq_plugin_name__": "::".join([*parts[1:], name]),
                "opts": {"bin": commands, "emits_statements": emits_statements, "allow_unknown": allow_unknown},
                # The function itself, as its class gives it: never a method of the plug-in.
                "__function__": staticmethod(function.__func__ if isinstance(function, staticmethod) else function),
                "__doc__": function.__doc__,
            },
        )
        if isinstance(function, classmethod):
            made.__function__ = staticmethod(function.__get__(None, made))
        PluginMeta.add_function(made)
        function.__plugin__ = made  # type: ignore[attr-defined]
        return function

    if function is None:
        return register
    if isinstance(function, str):
        return lambda decorated: register(decorated, function)
    return register(function)


def deprecated(function: Optional[Callable[..., Any]] = None, *, replaced_by: Optional[str] = None, **_: object) -> Any:
    """Decorator on top of ``@plugin``: calls give a warning."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        if not hasattr(function, "__plugin__"):
            raise Exception(
                f"Can not deprecate '{function.__name__}': The '@deprecated' decorator should be used in combination with"
                " the '@plugin' decorator and should be placed at the top."
            )
        function.__plugin__.deprecate_function(replaced_by)
        return function

    return mark if function is None else mark(function)


def allow_reference_values(instance: T) -> T:
    """The same value, of which references may be read."""
    if isinstance(instance, DynamicProxy):
        return instance._allow_references()
    return instance


def all_plugins(loaded: Callable[[str], bool]) -> dict[str, Plugin]:
    """The plug-ins of the Python modules that count as loaded, always the same object for each."""
    return {name: one_plugin(name) for name, cls in PluginMeta.get_functions().items() if loaded(cls.__module__)}


def one_plugin(name: str) -> Plugin:
    """The object of a plug-in whose module is imported."""
    cls = PluginMeta.imported(name)
    known = _objects.get(name)
    if known is None or type(known) is not cls:
        known = _objects[name] = cls()
    return known


_objects: dict[str, Plugin] = {}

__all__ = [
    "CheckedArgs",
    "Context",
    "ModelType",
    "Plugin",
    "PluginDeprecationWarning",
    "PluginException",
    "PluginMeta",
    "allow_reference_values",
    "deprecated",
    "plugin",
    "runtime",
]

_lacking = lacking(__name__)


def __getattr__(name: str) -> object:
    if name == "const":
        return __import__("inmanta.const", fromlist=["*"])
    if name in ("PluginArgument", "PluginReturn", "PluginValue"):
        from inmanta import _signature

        return getattr(_signature, name)
    return _lacking(name)
