r"""Paths into nested dicts and lists.

    a.b                  the value of key b in the value of key a
    list[k=v][l=w]       the element of the list under key "list" whose k is v and l is w
    .                    the whole container
    \. \[ \] \= \* \\    the character itself
    \0                   null, as the value of a key in brackets

A wild path may have ``*`` for any key or value, and leads to any number of elements.
A dict path leads to one. Values are compared by their text, and numbers also by value.
"""

import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Optional, Union

from inmanta._fallback import lacking

Pairs = Sequence[tuple[str, str]]

_SPECIAL = re.compile(r"([.\[\]=*\\])")
_NULL = r"\0"
_NAME = r"(?:[^\\.\[\]=*]|\\[\\.\[\]=*])"  # a character of a key
_KEY = rf"(?:{_NAME}+|\*)"
_VALUE = rf"(?:(?:{_NAME}|\.)*|\*|\\0)"


class InvalidPathException(Exception):
    """A text is not a path."""


class ContainerStructureException(LookupError):
    """A path leads through something that is not a container of the kind that it needs."""


class DictPathValue:
    """A key or a value in a path."""

    @classmethod
    def from_object(cls, value: object) -> "DictPathValue":
        return NullValue() if value is None else NormalValue(str(value))

    @classmethod
    def create(cls, value: str) -> "DictPathValue":
        """Return the value that a part of a path stands for."""
        special = {"*": WildCardValue, _NULL: NullValue}.get(value)
        return NormalValue(re.sub(r"\\(.)", r"\1", value)) if special is None else special()

    @property
    def value(self) -> Optional[str]:
        raise NotImplementedError()

    def escape(self) -> str:
        """Return the text that a path has for it."""
        raise NotImplementedError()

    def matches(self, value: object) -> bool:
        raise NotImplementedError()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DictPathValue) and self.escape() == other.escape()

    def __hash__(self) -> int:
        return hash(self.escape())


class NormalValue(DictPathValue):
    def __init__(self, value: str) -> None:
        self._value = value

    @property
    def value(self) -> str:
        return self._value

    def escape(self) -> str:
        return _SPECIAL.sub(r"\\\1", self._value)

    def matches(self, value: object) -> bool:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            try:
                return float(self._value) == value
            except ValueError:
                return False
        return value is not None and str(value) == self._value


class WildCardValue(DictPathValue):
    @property
    def value(self) -> str:
        raise Exception("A wild card stands for any value: it has none of its own")

    def escape(self) -> str:
        return "*"

    def matches(self, value: object) -> bool:
        return True


class NullValue(DictPathValue):
    @property
    def value(self) -> None:
        return None

    def escape(self) -> str:
        return _NULL

    def matches(self, value: object) -> bool:
        return value is None


def _mapping(container: object) -> Mapping[str, object]:
    if not isinstance(container, Mapping):
        raise ContainerStructureException(f"a dict is wanted, not {container!r}")
    return container


def _mutable(container: object) -> MutableMapping[str, object]:
    if not isinstance(container, MutableMapping):
        raise ContainerStructureException(f"a dict that can be changed is wanted, not {container!r}")
    return container


def _sequence(container: object) -> list[Any]:
    if isinstance(container, (list, set)) or (
        isinstance(container, Sequence) and not isinstance(container, (str, bytes))
    ):
        return container  # type: ignore[return-value]
    if getattr(type(container), "_is_sequence_proxy", False):
        return list(container)  # type: ignore[call-overload]
    raise ContainerStructureException(f"a list or set is wanted, not {container!r}")


class WildDictPath:
    """A path that may lead to many elements."""

    def found(self, container: object) -> "Iterator[tuple[str, Any]]":
        """Return the elements that the path leads to, each with the path that leads only to it."""
        raise NotImplementedError()

    def get_elements(self, container: object) -> list[Any]:
        return [element for _, element in self.found(container)]

    def resolve_wild_cards(self, container: object) -> "Sequence[Any]":
        """Return one path without wild cards for each element."""
        return [to_path(path) for path, _ in self.found(container)]

    def to_str(self) -> str:
        raise NotImplementedError()

    def get_path_sections(self) -> "Sequence[Any]":
        return [self]

    def __str__(self) -> str:
        return self.to_str()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WildDictPath) and self.get_path_texts() == other.get_path_texts()

    def __hash__(self) -> int:
        return hash(tuple(self.get_path_texts()))

    def get_path_texts(self) -> list[str]:
        return [section.to_str() for section in self.get_path_sections()]

    def __add__(self, other: "WildDictPath") -> "WildComposedPath":
        if not isinstance(other, WildDictPath):
            return NotImplemented
        return WildComposedPath(path=[*self.get_path_sections(), *other.get_path_sections()])


