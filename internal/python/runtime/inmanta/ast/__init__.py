"""Exceptions of the compiler, and locations in a model."""

from __future__ import annotations

from inmanta._fallback import lacking

TYPE_CHECKING = False  # every compile imports this module, so it avoids importing typing
if TYPE_CHECKING:
    from typing import Any, Optional


class Location:
    """A file and a line."""

    def __init__(self, file: str, lnr: int) -> None:
        self.file, self.lnr = file, lnr

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self})"  # type is a module of this package

    def merge(self, other: "Location") -> "Location":
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Location) and (other.file, other.lnr) == (self.file, self.lnr)

    def __hash__(self) -> int:
        return hash((self.file, self.lnr))

    def __str__(self) -> str:
        return ":".join((self.file, str(self.lnr)))


class Range(Location):
    """A range of a file. Lines and columns count from 1."""

    def __init__(self, file: str, start_lnr: int, start_char: int, end_lnr: int, end_char: int) -> None:
        super().__init__(file, start_lnr)
        self.start_char, self.end_lnr, self.end_char = start_char, end_lnr, end_char

    def __str__(self) -> str:
        return f"{super().__str__()}:{self.start_char}"


class Locatable:
    """Something with a location in the model."""

    _place: Optional[Location] = None

    def get_location(self) -> Optional[Location]:
        return self._place

    def set_location(self, location: Location) -> None:
        self._place = location

    @property
    def location(self) -> Optional[Location]:
        return self.get_location()


class LocatableString:
    """A name and its location."""

    def __init__(self, value: str, location: Range, lexpos: int, namespace: Namespace) -> None:
        self.value, self.location, self.lexpos, self.namespace = value, location, lexpos, namespace

    def __repr__(self) -> str:
        return f"LocatableString({self.value!r}, {self.location!r})"

    def __str__(self) -> str:
        return self.value

    get_value = __str__

    def get_location(self) -> Range:
        return self.location


class Namespace(Locatable):
    """A namespace of the model."""

    def __init__(self, name: str, parent: "Optional[Namespace]" = None) -> None:
        super().__init__()
        self._name = name
        self.parent = parent

    @property
    def name(self) -> str:
        return self._name

    def get_name(self) -> str:
        return self._name

    def get_full_name(self) -> str:
        if self.parent is None or self.parent._name in ("", "__root__"):
            return self._name
        return f"{self.parent.get_full_name()}::{self._name}"

    def get_parent(self) -> "Optional[Namespace]":
        return self.parent

    def to_path(self) -> list[str]:
        return self.get_full_name().split("::")

    def get_type(self, typ: Any) -> Any:
        from inmanta.execute import runtime

        return runtime.model().type_of(str(typ))

    @classmethod
    def of(cls, full_name: str) -> "Namespace":
        namespace: Optional[Namespace] = None
        for part in full_name.split("::"):
            namespace = cls(part, namespace)
        assert namespace is not None
        return namespace

    def __str__(self) -> str:
        return self.get_full_name()


class CompilerException(Exception):
    """Base of the errors and warnings that the compiler reports to the author of a model."""

    location: Optional[Location] = None

    def __init__(self, msg: str) -> None:
        Exception.__init__(self, msg)
        self.msg = msg

    def set_location(self, location: Location) -> None:
        """Set the location, unless there is one already: the first one is the nearest to the cause."""
        self.location = self.location or location

    def get_location(self) -> Optional[Location]:
        return self.location

    def get_message(self) -> str:
        return self.msg

    def get_causes(self) -> "list[CompilerException]":
        return []

    def importantance(self) -> int:
        return 10

    def format(self) -> str:
        where = self.get_location()
        return self.get_message() if where is None else f"{self.get_message()} ({where})"

    def format_trace(self, indent: str = "", indent_level: int = 0) -> str:
        lines = [indent * indent_level + self.format()]
        for cause in self.get_causes():
            lines.append(indent * indent_level + "caused by:")
            lines.append(cause.format_trace(indent, indent_level + 1))
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.format()


class RuntimeException(CompilerException):
    """Something went wrong while the model was evaluated."""

    def __init__(self, stmt: Any, msg: str) -> None:
        super().__init__(msg)
        self.stmt: Any = None
        if stmt is not None:
            self.set_statement(stmt)

    def set_statement(self, stmt: Any, replace: bool = True) -> None:
        if replace or self.stmt is None:
            self.stmt = stmt
            where = stmt.get_location()
            if where is not None:
                self.set_location(where)

    def format(self) -> str:
        if self.stmt is None:
            return super().format()
        where = self.get_location()
        place = "" if where is None else f" ({where})"
        return f"{self.get_message()} (reported in {self.stmt}{place})"


class InvalidCompilerState(RuntimeException):
    """The compiler itself is in a state that it should not be in."""

    def __init__(self, stmt: Any, msg: str) -> None:
        super().__init__(stmt, f"Invalid compiler state, this likely indicates a bug in the compiler. Details: {msg}")


class HyphenException(RuntimeException):
    """A name has a hyphen."""

    def __init__(self, stmt: LocatableString) -> None:
        super().__init__(stmt, f"The use of '-' in identifiers is not allowed. please rename {stmt.value}.")


