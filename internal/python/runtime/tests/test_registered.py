"""Which resource classes have to make and write their resources themselves."""

import functools
import unittest
from typing import Generic, TypeVar

from inmanta.resources import Id, ManagedResource, PurgeableResource, Resource, ResourceMeta
from ordain_worker.registered import is_held

T = TypeVar("T")


class Plain(PurgeableResource, ManagedResource, Generic[T]):
    fields = ("key", "value")
    map = {"value": lambda exporter, instance: 1}
    key: str
    value = "the class has one too"

    @staticmethod
    def get_key(exporter, instance):
        return instance.key

    @classmethod
    def object_to_id(cls, *args):
        return Id("m::R", "a", "key", "k")

    def clone(self, **changed):
        return super().clone(**changed)

    @property
    def no_field(self):
        return self.key


class Cached(Resource):
    fields = ("value",)

    @functools.cached_property
    def value(self):
        return "what is set comes first"


class Serializing:
    def serialize(self):
        return super().serialize()


class Descriptor:
    def __get__(self, instance, owner):
        return self if instance is None else "own"

    def __set__(self, instance, value):
        pass


class WithFields(Resource):
    fields = ("value",)


def of(**own):
    return ResourceMeta("R", (WithFields,), own)


def nothing(*args, **kwargs):
    pass


class Held(unittest.TestCase):
    def test_those_that_are_not(self) -> None:
        for cls in (
            Resource,
            PurgeableResource,
            ManagedResource,
            Plain,
            Cached,
            of(),
            of(get_value=nothing, validate=nothing),
        ):
            with self.subTest(cls=cls):
                self.assertFalse(is_held(cls))

    def test_those_that_are(self) -> None:
        methods = ("__init__", "__setattr__", "__getattribute__", "__getattr__", "__new__", "populate", "serialize")
        held = [of(**{name: nothing}) for name in (*methods, "get_references", "get_mutators")]
        held += [of(**{name: property(nothing)}) for name in ("value", "id", "requires", "send_event")]
        held += [of(value=Descriptor()), of(__slots__=("value",)), of(map_field=classmethod(nothing))]
        held += [ResourceMeta("R", (Serializing, WithFields), {}), type("Heir", (of(serialize=nothing),), {})]
        without = of()
        without.fields = ("value",)
        for cls in (*held, without):
            with self.subTest(cls=vars(cls)):
                self.assertTrue(is_held(cls))


if __name__ == "__main__":
    unittest.main()