class WildInDict(WildDictPath):
    """One key of a dict, or all keys."""

    def __init__(self, key: str) -> None:
        self.key: DictPathValue = WildCardValue() if key == "*" else NormalValue(key)

    @classmethod
    def parse(cls, inp: str) -> "Optional[Any]":
        if not re.fullmatch(_KEY, inp):
            return None
        value = DictPathValue.create(inp)
        made = cls.__new__(cls)
        made.key = value if isinstance(value, WildCardValue) else NormalValue(value.value or "0")
        made._check()
        return made

    def _check(self) -> None:
        """Do nothing: wild cards are allowed here."""

    def found(self, container: object) -> "Iterator[tuple[str, Any]]":
        items = _mapping(container)
        if isinstance(self.key, WildCardValue):
            for key, value in items.items():
                yield NormalValue(str(key)).escape(), value
        elif self.key.value in items:
            yield self.key.escape(), items[self.key.value]  # type: ignore[index]

    def to_str(self) -> str:
        return self.key.escape()


class WildKeyedList(WildDictPath):
    """Elements of a list of dicts, by the values of some of their keys."""

    def __init__(self, relation: str, key_value_pairs: Union[str, Pairs], key_value: Optional[str] = None) -> None:
        pairs: Pairs = []
        if not isinstance(key_value_pairs, str):
            pairs = key_value_pairs
        else:  # one pair, as two arguments
            assert key_value is not None, f"{key_value_pairs} needs a value"
            pairs = [(key_value_pairs, key_value)]
        self.relation: DictPathValue = WildCardValue() if relation == "*" else NormalValue(relation)
        self.key_value_pairs = [(self._given(key), self._given(value)) for key, value in pairs]
        self._check()

    @staticmethod
    def _given(text: str) -> DictPathValue:
        if not isinstance(text, str):
            raise TypeError(f"expected a string, got {text!r} of type {type(text).__name__}")
        return DictPathValue.create(text) if text in ("*", _NULL) else NormalValue(text)

    @classmethod
    def parse(cls, inp: str) -> "Optional[Any]":
        if not re.fullmatch(rf"{_NAME}+(?:\[{_KEY}={_VALUE}\])+", inp):
            return None
        relation = re.match(f"{_NAME}+", inp)
        assert relation is not None
        made = cls.__new__(cls)
        made.relation = DictPathValue.create(relation[0])
        made.key_value_pairs = [
            (DictPathValue.create(key), DictPathValue.create(value))
            for key, value in re.findall(rf"\[({_KEY})=({_VALUE})\]", inp[relation.end() :])
        ]
        made._check()
        return made

    def _check(self) -> None:
        """Do nothing: wild cards are allowed here."""

    def get_key_value_pairs(self) -> Sequence[tuple[str, Optional[str]]]:
        return [(key.value or "", value.value) for key, value in self.key_value_pairs]

    def _has(self, element: object) -> bool:
        items = _mapping(element)
        for key, value in self.key_value_pairs:
            if isinstance(key, WildCardValue):
                if not any(value.matches(each) for each in items.values()):
                    return False
            elif key.value not in items or not value.matches(items[key.value]):  # type: ignore[index]
                return False
        return True

    def _lists(self, container: object) -> "Iterator[tuple[str, list[Any]]]":
        items = _mapping(container)
        names = list(items) if isinstance(self.relation, WildCardValue) else [self.relation.value]
        for name in names:
            if name in items:
                yield NormalValue(str(name)).escape(), _sequence(items[name])  # type: ignore[index]

    def found(self, container: object) -> "Iterator[tuple[str, Any]]":
        for name, elements in self._lists(container):
            for element in elements:
                if self._has(element):
                    yield name + self._keys_of(element), element

    def resolve_wild_cards(self, container: object) -> "Sequence[Any]":
        if any(isinstance(key, WildCardValue) for key, _ in self.key_value_pairs):
            raise NotImplementedError(f"{self}: a wild card for a key stands for no single path")
        return super().resolve_wild_cards(container)

    def _keys_of(self, element: Any) -> str:
        return "".join(
            f"[{key.escape()}={DictPathValue.from_object(element.get(key.value)).escape()}]"
            if not isinstance(key, WildCardValue)
            else f"[{key.escape()}={value.escape()}]"
            for key, value in self.key_value_pairs
        )

    def to_str(self) -> str:
        return self.relation.escape() + "".join(
            f"[{key.escape()}={value.escape()}]" for key, value in self.key_value_pairs
        )