class CompilerRuntimeWarning(Warning, RuntimeException):
    """A warning about the model."""

    def __init__(self, stmt: Any, msg: str) -> None:
        RuntimeException.__init__(self, stmt, msg)


class CompilerDeprecationWarning(CompilerRuntimeWarning):
    """A warning about something deprecated."""


class TypeNotFoundException(RuntimeException):
    def __init__(self, type: Any, ns: Any) -> None:
        super().__init__(None, f"could not find type {type} in namespace {ns}")
        if ns != "":  # a name that is written in the model
            self.set_location(type.get_location())
        self.type = type
        self.ns = ns


class WrappingRuntimeException(RuntimeException):
    """An error with its cause."""

    def __init__(self, stmt: Any, msg: str, cause: CompilerException) -> None:
        super().__init__(stmt, msg)
        self.__cause__ = cause

    def get_causes(self) -> list[CompilerException]:
        return [self.__cause__] if isinstance(self.__cause__, CompilerException) else []


class ExternalException(RuntimeException):
    """Python code raised an exception."""

    def __init__(self, stmt: Any, msg: str, cause: Exception) -> None:
        super().__init__(stmt, msg)
        self.__cause__ = cause


class ExplicitPluginException(ExternalException):
    """A plug-in raised PluginException."""

    def get_message(self) -> str:
        cause = self.__cause__
        return f"{self.msg}\n{cause.message}" if isinstance(cause, PluginException) else self.msg


class AttributeException(WrappingRuntimeException):
    def __init__(self, stmt: Any, instance: Any, attribute: str, cause: RuntimeException) -> None:
        super().__init__(stmt, f"Could not set attribute `{attribute}` on instance `{instance}`", cause)
        self.instance = instance
        self.attribute = attribute


class PluginTypeException(WrappingRuntimeException):
    """A value does not belong to the type that a plug-in declares."""


class OptionalValueException(RuntimeException):
    """An optional attribute or relation that has no value was read."""

    def __init__(self, instance: Any, attribute: Any) -> None:
        # Modules raise and catch this for every instance of a list. The message needs
        # the engine, so it is made only when it is read. The same holds for the
        # attribute if only its name is given.
        Exception.__init__(self)
        self.instance = instance
        self._attribute = attribute
        self.stmt = None
        self.location = None

    @property
    def attribute(self) -> Any:
        if isinstance(self._attribute, str) and hasattr(self.instance, "get_type"):
            return self.instance.get_type().get_attribute(self._attribute)
        return self._attribute

    @property
    def msg(self) -> str:  # type: ignore[override]
        return f"Optional variable accessed that has no value (attribute `{self.attribute}` of `{self.instance}`)"


class NotFoundException(RuntimeException):
    """A name or a value was not found."""

    def __init__(self, stmt: Any, name: Any, msg: Optional[str] = None) -> None:
        super().__init__(stmt, msg if msg is not None else f"could not find value {name}")
        self.name = name


class UnsetException(RuntimeException):
    """A variable without a value was read. The plug-in is called again once the variable has one."""

    def __init__(self, msg: str, instance: Any = None, attribute: Any = None) -> None:
        super().__init__(None, msg)
        self.instance = instance
        self.attribute = attribute

    def get_result_variable(self) -> Any:
        return self.instance


class MultiUnsetException(RuntimeException):
    """Several variables without a value were read."""

    def __init__(self, msg: str, result_variables: list[Any]) -> None:
        super().__init__(None, msg)
        self.result_variables = result_variables


class UnknownException(Exception):
    """An unknown value was read, so the result of the plug-in is unknown."""

    def __init__(self, unknown: Any) -> None:
        super().__init__(str(unknown))
        self.unknown = unknown


class UnexpectedReference(RuntimeException):
    """A reference was read where a plain value is needed."""

    def __init__(self, *, stmt: Any = None, reference: Any, message: str) -> None:
        super().__init__(stmt, message)
        self.reference = reference


class TypingException(RuntimeException):
    """Types do not fit together."""


class InvalidTypeAnnotation(TypingException):
    """An annotation of a plug-in has no counterpart in the model."""


class IndexException(RuntimeException):
    """An index is used wrongly."""


class KeyException(RuntimeException):
    """A dict does not have the key."""


class DoubleSetException(RuntimeException):
    """A variable was given two different values."""


class ModifiedAfterFreezeException(RuntimeException):
    """A list got a value after it was read as a whole."""

    def __init__(self, rv: Any, instance: Any, attribute: Any, value: object, location: Any, reverse: bool) -> None:
        super().__init__(None, "List modified after freeze")
        self.resultvariable, self.instance, self.attribute = rv, instance, attribute
        self.value, self.location, self.reverse = value, location, reverse


class DuplicateException(TypingException):
    """A name is defined twice."""

    def __init__(self, stmt: Any, other: Any, msg: str) -> None:
        super().__init__(stmt, msg)
        self.other = other


class MultiException(CompilerException):
    """Several errors."""

    def __init__(self, others: list[CompilerException]) -> None:
        super().__init__("")
        self.others = others

    def get_causes(self) -> list[CompilerException]:
        return self.others


class PluginException(Exception):
    """Raised by a plug-in to tell the author of a model what is wrong."""

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)


__getattr__ = lacking(__name__)
