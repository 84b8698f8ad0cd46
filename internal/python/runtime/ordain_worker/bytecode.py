"""Keeps the bytecode of packages whose folder cannot be written.

Python would compile such packages on every start. Bytecode that cannot be
written beside its source goes to a folder of the cache instead, and is read from
there if there is none beside the source. Python checks it against time and size
of the source, as usual. Once a day the time of a used file is updated, because
old ones are removed (bytecode.go).
"""

from __future__ import annotations

import os
import time

import _imp
from _frozen_importlib_external import SourceFileLoader

_KEY = 0x6F726461696E0001  # key of the hash that names files
_DAY = 86400.0


def _mark(kept: str) -> None:
    """Record that a file was used."""
    try:
        if time.time() - os.stat(kept).st_mtime > _DAY:
            os.utime(kept)
    except OSError:
        pass  # it belongs to another user, or was removed meanwhile


def keep_in(folder: str) -> None:
    """Keep bytecode in this folder, which is made when it is needed."""
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
                return  # the package is compiled again the next time
            write(self, elsewhere(path), data, _mode=0o600)

    SourceFileLoader.get_data = get_data  # type: ignore[method-assign]
    SourceFileLoader.set_data = set_data  # type: ignore[method-assign]
