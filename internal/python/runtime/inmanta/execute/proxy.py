"""Read-only views on values of the model, which plug-ins get instead of the values.

    value of the model     what a plug-in sees
    null                   None
    string, number, bool   the same
    list                   SequenceProxy
    dict                   DictProxy
    instance               DynamicProxy: attributes are read when they are asked for
    unknown                UnknownException
    reference              the reference, where it is allowed; else UnexpectedReference

Modules subclass these classes and patch their methods, so each step goes
through the method that they expect: ``__getattr__`` and ``__getitem__`` call
``_return_value`` of the object, that calls ``DynamicProxy.return_value``.
"""

from __future__ import annotations

from _collections_abc import Iterable, Iterator, Mapping

from inmanta._fallback import lacking
from inmanta.ast import (
    MultiUnsetException,
    NotFoundException,
    OptionalValueException,
    RuntimeException,
    UnexpectedReference,
    UnknownException,
    UnsetException,
)
from inmanta.execute.runtime import Instance
from inmanta.execute.util import NoneValue, ReferenceBase, Unknown

TYPE_CHECKING = False  # every compile imports this module, so it does without typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Optional

    from inmanta.references import Reference

_exporting = False

# Values that are the same on both sides, and never references: views hand them on at once.
_SAME = frozenset((str, int, float, bool))


class ExportContext:
    """While it is entered references may be read everywhere: an export carries them."""

    def __enter__(self) -> "ExportContext":
        global _exporting
        self._before, _exporting = _exporting, True
        return self

    def __exit__(self, *_: object) -> None:
        global _exporting
        _exporting = self._before


class ProxyContext:
    """How a value was reached, for errors, and whether references are fine there."""

    __slots__ = ("allow_reference_values", "path", "validated")

    def __init__(self, *, path: str, validated: bool = True, allow_reference_values: Optional[bool] = None) -> None:
        # None: what was validated against an annotation may be a reference, anything else not.
        # An annotation says nothing about the attributes of an instance: what was validated ends at one.
        self.allow_reference_values = allow_reference_values
        self.path, self.validated = path, validated

    def should_allow_references(self) -> bool:
        said = self.allow_reference_values
        return _exporting or (self.validated if said is None else said)

    def allow_references(self) -> "ProxyContext":
        return ProxyContext(path=self.path, validated=self.validated, allow_reference_values=True)

    def nested(self, *, relative_path: str) -> "ProxyContext":
        return ProxyContext(path=self.path + relative_path, validated=self.validated)


