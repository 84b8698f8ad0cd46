"""Resource classes, ids, and the way from exported attributes back to a resource."""

import unittest
import uuid

from inmanta import resources
from inmanta.references import Mutator, Reference, mutator, reference
from inmanta.resources import Id, ManagedResource, PurgeableResource, Resource, resource


class Logger:
    def debug(self, *args: object, **kwargs: object) -> None:
        pass


@resource("model::R", agent="agent", id_attribute="name")
class R(PurgeableResource):
    fields = ("name", "v", "d")


@reference("t::Const")
class Const(Reference[str]):
    resolved = 0

    def __init__(self, value: object, more: object = None) -> None:
        super().__init__()
        self.value = value
        self.more = more

    def resolve(self, logger: object) -> object:
        type(self).resolved += 1
        return self.resolve_other(self.value, logger)


def exported(**fields: object) -> dict[str, object]:
    return {
        "id": "model::R[a,name=n],v=3",
        "name": "n",
        "v": None,
        "d": None,
        "purged": False,
        "purge_on_delete": False,
        **fields,
    }


class Fields(unittest.TestCase):
    def test_bases_come_first_and_each_field_once(self) -> None:
        class A(PurgeableResource):
            fields = ("z", "name")

        class B(A, ManagedResource):
            fields = ("b", "z")

        self.assertEqual(
            B.fields,
            ("send_event", "receive_events", "references", "mutators", "report_only")
            + ("purged", "purge_on_delete", "z", "name", "managed", "b"),
        )

    def test_names_that_are_refused(self) -> None:
        for name in ("id", "requires", "_hidden"):
            with self.subTest(name), self.assertRaises(resources.ResourceException):
                type("X", (Resource,), {"fields": (name,)}).validate()

    def test_fields_must_be_a_list(self) -> None:
        with self.assertRaises(Exception):
            type("X", (Resource,), {"fields": "name"})


class Ids(unittest.TestCase):
    def test_round_trip(self) -> None:
        for text, version in (("a::b::C[ho st,k=va,l=u e]", 0), ("a::B[x,y=z],v=3", 3)):
            parsed = Id.parse_id(text)
            self.assertEqual(str(parsed), text)
            self.assertEqual(parsed.version, version)
        self.assertEqual(Id.parse_id("a::b::C[h,k=v]").get_inmanta_module(), "a")
        self.assertEqual(Id.set_version_in_id("a::B[x,y=z],v=3", 4), "a::B[x,y=z],v=4")

    def test_what_is_no_id(self) -> None:
        for text in ("", "a::B", "B[x,y=z]", "a::B[x,y=z,v=4", "a::B[x,y=z],v=", "a::B[,y=z]"):
            with self.subTest(text), self.assertRaises(ValueError):
                Id.parse_id(text)
        for parts in (("a,b", "k", "v"), ("a", "k=", "v"), ("a", "k", "v]")):
            with self.subTest(parts), self.assertRaises(ValueError):
                Id("model::R", *parts)


class Deserialize(unittest.TestCase):
    def test_round_trip(self) -> None:
        made = Resource.deserialize(exported(v=5, requires=["model::R[a,name=m]"]))
        self.assertIsInstance(made, R)
        self.assertEqual((made.v, made.receive_events, made.send_event), (5, True, False))
        self.assertEqual([str(each) for each in made.requires], ["model::R[a,name=m]"])
        copy = made.clone(v=6)
        self.assertEqual((copy.v, made.v, str(copy.id)), (6, 5, "model::R[a,name=n],v=3"))

    def test_missing_field(self) -> None:
        fields = exported()
        del fields["v"]
        with self.assertRaisesRegex(Exception, "does not have field v"):
            Resource.deserialize(fields)

    def test_unknown_type(self) -> None:
        with self.assertRaisesRegex(TypeError, "t::Nope"):
            Resource.deserialize(exported(id="t::Nope[a,name=n],v=3"))


