"""All types of the model, for dependency managers and contexts of plug-ins."""

from __future__ import annotations

from inmanta.execute import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Types(dict):  # type: ignore[type-arg]
    """The named types of the model by their full names: entities, typedefs, implementations and plug-ins.

    A type is requested by its name. Only looking at all of them imports all modules.
    """

    def __init__(self) -> None:
        super().__init__()
        self._whole = False

    def _all(self) -> dict[str, Any]:
        """What it holds, once that is everything: plug-ins after the rest, std::Entity last."""
        if not self._whole:
            self._whole = True
            model = runtime.model()
            found: dict[str, Any] = {name: model.type_of(name) for name in model.types()}
            root = found.pop("std::Entity", None)
            found.update(model.plugins())
            if root is not None:
                found["std::Entity"] = root
            found.update(dict.items(self))
            dict.clear(self)
            dict.update(self, found)
        return self

    def __missing__(self, name: str) -> Any:
        if self._whole or not isinstance(name, str) or "::" not in name:  # a type of the language itself
            raise KeyError(name)
        self[name] = found = self._find(name)
        return found

    def _find(self, name: str) -> Any:
        from inmanta.ast import TypeNotFoundException

        try:
            return runtime.model().type_of(name)
        except TypeNotFoundException:
            from inmanta.plugins import PluginMeta, one_plugin

            if not name.rpartition("::")[2][
                :1
            ].isupper():  # do not import all modules for a name that looks like an entity
                PluginMeta.get_functions()
            return one_plugin(name)

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def __contains__(self, name: object) -> bool:
        return self.get(name) is not None  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[str]:
        return dict.__iter__(self._all())

    def __reversed__(self) -> Iterator[str]:
        return dict.__reversed__(self._all())

    def __len__(self) -> int:
        return dict.__len__(self._all())

    def keys(self) -> Any:
        return dict.keys(self._all())

    def values(self) -> Any:
        return dict.values(self._all())

    def items(self) -> Any:
        return dict.items(self._all())

    def copy(self) -> dict[str, Any]:
        return dict(self.items())

    def __eq__(self, other: object) -> bool:
        return dict.__eq__(self._all(), other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return dict.__repr__(self._all())
