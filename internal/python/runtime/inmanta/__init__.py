"""The import surface that Inmanta's modules use, as Ordain offers it.

This package is found before an installed ``inmanta-core`` and needs none. What
it lacks is looked for in an installed one:

* a missing submodule is found because the folder of an installed core is the
  last entry of this package's ``__path__``, and likewise of each package in
  it, see :func:`inmanta._fallback.reach`;
* a missing name of a submodule that exists here is answered by
  :func:`inmanta._fallback.lacking`.

Importing it must stay cheap: a worker imports it before anything else.
"""

import os
import sys

COMPILER_VERSION = "20.1.0"
RUNNING_TESTS = False

__version__ = COMPILER_VERSION


def _installed_core() -> "str | None":
    """The folder of an installed inmanta-core, if there is one on sys.path."""
    here = os.path.realpath(os.path.dirname(__file__))
    for entry in sys.path:
        folder = os.path.join(entry or os.curdir, "inmanta")
        if os.path.isfile(os.path.join(folder, "__init__.py")) and os.path.realpath(folder) != here:
            return folder
    return None


_core = _installed_core()
if _core is not None:
    __path__.append(_core)