class WildComposedPath(WildDictPath):
    """Several sections in a row."""

    def __init__(self, path_str: Optional[str] = None, path: "Optional[Sequence[Any]]" = None) -> None:
        self.expanded_path: Sequence[Any] = self.do_parse(path_str) if path_str is not None else list(path or ())
        self.path = path_str if path_str is not None else self.un_parse()

    @classmethod
    def _section(cls, text: str) -> Any:
        return WildInDict.parse(text) or WildKeyedList.parse(text)

    @classmethod
    def split_on_dots(cls, path_str: str) -> list[str]:
        """Split at dots that are outside of brackets and have no backslash.

        A bracket that nothing closes separates too, and so does a backslash at the end.
        """
        parts, at = [""], 0
        while at < len(path_str):
            end = cls._piece(path_str, at)
            if end == at:
                parts.append("")
                at += 1
            else:
                parts[-1] += path_str[at:end]
                at = end
        return [part for part in parts if part]

    @staticmethod
    def _piece(path: str, at: int) -> int:
        """Return where the character, escape or bracket ends; at itself if it is a separator."""
        if path[at] == "\\":
            return at + 2 if at + 1 < len(path) else at
        if path[at] != "[":
            return at if path[at] == "." else at + 1
        end = at + 1
        while end < len(path) and path[end] != "]":
            end += 2 if path[end] == "\\" else 1
        return end + 1 if end < len(path) else at

    @classmethod
    def do_parse(cls, path_str: str) -> Sequence[Any]:
        sections = []
        for part in cls.split_on_dots(path_str):
            section = cls._section(part)
            if section is None:
                raise InvalidPathException(f"{part!r} is neither a key nor list[key=value]")
            sections.append(section)
        if not sections:
            raise InvalidPathException(f"{path_str!r} names nothing")
        return sections

    @classmethod
    def parse(cls, inp: str) -> "Optional[Any]":
        try:
            return cls(path_str=inp)
        except InvalidPathException:
            return None

    def un_parse(self) -> str:
        return ".".join(section.to_str() for section in self.expanded_path)

    def found(self, container: object) -> "Iterator[tuple[str, Any]]":
        return self._found(self.expanded_path, "", container)

    def _found(self, sections: Sequence[Any], before: str, container: object) -> "Iterator[tuple[str, Any]]":
        if not sections:
            yield before, container
            return
        for path, element in sections[0].found(container):
            yield from self._found(sections[1:], f"{before}.{path}" if before else path, element)

    def resolve_wild_cards(self, container: object) -> "Sequence[Any]":
        for section in self.expanded_path:
            if isinstance(section, WildKeyedList) and any(
                isinstance(key, WildCardValue) for key, _ in section.key_value_pairs
            ):
                raise NotImplementedError(f"{self}: a wild card for a key stands for no single path")
        return super().resolve_wild_cards(container)

    def get_path_sections(self) -> Sequence[Any]:
        return self.expanded_path

    def to_str(self) -> str:
        return self.path


class WildNullPath(WildDictPath):
    """The path to the whole container."""

    def found(self, container: object) -> "Iterator[tuple[str, Any]]":
        yield ".", container

    def get_path_sections(self) -> Sequence[Any]:
        return []

    @classmethod
    def parse(cls, inp: str) -> "Optional[Any]":
        return cls() if inp == "." else None

    def to_str(self) -> str:
        return "."


def _no_wild_card(*values: DictPathValue) -> None:
    if any(isinstance(value, WildCardValue) for value in values):
        raise InvalidPathException(
            "* stands for many keys, and this path has to lead to one element: use a WildDictPath"
        )


class DictPath(WildDictPath):
    """A path to one element."""

    def get_element(self, container: object, construct: bool = False) -> Any:
        """Return the element. If it is missing, it is made with construct, otherwise KeyError is raised."""
        raise NotImplementedError()

    def set_element(self, container: object, value: object, construct: bool = True) -> None:
        """Set the element. With construct, missing containers on the way are made."""
        raise NotImplementedError()

    def remove(self, container: object) -> None:
        """Remove the element if it exists."""
        raise NotImplementedError()

    def get_key(self) -> str:
        raise NotImplementedError(f"{type(self).__name__} has no key")

    def get_elements(self, container: object) -> list[Any]:
        try:
            return [self.get_element(container)]
        except LookupError:
            return []

    def _missing(self, container: object, found: object) -> KeyError:
        return KeyError(f"{self} should lead to one element of {container}, and leads to {found or 'none'}")

    def __add__(self, other: WildDictPath) -> Any:
        if isinstance(other, DictPath):
            return ComposedPath(path=[*self.get_path_sections(), *other.get_path_sections()])
        return super().__add__(other)