class DynamicProxy:
    """A view on an instance; base of the other views."""

    def __init__(self, instance: Any, *, context: Optional[ProxyContext] = None) -> None:
        object.__setattr__(self, "__instance", instance)
        object.__setattr__(self, "__context", context)

    def _get_instance(self) -> Any:
        return object.__getattribute__(self, "__instance")

    def _get_context(self) -> ProxyContext:
        context = object.__getattribute__(self, "__context")
        if type(context) is ProxyContext:
            return context
        if context is None:
            context = ProxyContext(path=object.__repr__(self._get_instance()))
        else:  # the view on another instance, and the way from there: made when somebody asks
            context = context[0]._get_context().nested(relative_path=context[1])
            context.validated = False
        object.__setattr__(self, "__context", context)
        return context

    def _allow_references(self) -> Any:
        """A copy of the view, where references may be read."""
        twin = object.__new__(type(self))
        object.__getattribute__(twin, "__dict__").update(object.__getattribute__(self, "__dict__"))
        object.__setattr__(twin, "__context", self._get_context().allow_references())
        return twin

    def _type(self) -> Any:
        return self._get_instance().get_type()

    def is_unknown(self) -> bool:
        return isinstance(self._get_instance(), Unknown)

    @classmethod
    def unwrap(cls, item: object, *, dynamic_context: object = None) -> object:
        """The value of the model that Python code means.

        Without a context nobody can make the instances that dataclasses stand for, nor give references their types.
        """
        if isinstance(item, DynamicProxy):
            return item._get_instance()
        if isinstance(item, dict):
            return {
                cls._key(key, value): cls.unwrap(value, dynamic_context=dynamic_context) for key, value in item.items()
            }
        if isinstance(item, list):
            return [cls.unwrap(each, dynamic_context=dynamic_context) for each in item]
        if item is None:
            return NoneValue()
        if dynamic_context is None:
            if isinstance(item, ReferenceBase):
                _known_to_model(item)
            elif hasattr(type(item), "__dataclass_fields__"):
                _no_instance(item)
        return item

    @staticmethod
    def _key(key: object, value: object) -> str:
        if not isinstance(key, str):
            raise RuntimeException(
                None, f"dict keys should be strings, got {key!r} of type {type(key)} with dict value {value!r}"
            )
        return key

    @classmethod
    def return_value(cls, value: object, *, context: Optional[ProxyContext] = None) -> Any:
        """What Python code sees of a value of the model."""
        if isinstance(value, _AS_THEY_ARE):
            return value
        if isinstance(value, Unknown):
            raise UnknownException(value)
        if value is None or isinstance(value, NoneValue):
            return None
        if isinstance(value, Instance):
            if context is None or context.validated:
                path = object.__repr__(value) if context is None else context.path
                context = ProxyContext(path=path, validated=False)
            return DynamicProxy(value, context=context)
        if isinstance(value, dict):
            return DictProxy(value, context=context)
        if hasattr(value, "__len__"):  # also such as what .items() of a dict gives
            return SequenceProxy(value, context=context)
        view = CallProxy if callable(value) else DynamicProxy
        return view(value, context=context)

    def _return_value(self, value: object, *, relative_path: str) -> Any:
        """What Python code sees of a value that this view leads to."""
        context = self._get_context()
        if isinstance(value, ReferenceBase) and not context.should_allow_references():
            raise UnexpectedReference(
                reference=value,
                message="Encountered unexpected reference value during plugin execution. Plugins are only allowed to access"
                " reference values when declared explicitly. Either use a dataclass entity that supports references (e.g."
                " `int | Reference[int]` attribute annotation), or explicitly allow references on attribute access with"
                " the `inmanta.plugins.allow_reference_values()` wrapper."
                f" Encountered at {context.path}{relative_path} (= `{value!r}`).",
            )
        context = context.nested(relative_path=relative_path)
        if type(value) is Instance:
            context.validated = False
        return DynamicProxy.return_value(value, context=context)

    def __getattr__(self, attribute: str) -> Any:
        instance = object.__getattribute__(self, "__instance")
        if not isinstance(instance, Instance):
            if not hasattr(instance, "get_attribute"):
                raise AttributeError(f"{type(instance).__name__!r} object has no attribute {attribute!r}")
            value = instance.get_attribute(attribute).get_value()
        else:
            try:
                value = instance.read(attribute)
            except NotFoundException:
                raise AttributeError(f"{instance.entity_name} has no attribute {attribute!r}") from None
        if type(self)._return_value is _STEP and _members["return_value"] is _SHOW:
            kind = type(value)
            if kind in _SAME:
                return value
            if kind is NoneValue:
                return None
            if kind is Instance and type(self) is DynamicProxy:
                return DynamicProxy(value, context=(self, "." + attribute))  # type: ignore[arg-type]
        return self._return_value(value, relative_path="." + attribute)

    def __setattr__(self, attribute: str, value: object) -> None:
        raise Exception("Readonly object")

    def __eq__(self, other: object) -> bool:
        return self._get_instance() == _behind(other)

    def __hash__(self) -> int:
        return hash(self._get_instance())

    def __lt__(self, other: Any) -> bool:
        return self._get_instance() < _behind(other)

    def __repr__(self) -> str:
        return f"@{self._get_instance()!r}"


def _known_to_model(reference: Any) -> None:
    """Refuse a reference that was never a value of the model: it has no type there."""
    gives = reference.get_reference_type()
    if gives is None:
        raise RuntimeException(
            None,
            f"Could not determine the reference type of {reference}, make sure the reference extends "
            "Reference[concrete_type] or override `get_reference_type`",
        )
    if hasattr(gives, "__dataclass_fields__"):
        raise RuntimeException(
            None,
            f"{reference} is a dataclass of type {gives}. It can only be converted to an inmanta entity at the plugin boundary",
        )
    if reference._model_type is None:
        raise RuntimeException(
            None,
            f"{reference} is a reference of type {gives}. It can only be typed at the plugin boundary or by explicitly"
            " setting `_model_type` to the relevant inmanta type",
        )


