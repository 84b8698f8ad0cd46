"""Types of the model, for code that inspects them.

The engine checks values; :meth:`Type.validate` asks it.
"""

from __future__ import annotations

from inmanta._fallback import lacking
from inmanta.ast import Locatable, Location, RuntimeException, TypeNotFoundException

TYPE_CHECKING = False  # every compile imports this module, so it avoids importing typing
if TYPE_CHECKING:
    from typing import Any as _Any
    from typing import Optional


class Type(Locatable):
    """Base of all types."""

    def type_string(self) -> Optional[str]:
        """The type as a model writes it; None if a model cannot write it."""
        return None

    def type_string_internal(self) -> str:
        return self.type_string() or "Type"

    def validate(self, value: object) -> bool:
        """Return True if value belongs to the type, otherwise raise RuntimeException."""
        from inmanta.execute import runtime

        name = self.type_string()
        if name is None or runtime.model().accepts(name, value):
            return True
        if self.is_entity():
            raise RuntimeException(None, f"Invalid class type for {value}, should be {name}")
        raise RuntimeException(None, f"Invalid value '{value}', expected {name}")

    def normalize(self) -> None:
        """Do nothing: types are complete when Python sees them."""

    def is_attribute_type(self) -> bool:
        return False

    def is_entity(self) -> bool:
        return False

    def supports_references(self) -> bool:
        return False

    def get_base_type(self) -> "Type":
        return self

    def with_base_type(self, base_type: "Type") -> "Type":
        return base_type

    def issubtype(self, other: "Type") -> bool:
        return self == other

    def issupertype(self, other: "Type") -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.type_string() == other.type_string()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.type_string()))

    def __str__(self) -> str:
        return self.type_string_internal()


class NamedType(Type):
    """A type with a name of its own: an entity, a typedef or a plug-in."""

    def get_full_name(self) -> str:
        raise NotImplementedError()


class Any(Type):
    def type_string_internal(self) -> str:
        return "any"

    def validate(self, value: object) -> bool:
        return True


class Null(Type):
    def type_string(self) -> str:
        return "null"


class Primitive(Type):
    name = ""

    def type_string(self) -> str:
        return self.name

    def is_attribute_type(self) -> bool:
        return True

    def cast(self, value: object) -> object:
        raise RuntimeException(None, f"Failed to cast '{value}' to {self.name}")


class _Cast(Primitive):
    python: type = str

    def cast(self, value: object) -> object:
        try:
            return self.python(value)
        except (TypeError, ValueError):
            return super().cast(value)


class String(_Cast):
    name = "string"
    python = str


class Integer(_Cast):
    name = "int"
    python = int


class Float(_Cast):
    name = "float"
    python = float


class Bool(_Cast):
    name = "bool"
    python = bool


class Number(Primitive):
    name = "number"

    def cast(self, value: object) -> object:
        if isinstance(value, (int, float)):
            return value
        try:
            return int(value)  # type: ignore[call-overload]
        except (TypeError, ValueError):
            return Float().cast(value)


class _Around(Type):
    """Base of the types that are made from another type, such as lists."""

    def __init__(self, element_type: Type) -> None:
        super().__init__()
        self.element_type = element_type

    def is_attribute_type(self) -> bool:
        return self.element_type.is_attribute_type()

    def _written(self, end: str) -> Optional[str]:
        inner = self.element_type.type_string()
        return inner if inner is None else inner + end

    def _shown(self, end: str) -> str:
        inner = self.element_type.type_string_internal()
        return (f"({inner})" if isinstance(self.element_type, OrReferenceType) else inner) + end


class List(Type):
    def type_string(self) -> Optional[str]:
        return "list"


class TypedList(List, _Around):
    def type_string(self) -> Optional[str]:
        return self._written("[]")

    def type_string_internal(self) -> str:
        return self._shown("[]")

    def with_base_type(self, base_type: Type) -> Type:
        return TypedList(base_type)

    def get_base_type(self) -> Type:
        return self.element_type