class InDict(DictPath, WildInDict):
    """One key of a dict."""

    def __init__(self, key: str) -> None:
        self.key = NormalValue(key)

    def _check(self) -> None:
        _no_wild_card(self.key)

    def get_element(self, container: object, construct: bool = False) -> Any:
        items = _mapping(container)
        key = self.key.value
        if key not in items:
            if not construct:
                raise self._missing(container, [])
            _mutable(container)[key] = {}  # type: ignore[index]
        return items[key]  # type: ignore[index]

    def set_element(self, container: object, value: object, construct: bool = True) -> None:
        _mutable(container)[self.key.value] = value  # type: ignore[index]

    def remove(self, container: object) -> None:
        _mutable(container).pop(self.key.value, None)  # type: ignore[arg-type]

    def get_key(self) -> str:
        return self.key.value or ""


class KeyedList(DictPath, WildKeyedList):
    """The element of a list of dicts that has given values for given keys."""

    def _check(self) -> None:
        _no_wild_card(self.relation, *(each for pair in self.key_value_pairs for each in pair))

    def _elements(self, container: object, construct: bool) -> list[Any]:
        items = _mapping(container)
        name = self.relation.value
        if name not in items:
            if not construct:
                return []
            _mutable(container)[name] = []  # type: ignore[index]
        return _sequence(items[name])  # type: ignore[index]

    def get_element(self, container: object, construct: bool = False) -> Any:
        elements = self._elements(container, construct)
        matching = [each for each in elements if self._has(each)]
        if len(matching) == 1:
            return matching[0]
        if matching or not construct:
            raise self._missing(container, matching)
        made = {key.value: value.value for key, value in self.key_value_pairs}
        elements.append(made)
        return made

    def set_element(self, container: object, value: object, construct: bool = True) -> None:
        elements = self._elements(container, True)
        matching = [at for at, each in enumerate(elements) if self._has(each)]
        if len(matching) == 1:
            elements[matching[0]] = value
        else:
            elements.append(value)

    def remove(self, container: object) -> None:
        elements = self._elements(container, False)
        elements[:] = [each for each in elements if not self._has(each)]

    def get_key(self) -> str:
        return self.relation.value or ""


class ComposedPath(DictPath, WildComposedPath):
    """Several sections in a row."""

    @classmethod
    def _section(cls, text: str) -> Any:
        return InDict.parse(text) or KeyedList.parse(text)

    def get_element(self, container: object, construct: bool = False) -> Any:
        element = container
        for section in self.expanded_path:
            try:
                element = section.get_element(element, construct)
            except LookupError as problem:
                if construct and not isinstance(problem, KeyError):
                    raise
                raise self._missing(container, []) from problem
        return element

    def _last(self, container: object, construct: bool) -> tuple[DictPath, Any]:
        holder = container
        for section in self.expanded_path[:-1]:
            holder = section.get_element(holder, construct)
        return self.expanded_path[-1], holder

    def set_element(self, container: object, value: object, construct: bool = True) -> None:
        section, holder = self._last(container, construct)
        section.set_element(holder, value, construct)

    def remove(self, container: object) -> None:
        try:
            section, holder = self._last(container, False)
        except KeyError:
            return
        section.remove(holder)

    def get_key(self) -> str:
        raise NotImplementedError(f"{self} has several keys")


class NullPath(DictPath, WildNullPath):
    """The path to the whole container."""

    def get_element(self, container: object, construct: bool = False) -> Any:
        return container

    def set_element(self, container: object, value: object, construct: bool = True) -> None:
        if not isinstance(value, Mapping):
            raise ContainerStructureException(f"only a dict can replace a whole dict, not {value!r}")
        holder = _mutable(container)
        holder.clear()
        holder.update(value)

    def remove(self, container: object) -> None:
        raise NotImplementedError("the whole cannot be removed from itself")

    def get_key(self) -> str:
        raise NotImplementedError("the whole has no key")


def to_wild_path(inp: str) -> Any:
    """Parse a path that may have wild cards."""
    return WildNullPath() if inp == "." else WildComposedPath(path_str=inp.removeprefix("."))


def to_path(inp: str) -> Any:
    """Parse a path to one element."""
    return NullPath() if inp == "." else ComposedPath(path_str=inp.removeprefix("."))


__getattr__ = lacking(__name__)
