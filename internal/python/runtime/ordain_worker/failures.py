"""Describes exceptions of modules for the author of a model."""

from __future__ import annotations

import os

from inmanta.ast import CompilerException, ExternalException, PluginException, RuntimeException
from ordain_worker import loading
from ordain_worker.converting import PassesBy
from ordain_worker.frames import class_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_RUNTIME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def describe(exc: BaseException, importing: str = "") -> dict[str, Any]:
    """Describe an exception with the frames of modules only.

    :param importing: the file that was being imported, which is the place of the error.
    """
    if isinstance(exc, PassesBy) and exc.__cause__ is not None:
        return {**describe(exc.__cause__), "kind": "exit"}
    if isinstance(exc, loading.ImportStopped) and exc.__cause__ is not None:
        return {**describe(exc.__cause__, exc.file), "module": exc.module, "importing": exc.importing}
    import traceback

    frames = _module_frames(exc)
    if not frames and isinstance(exc, CompilerException) and exc.__cause__ is not None:
        frames = _module_frames(exc.__cause__)  # our own exception about the one that a module raised
    importers = [frame for frame in frames if frame.filename == importing]
    unread = exc if isinstance(exc, SyntaxError) and exc.filename and not exc.filename.startswith("<") else None
    if unread is not None and unread.filename:
        frames.append(traceback.FrameSummary(exc.filename, exc.lineno or 0, "<module>", line=(exc.text or "").strip()))
    if isinstance(exc, PluginException):
        kind = "plugin"
    elif isinstance(exc, RuntimeException):
        kind = "compiler"
    elif loading.is_annotation_error(exc):
        kind = "annotation"
    else:
        kind = "external" if isinstance(exc, Exception) else "exit"
    try:
        message = _message(exc)
    except Exception as broken:
        message = f"(its message cannot be shown: {type(broken).__name__})"
    if importers or not importing:
        innermost = _innermost(importers or frames)
    elif unread is not None or importing.endswith(".pyc"):
        # Nothing of the file has run, or its line numbers are those of a source that may be elsewhere.
        innermost = traceback.FrameSummary(importing, 0, "<module>", line="")
    else:
        innermost = _innermost(frames)
    described: dict[str, Any] = {
        "kind": kind,
        "class": exc.error if kind == "annotation" else class_name(type(exc)),  # type: ignore[attr-defined]
        "message": message,
        "file": innermost.filename if innermost else "",
        "line": (innermost.lineno or 0) if innermost else 0,
        "trace": "".join(traceback.format_list(frames)),
    }
    if kind == "annotation":
        described["file"], described["line"] = exc.place  # type: ignore[attr-defined]
    if isinstance(exc, CompilerException):
        place, about = exc.get_location(), getattr(exc, "stmt", None)
        # The place of the call replaces that of the subject, as in inmanta-core.
        if place is not None and (about is None or place != about.get_location()):
            described["at"] = [place.file, place.lnr, getattr(place, "start_char", 0)]
        described["causes"] = [describe(each) for each in exc.get_causes()]
    if isinstance(exc, ExternalException) and exc.__cause__ is not None:
        described["cause"] = describe(exc.__cause__)
    notes = getattr(exc, "__notes__", None)
    if isinstance(notes, list):
        described["hint"] = "\n".join(str(each) for each in notes)
    if unread is not None:
        described["unread"] = [unread.filename, unread.lineno or 0, unread.offset or 0]
    if isinstance(exc, ModuleNotFoundError):
        described["missing"] = exc.name or ""
    return described


def told(wrong: dict[str, Any], message: str) -> BaseException:
    """The exception for an error that the engine found in a result."""
    import builtins

    from inmanta.ast import PluginTypeException

    if wrong["foreign"]:  # an exception of Python that the condition of a typedef raised
        cls = getattr(builtins, wrong["class"], None)
        raised = isinstance(cls, type) and issubclass(cls, Exception)
        return cls(wrong["message"]) if raised else Exception(f"{wrong['class']}: {wrong['message']}")  # type: ignore[misc]
    return PluginTypeException(None, message, _rebuilt(wrong))


def _rebuilt(wrong: dict[str, Any]) -> CompilerException:
    """A compiler exception of the engine as a Python exception, with its causes."""
    from inmanta import ast

    cls = getattr(ast, wrong["class"], RuntimeException)
    made = cls.__new__(cls)  # their constructors differ
    RuntimeException.__init__(made, None, wrong["message"])
    for cause in wrong["causes"] or ():
        made.__cause__ = _rebuilt(cause)
    return made


def _message(exc: BaseException) -> str:
    if isinstance(exc, CompilerException):
        return exc.get_message()
    return str(exc.message if isinstance(exc, PluginException) else exc)


def _module_frames(exc: BaseException) -> list[Any]:
    import traceback

    return [frame for frame in traceback.extract_tb(exc.__traceback__) if _is_module_frame(frame.filename)]


def _innermost(frames: list[Any]) -> Any:
    """The last frame in a file of plug-ins, or else the last one."""
    for belongs in (
        lambda name: "inmanta_plugins" in name or f"{os.sep}plugins{os.sep}" in name,
        lambda name: True,
    ):
        for frame in reversed(frames):
            if belongs(frame.filename):
                return frame
    return None


def _is_module_frame(filename: str) -> bool:
    return not (
        filename.startswith(_RUNTIME) or filename.startswith("<frozen") or f"{os.sep}importlib{os.sep}" in filename
    )
