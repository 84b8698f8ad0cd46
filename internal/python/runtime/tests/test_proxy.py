"""Views on values of the model, without an engine: a model written by hand."""

import collections.abc
import json
import unittest

from inmanta import util
from inmanta.ast import NotFoundException, OptionalValueException, UnexpectedReference, UnknownException, UnsetException
from inmanta.execute import runtime
from inmanta.execute.proxy import DictProxy, DynamicProxy, ExportContext, ProxyContext, SequenceProxy
from inmanta.execute.runtime import Instance, ResultVariable
from inmanta.execute.util import NoneValue, Unknown
from inmanta.plugins import allow_reference_values
from inmanta.references import Reference


class Ref(Reference[str]):
    pass


REF = Ref()


class Model:
    def __init__(self) -> None:
        self.reads = 0

    def read(self, instance: Instance, name: str) -> object:
        self.reads += 1
        if name == "unset":
            raise UnsetException("Value not available", ResultVariable(slot=4))
        if name == "empty":
            raise OptionalValueException(instance, name)
        values = {
            "name": "n",
            "none": NoneValue(),
            "unknown": Unknown(),
            "ref": REF,
            "list": [1, REF],
            "self": instance,
        }
        if name not in values:
            raise NotFoundException(None, name)
        instance.known[name] = values[name]
        return values[name]

    def origin(self, instance: Instance) -> list[object]:
        return []


class Proxies(unittest.TestCase):
    def setUp(self) -> None:
        self.model = Model()
        runtime.install(self.model)  # type: ignore[arg-type]
        self.addCleanup(runtime.install, None)
        self.instance = Instance(7, "t::E")
        self.proxy = DynamicProxy.return_value(self.instance)

    def test_attributes(self) -> None:
        self.assertEqual((self.proxy.name, self.proxy.name, self.proxy.none), ("n", "n", None))
        self.assertEqual(self.model.reads, 2)
        self.assertEqual(self.proxy.self, self.proxy)
        self.assertEqual({self.proxy: 1}[self.proxy.self], 1)
        for name, problem in (
            ("unset", UnsetException),
            ("empty", OptionalValueException),
            ("unknown", UnknownException),
            ("nope", AttributeError),
            ("ref", UnexpectedReference),
        ):
            with self.subTest(name), self.assertRaises(problem):
                getattr(self.proxy, name)

    def test_special_names_are_names(self) -> None:
        self.assertFalse(hasattr(self.proxy, "__html__"))
        self.instance.known["__len__"] = "attribute"
        self.assertEqual(getattr(self.proxy, "__len__"), "attribute")

    def test_operators(self) -> None:
        small, big, frozen = map(DynamicProxy.return_value, ([1], [2], b"a"))
        self.assertTrue(small < big and big > small and small < [2] and [2] > small)
        with self.assertRaises(TypeError):
            big > [1]
        self.assertEqual(hash(frozen), hash(b"a"))
        with self.assertRaises(TypeError):
            hash(small)

        class View:
            def _get_instance(self) -> object:
                return [1]

        self.assertEqual(small, View())
        self.assertIsInstance(small, collections.abc.Hashable)
        self.assertNotIsInstance(small, collections.abc.Container)
        self.assertIn(1, small)

    def test_iterators_have_no_view_of_their_own(self) -> None:
        self.assertIs(type(DynamicProxy.return_value(iter([1]))), DynamicProxy)
        with self.assertRaises(TypeError):
            iter(DynamicProxy.return_value(each for each in [1]))

    def test_views_of_its_own_making(self) -> None:
        """What code wraps itself may be a reference, unlike what leads to an instance."""
        made = DynamicProxy(self.instance)
        self.assertIs(made.ref, REF)
        self.assertIs(made.list[1], REF)
        self.assertIs(SequenceProxy([REF])[0], REF)
        self.assertIs(DictProxy({"a": REF})["a"], REF)
        for leading in (made.self, DynamicProxy.return_value([self.instance])[0]):
            with self.assertRaises(UnexpectedReference):
                leading.ref

        class Mine(DynamicProxy):
            def __init__(self, instance: object, extra: int) -> None:
                super().__init__(instance)
                object.__setattr__(self, "extra", extra)

        copied = allow_reference_values(Mine(self.instance, 5))
        self.assertEqual((type(copied), copied.extra, copied.ref), (Mine, 5, REF))

    def test_read_only(self) -> None:
        with self.assertRaisesRegex(Exception, "Readonly"):
            self.proxy.name = "x"

    def test_references(self) -> None:
        self.assertIs(allow_reference_values(self.proxy).ref, REF)
        with self.assertRaises(UnexpectedReference):
            list(self.proxy.list)
        self.assertEqual(list(allow_reference_values(self.proxy.list)), [1, REF])
        with ExportContext():
            self.assertIs(self.proxy.ref, REF)
        nested = DynamicProxy.return_value([[REF], self.instance], context=ProxyContext(path="x", validated=True))
        self.assertIs(nested[0][0], REF)
        with self.assertRaises(UnexpectedReference):
            nested[1].list[1]
        declared = SequenceProxy([REF], context=ProxyContext(path="x", validated=True))
        self.assertIs(declared[0], REF)

    def test_containers(self) -> None:
        sequence = DynamicProxy.return_value([1, NoneValue(), {"a": [2.5]}])
        self.assertIsInstance(sequence, SequenceProxy)
        self.assertNotIsInstance(sequence, collections.abc.Sequence)
        self.assertEqual((sequence[0], sequence[1], len(sequence), sequence[-1]["a"][0]), (1, None, 3, 2.5))
        self.assertEqual(str(sequence), "@[1, null, {'a': [2.5]}]")
        mapping = DynamicProxy.return_value({"k": None, "l": [1]})
        self.assertIsInstance(mapping, DictProxy)
        self.assertIsInstance(mapping, collections.abc.Mapping)
        self.assertEqual(
            (list(mapping), mapping.get("x"), "k" in mapping, mapping["k"]), (["k", "l"], None, True, None)
        )
        self.assertEqual(
            json.dumps([mapping, sequence], default=util.internal_json_encoder),
            '[{"k": null, "l": [1]}, [1, null, {"a": [2.5]}]]',
        )
        with self.assertRaises(TypeError):
            json.dumps([self.proxy], default=util.internal_json_encoder)

    def test_unwrap(self) -> None:
        inner = [1]
        self.assertEqual(
            DynamicProxy.unwrap({"a": [None, self.proxy, DynamicProxy.return_value(inner)]}),
            {"a": [NoneValue(), self.instance, inner]},
        )
        with self.assertRaisesRegex(Exception, "dict keys should be strings"):
            DynamicProxy.unwrap({1: 2})
