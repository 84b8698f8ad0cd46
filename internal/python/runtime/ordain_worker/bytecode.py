"""Bytecode of packages whose own folder takes none: of somebody else, or read-only.

Python compiles such packages anew on every start. Here what could not be
written beside the source goes to a folder of the cache, and is looked for there
when there is none beside the source. Python checks it against the source, by
time and size, as ever. What is used has its time set anew once a day: the
compiler removes what was not used for long.
"""

from __future__ import annotations

import os
import time

import _imp
from _frozen_importlib_external import SourceFileLoader

_KEY = 0x6F726461696E0001  # of the hash that names files
_DAY = 86400.0


def _mark(kept: str) -> None:
    """Say that a file was used."""
    try:
        if time.time() - os.stat(kept).st_mtime > _DAY:
            os.utime(kept)
    except OSError:
        pass  # somebody else's, or gone meanwhile


def keep_in(folder: str) -> None:
    """Use the folder, called __pycache__ like any other of its kind; it is made when something goes there."""
    read, write = SourceFileLoader.get_data, SourceFileLoader.set_data

    def elsewhere(path: str) -> str:
        name = _imp.source_hash(_KEY, os.fsencode(path)).hex()
        return os.path.join(folder, f"{name}-{os.path.basename(path)}")

    def get_data(self: SourceFileLoader, path: str) -> bytes:
        try:
            return read(self, path)
        except OSError:
            if not path.endswith(".pyc"):
                raise
            kept = elsewhere(path)
            data = read(self, kept)
            _mark(kept)
            return data

    def set_data(self: SourceFileLoader, path: str, data: bytes, *, _mode: int = 0o666) -> None:
        write(self, path, data, _mode=_mode)
        if path.endswith(".pyc") and not os.path.exists(path):
            try:
                os.makedirs(folder, mode=0o700, exist_ok=True)
            except OSError:
                return  # it takes longer the next time too
            write(self, elsewhere(path), data, _mode=0o600)

    SourceFileLoader.get_data = get_data  # type: ignore[method-assign]
    SourceFileLoader.set_data = set_data  # type: ignore[method-assign]
