"""Answers for names that our modules lack, from an installed inmanta-core."""

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

    The twin of ``module`` in an installed core is loaded, under a name of its
    own, when a name is asked for that ours lacks.
    """

    def __getattr__(name: str) -> object:
        if not (name.startswith("__") and name.endswith("__")):
            twin = _twin(module)
            if twin is not None and hasattr(twin, name):
                return getattr(twin, name)
        raise AttributeError(
            f"Ordain's {module} has no {name!r}, and no inmanta-core that has it is installed in this environment"
        )

    return __getattr__


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
    except ImportError:
        del sys.modules[hidden]
        return None
    return twin
