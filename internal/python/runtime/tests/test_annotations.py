"""Annotations in the form that the engine takes."""

import collections
import dataclasses
import numbers
import typing
import unittest
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Optional, Union

from inmanta.execute.proxy import DynamicProxy
from inmanta.plugins import ModelType
from inmanta.references import Reference
from ordain_worker.annotations import AnnotationError, Normalizer


def short(made: dict) -> str:
    inner = ", ".join(short(each) for each in made.get("of", ()))
    name = made.get("name")
    return made["k"] + (f":{name}" if name else "") + (f"({inner})" if inner else "")


class Text(Reference[str]):
    pass


@dataclasses.dataclass(frozen=True)
class Point:
    x: int


Point.__module__ = "inmanta_plugins.geo.flat"


class Translations(unittest.TestCase):
    def test_known(self) -> None:
        for annotation, want in (
            (str, "prim:string"),
            (bool, "prim:bool"),
            (numbers.Number, "prim:number"),
            (None, "null"),
            (object, "any"),
            (Any, "any"),
            (list, "dsl:list"),
            (list[str], "list(prim:string)"),
            (Sequence[Optional[int]], "list(nullable(prim:int))"),
            (dict[str, float], "dict(prim:float)"),
            (Mapping[str, object], "dict(any)"),
            (Union[int, None, str], "nullable(union(prim:int, prim:string))"),
            (str | Reference[str], "union(prim:string, reference(prim:string))"),
            (Reference, "reference(any)"),
            (Text, "reference(prim:string)"),
            (Annotated[DynamicProxy, ModelType["std::Host"]], "dsl:std::Host"),
            (Annotated[str, "a remark"], "prim:string"),
            (Point, "dataclass:geo::flat::Point"),
            (list[Point], "list(dataclass:geo::flat::Point)"),
        ):
            with self.subTest(str(annotation)):
                self.assertEqual(short(Normalizer("x").annotation(annotation)), want)

    def test_texts_are_types_of_the_model(self) -> None:
        self.assertEqual(short(Normalizer("x").parameter("std::Host[]?", "host")), "dsl:std::Host[]?")
        self.assertEqual(short(Normalizer("x").annotation(list["std::Host"])), "list(any)")

    def test_what_is_no_type_is_refused(self) -> None:
        for annotation in (1, [str], ..., typing.TypeVar("T"), typing.NoReturn):
            with self.subTest(str(annotation)), self.assertRaises(AnnotationError) as caught:
                Normalizer("m::f").parameter(annotation, "x")
            self.assertEqual(caught.exception.error, "InvalidTypeAnnotation")

    def test_unknown_class_is_any_with_a_warning(self) -> None:
        normalizer = Normalizer("mod::f")
        self.assertEqual(short(normalizer.annotation(type("Odd", (), {}))), "any")
        self.assertEqual(len(normalizer.warnings), 1)
        self.assertIn("mod::f", normalizer.warnings[0])

    def test_refused(self) -> None:
        for annotation in (
            set[str],
            collections.deque[str],
            collections.Counter[str],
            typing.Literal[1],
            dict[int, str],
        ):
            with self.subTest(str(annotation)), self.assertRaises(AnnotationError):
                Normalizer("x").annotation(annotation)