class LiteralList(TypedList):
    def __init__(self) -> None:
        super().__init__(Literal())

    def type_string(self) -> str:
        return "list"

    type_string_internal = type_string


class Dict(Type):
    def type_string(self) -> Optional[str]:
        return "dict"

    def is_attribute_type(self) -> bool:
        return True


class TypedDict(Dict, _Around):
    def type_string(self) -> Optional[str]:
        return None

    def type_string_internal(self) -> str:
        return f"dict[string, {self.element_type.type_string_internal()}]"


class LiteralDict(TypedDict):
    def __init__(self) -> None:
        super().__init__(Literal())

    def type_string(self) -> str:
        return "dict"

    def type_string_internal(self) -> str:
        return "dict[string, any]"


class NullableType(_Around):
    def type_string(self) -> Optional[str]:
        return self._written("?")

    def type_string_internal(self) -> str:
        return self._shown("?")

    def with_base_type(self, base_type: Type) -> Type:
        return NullableType(self.element_type.with_base_type(base_type))

    def get_base_type(self) -> Type:
        return self.element_type.get_base_type()

    def validate(self, value: object) -> bool:
        from inmanta.execute.util import NoneValue

        return value is None or isinstance(value, NoneValue) or self.element_type.validate(value)


class Union(Type):
    def __init__(self, types: "list[Type]") -> None:
        super().__init__()
        self.types = list(types)

    def validate(self, value: object) -> bool:
        for each in self.types:
            try:
                return each.validate(value)
            except RuntimeException:
                continue
        raise RuntimeException(None, f"Invalid value '{value}', expected {self}")

    def type_string_internal(self) -> str:
        return f"Union[{','.join(each.type_string_internal() for each in self.types)}]"


class Literal(Union):
    def __init__(self) -> None:
        super().__init__([Integer(), Float(), Bool(), String()])

    def type_string_internal(self) -> str:
        return "Literal"


class ConstraintType(NamedType):
    """A typedef."""

    def __init__(self, described: "dict[str, _Any]") -> None:
        super().__init__()
        self.name = described["name"].rpartition("::")[2]
        self._full_name = described["name"]
        self.basetype = parse(described.get("base") or "string")
        self.comment: Optional[str] = described.get("doc") or None
        at = described.get("at")
        if at:
            self.set_location(Location(at["file"], at["line"]))

    def get_full_name(self) -> str:
        return self._full_name

    def type_string(self) -> str:
        return self._full_name

    def get_base_type(self) -> Type:
        return self.basetype

    def is_attribute_type(self) -> bool:
        return True


class ReferenceType(_Around):
    def is_attribute_type(self) -> bool:
        return False

    def supports_references(self) -> bool:
        return True

    def type_string_internal(self) -> str:
        return f"Reference[{self.element_type.type_string_internal()}]"


class OrReferenceType(_Around):
    def is_attribute_type(self) -> bool:
        return False

    def supports_references(self) -> bool:
        return True

    def type_string(self) -> Optional[str]:
        return self._written("")

    def type_string_internal(self) -> str:
        inner = self.element_type.type_string_internal()
        return f"Reference[{inner}] | {inner}"

    def __str__(self) -> str:
        return self.type_string() or self.type_string_internal()


TYPES: dict[str, Type] = {kind.name: kind() for kind in (String, Integer, Float, Number, Bool)}
TYPES.update(list=LiteralList(), dict=LiteralDict())


def parse(text: str) -> Type:
    """Return the type that a model writes as text: ``int``, ``string[]?``, ``std::Host``."""
    if text.endswith("?"):
        return NullableType(parse(text[:-1]))
    if text.endswith("[]"):
        return TypedList(parse(text[:-2]))
    if text in TYPES:
        return TYPES[text]
    if text in ("any", ""):
        return Any()
    from inmanta.execute import runtime

    try:
        return runtime.model().type_of(text)
    except TypeNotFoundException:
        plugin = runtime.model().plugins().get(text)  # every value belongs to the type of a plug-in
        if plugin is None:
            raise
        return plugin


__getattr__ = lacking(__name__)