def _no_instance(item: object) -> None:
    """Refuse an object that would be an instance in the model."""
    from inmanta.execute import runtime

    entity = runtime.model().entity_of(type(item)) if runtime.is_installed() else None
    if entity is not None:
        raise RuntimeException(
            None,
            f"{item} is a dataclass of type {entity}. It can only be converted to an inmanta entity at the plugin boundary",
        )


def _behind(value: Any) -> Any:
    return value._get_instance() if hasattr(value, "_get_instance") else value


# What values go through on their way to Python code. Where a module put its own in place of one of them, all have to.
_members = DynamicProxy.__dict__
_STEP, _SHOW = _members["_return_value"], _members["return_value"]


class SequenceProxy(DynamicProxy, Iterable):  # type: ignore[type-arg]
    """A view on a list."""

    _is_sequence_proxy = True

    def __init__(self, iterator: Any, *, context: Optional[ProxyContext] = None) -> None:
        DynamicProxy.__init__(self, iterator, context=context)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            # Jinja tries the other notation when it gets an AttributeError.
            raise AttributeError(f"{self._get_instance()} is a list: it has no element {key!r}")
        value = self._get_instance()[key]
        if type(value) in _SAME and type(self)._return_value is _STEP and _members["return_value"] is _SHOW:
            return value
        return self._return_value(value, relative_path=f"[{key!r}]")

    def __len__(self) -> int:
        return len(self._get_instance())

    def __iter__(self) -> Iterator[Any]:
        return IteratorProxy(iter(self._get_instance()), context=self._get_context(), sequence=True)

    def json_serialization_step(self) -> list[Any]:
        return list(self)


class DictProxy(DynamicProxy, Mapping):  # type: ignore[type-arg]
    """A view on a dict."""

    _is_dict_proxy = True

    def __init__(self, mydict: dict[str, object], *, context: Optional[ProxyContext] = None) -> None:
        DynamicProxy.__init__(self, mydict, context=context)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            raise AttributeError(f"{self._get_instance()} is a dict: its keys are strings, not like {key!r}")
        value = self._get_instance()[key]
        if type(value) in _SAME and type(self)._return_value is _STEP and _members["return_value"] is _SHOW:
            return value
        return self._return_value(value, relative_path=f"[{key!r}]")

    def __len__(self) -> int:
        return len(self._get_instance())

    def __iter__(self) -> Iterator[str]:
        return IteratorProxy(iter(self._get_instance()), context=self._get_context())

    def json_serialization_step(self) -> dict[str, Any]:
        return dict(self)


class IteratorProxy(DynamicProxy, Iterator):  # type: ignore[type-arg]
    """A view on the elements of a list, one by one."""

    def __init__(
        self, iterator: Iterable[object], *, context: Optional[ProxyContext] = None, sequence: bool = False
    ) -> None:
        DynamicProxy.__init__(self, enumerate(iterator), context=context)
        object.__setattr__(self, "__of_list", sequence)

    def _is_sequence(self) -> bool:
        return object.__getattribute__(self, "__of_list")

    def __iter__(self) -> "IteratorProxy":
        return self

    def __next__(self) -> Any:
        at, value = next(object.__getattribute__(self, "__instance"))
        if type(value) in _SAME and type(self)._return_value is _STEP and _members["return_value"] is _SHOW:
            return value
        return self._return_value(value, relative_path=f"[{at}]" if self._is_sequence() else "")


class CallProxy(DynamicProxy):
    """A view on something that can be called."""

    def __init__(self, instance: Callable[..., object], *, context: Optional[ProxyContext] = None) -> None:
        DynamicProxy.__init__(self, instance, context=context)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._get_instance()(*args, **kwargs)


_AS_THEY_ARE = (str, int, float, bool, tuple, DynamicProxy, ReferenceBase)
__all__ = [
    "CallProxy",
    "DictProxy",
    "DynamicProxy",
    "ExportContext",
    "IteratorProxy",
    "MultiUnsetException",
    "NoneValue",
    "NotFoundException",
    "OptionalValueException",
    "ProxyContext",
    "SequenceProxy",
    "UnexpectedReference",
    "Unknown",
    "UnknownException",
    "UnsetException",
]

_lacking = lacking(__name__)


def __getattr__(name: str) -> object:
    if name in ("Reference", "unwrap_reference"):
        from inmanta import references

        return getattr(references, name)
    return _lacking(name)