class References(unittest.TestCase):
    def test_ids_are_those_of_the_reference_implementation(self) -> None:
        @reference("t::Env")
        class Env(Reference[str]):
            def __init__(self, name: object, d: object = None) -> None:
                super().__init__()
                self.name = name
                self.d = d

        plain = Env("a")
        self.assertEqual(plain.serialize().id, uuid.UUID("5a096caa-b4ac-3d80-a0b7-e2b0585d755a"))
        nested = Env(plain, d={"a": [1, plain], "b'c": plain, "k": {"x.y": 1}})
        self.assertEqual(nested.serialize().id, uuid.UUID("7357f255-ac1c-3081-a63d-2f8ad878cc01"))
        self.assertEqual(Env("q", d=[1, {"u": None}]).serialize().id, uuid.UUID("12febf5b-075b-37fa-aa2f-6d9edb1a81e2"))
        self.assertIs(Env.get_reference_type(), str)

    def test_values_are_put_in_place_once(self) -> None:
        Const.resolved = 0
        inner = Const("secret")
        outer = Const(inner)
        from inmanta.references import ResourceCollector

        made_id = Id("model::R", "a", "name", "n")
        collector = ResourceCollector(made_id)
        value = collector.clean({"it's": outer, "l": ["x", inner]}, "d")
        self.assertEqual(value, {"it's": None, "l": ["x", None]})
        made = Resource.deserialize(
            exported(d=value, references=collector.exported_references(), mutators=collector.exported_mutators())
        )
        copy = made.clone()
        made.resolve_all_references(Logger())
        self.assertEqual(made.d, {"it's": "secret", "l": ["x", "secret"]})
        made.resolve_all_references(Logger())
        copy.resolve_all_references(Logger())
        self.assertEqual(copy.d, {"it's": "secret", "l": ["x", "secret"]})
        self.assertEqual(Const.resolved, 2)

    def test_references_inside_arguments(self) -> None:
        from inmanta.references import ResourceCollector

        collector = ResourceCollector(Id("model::R", "a", "name", "n"))
        collector.clean(Const("x", more={"k.k": [Const("y")]}), "v")
        made = Resource.deserialize(
            exported(references=collector.exported_references(), mutators=collector.exported_mutators())
        )
        made.resolve_all_references(Logger())
        self.assertEqual(made.v, "x")

    def test_cycle(self) -> None:
        from inmanta.references import ReferenceCycleException

        a = Const(None)
        b = Const(a)
        a.value = b
        with self.assertRaises(ReferenceCycleException):
            a.serialize()

    def test_unregistered(self) -> None:
        described = {"id": str(uuid.uuid4()), "type": "t::Absent", "args": []}
        replace = {
            "type": "core::Replace",
            "args": [
                {"type": "resource", "name": "resource", "id": "model::R[a,name=n]"},
                {"type": "reference", "name": "value", "id": described["id"]},
                {"type": "literal", "name": "destination", "value": "v"},
            ],
        }
        made = Resource.deserialize(exported(references=[described], mutators=[replace]))
        with self.assertRaisesRegex(TypeError, "t::Absent"):
            made.resolve_all_references(Logger())

    def test_mutator_of_a_module(self) -> None:
        @mutator("t::Upper")
        class Upper(Mutator):
            def __init__(self, resource: object) -> None:
                super().__init__()
                self.resource = resource

            def run(self, logger: object) -> None:
                self.resource.v = self.resource.v.upper()

        made = Resource.deserialize(
            exported(
                v="x",
                mutators=[
                    {"type": "t::Upper", "args": [{"type": "resource", "name": "resource", "id": "model::R[a,name=n]"}]}
                ],
            )
        )
        made.resolve_all_references(Logger())
        self.assertEqual(made.v, "X")

    def test_is_no_boolean(self) -> None:
        with self.assertRaises(NotImplementedError):
            bool(Const("x"))
