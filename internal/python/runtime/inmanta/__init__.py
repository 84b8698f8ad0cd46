"""Ordain's light version of the packages that Inmanta's modules import.

Python finds this package before an installed ``inmanta-core``, and it works
without one. What it lacks comes from an installed ``inmanta-core``:

* missing submodules, because the folder of the installed package is the last
  entry of the ``__path__`` of this package and of those in it, see
  :func:`inmanta._fallback.reach`;
* missing names of a submodule that exists here, through
  :func:`inmanta._fallback.lacking`.

The import must stay cheap, because every worker begins with it.
"""

import os
import sys

COMPILER_VERSION = "20.1.0"
RUNNING_TESTS = False

__version__ = COMPILER_VERSION


def _installed_core() -> "str | None":
    """The folder of an installed inmanta-core on sys.path, if there is one."""
    here = os.path.realpath(os.path.dirname(__file__))
    for entry in sys.path:
        folder = os.path.join(entry or os.curdir, "inmanta")
        if os.path.isfile(os.path.join(folder, "__init__.py")) and os.path.realpath(folder) != here:
            return folder
    return None


_core = _installed_core()
if _core is not None:
    __path__.append(_core)
