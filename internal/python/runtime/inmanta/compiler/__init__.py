"""What plug-ins may ask of the compiler."""

from __future__ import annotations

from inmanta._fallback import lacking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar, TypeVar

    T = TypeVar("T", bound=Callable[[], object])


class Finalizers:
    """Functions to call after a compile, failed or not."""

    __functions: ClassVar[list[Callable[[], object]]] = []

    @classmethod
    def add_function(cls, fnc: Callable[[], object]) -> None:
        cls.__functions.append(fnc)

    @classmethod
    def owners(cls) -> list[str]:
        """The Python modules of the functions, in their order."""
        return [function.__module__ for function in cls.__functions]

    @classmethod
    def sort(cls, position: Callable[[str], int]) -> None:
        """Put the functions into the order of their Python modules."""
        cls.__functions.sort(key=lambda function: position(function.__module__))

    @classmethod
    def run(cls) -> list[Exception]:
        """Call all, and give what they raised."""
        problems: list[Exception] = []
        for function in cls.__functions:
            try:
                function()
            except Exception as exc:
                import logging

                logging.getLogger(__name__).exception("a finalizer failed")
                problems.append(exc)
        return problems

    @classmethod
    def call_finalizers(cls, should_log: bool = False) -> None:
        from inmanta.ast import CompilerException, MultiException

        failed: list[CompilerException] = []
        for exc in cls.run():
            failed.append(CompilerException(f"Finalizer failed: {exc}"))
            failed[-1].__cause__ = exc
        if failed and not should_log:
            raise failed[0] if len(failed) == 1 else MultiException(failed)

    @classmethod
    def reset_finalizers(cls) -> None:
        cls.__functions = []


def finalizer(fnc: T) -> T:
    """Decorator: the function is called after the compile, failed or not."""
    Finalizers.add_function(fnc)
    return fnc


class Compiler:
    """Stands for the compiler in a plug-in's Context.

    :param loaded: whether the model loads the namespace of a Python module.
    """

    def __init__(self, loaded: Callable[[str], bool] = bool) -> None:
        self._loaded = loaded
        self.refs: dict[str, Any] = {}

    @property
    def plugins(self) -> dict[str, Any]:
        return self.get_plugins()

    def get_ns(self) -> Any:
        from inmanta.ast import Namespace

        return Namespace("__root__")

    @property
    def ns(self) -> Any:
        return self.get_ns()

    def get_plugins(self) -> dict[str, Any]:
        """The plug-ins that there are for the model, by name: templates have them as filters."""
        from inmanta import plugins

        return plugins.all_plugins(self._loaded)

    def is_loaded(self) -> bool:
        return True


__getattr__ = lacking(__name__)
