"""Takes names that our modules lack from an installed inmanta-core."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_PREFIX = "_inmanta_core_fallback."


def lacking(module: str) -> Callable[[str], object]:
    """Make the ``__getattr__`` of one of our modules.

    When our module lacks a name, it loads the module of the same name from an
    installed inmanta-core, under another name, and takes the name from there.
    """
    reach(module)

    def __getattr__(name: str) -> object:
        if name == "__all__":
            return _public(module)
        if not (name.startswith("__") and name.endswith("__")):
            twin = _twin(module)
            if twin is not None and hasattr(twin, name):
                return getattr(twin, name)
        raise AttributeError(
            f"Ordain's {module} has no {name!r}, and no inmanta-core that has it is installed in this environment"
        )

    return __getattr__


def _public(module: str) -> list[str]:
    """The names that ``import *`` takes from a module without ``__all__``: ours and those of the installed one."""
    twin = _twin(module)
    if twin is None:
        raise AttributeError(f"module {module!r} has no attribute '__all__'")
    theirs = getattr(twin, "__all__", vars(twin))
    return sorted({name for name in [*vars(sys.modules[module]), *theirs] if not name.startswith("_")})


def reach(package: str) -> None:
    """Let one of our packages find submodules that it lacks in an installed inmanta-core."""
    core = sys.modules["inmanta"]._core
    path = getattr(sys.modules.get(package), "__path__", None)
    if core is None or path is None:
        return
    folder = os.path.join(core, *package.split(".")[1:])
    if folder not in path and os.path.isdir(folder):
        path.append(folder)


def _twin(module: str) -> "ModuleType | None":
    hidden = _PREFIX + module
    if hidden in sys.modules:
        return sys.modules[hidden]
    import importlib.util

    import inmanta

    if inmanta._core is None:
        return None
    base = os.path.join(inmanta._core, *module.split(".")[1:])
    for path in (base + ".py", os.path.join(base, "__init__.py")):
        if os.path.isfile(path):
            spec = importlib.util.spec_from_file_location(hidden, path)
            break
    else:
        return None
    twin = importlib.util.module_from_spec(spec)
    sys.modules[hidden] = twin
    try:
        spec.loader.exec_module(twin)
    except Exception:  # it may ask more of our modules than they have
        sys.modules.pop(hidden, None)
        return None
    return twin
