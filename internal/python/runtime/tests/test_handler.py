"""How handlers run: the order of steps, what ends them, dependencies, reload, facts."""

import unittest
import uuid

from inmanta import const
from inmanta.agent import handler
from inmanta.agent.executor import AgentInstance
from inmanta.execute.util import Unknown
from inmanta.resources import Id, PurgeableResource, Resource, resource

State = const.HandlerResourceState


@resource("t::R", agent="agent", id_attribute="name")
class R(PurgeableResource):
    fields = ("agent", "name", "value", "many")


def res(**changed):
    attributes = dict(
        agent="a",
        name="n",
        value="new",
        many={"x": 1},
        purged=False,
        purge_on_delete=False,
        send_event=False,
        receive_events=True,
        report_only=False,
        references=[],
        mutators=[],
        requires=[],
        id="t::R[a,name=n],v=3",
    )
    return Resource.deserialize({**attributes, **changed})


class Recording(handler.CRUDHandler):
    """Says what was called; does what ``found`` says: a value, None for absence, or something to raise."""

    found = "old"
    reloads = False

    def __init__(self, agent):
        super().__init__(agent)
        self.calls = []

    def pre(self, ctx, resource):
        self.calls.append("pre")

    def post(self, ctx, resource):
        self.calls.append("post")

    def read_resource(self, ctx, resource):
        self.calls.append("read")
        if isinstance(self.found, BaseException):
            raise self.found
        if self.found is None:
            raise handler.ResourcePurged()
        resource.value = self.found

    def create_resource(self, ctx, resource):
        self.calls.append("create")
        ctx.set_created()

    def update_resource(self, ctx, changes, resource):
        self.calls.append(f"update {sorted(changes)}")
        ctx.set_updated()

    def delete_resource(self, ctx, resource):
        self.calls.append("delete")
        ctx.set_purged()

    def can_reload(self):
        return self.reloads

    def do_reload(self, ctx, resource):
        self.calls.append("reload")

    def facts(self, ctx, resource):
        return {"size": "3"}


class Handlers(unittest.TestCase):
    def setUp(self):
        self.agent = AgentInstance("a", uuid.uuid4())
        self.addCleanup(self.agent.close)

    def execute(self, found, dry_run=False, **changed):
        made = Recording(self.agent)
        made.found = found
        wanted = res(**changed)
        ctx = handler.HandlerContext(wanted, dry_run)
        made.execute(ctx, wanted, dry_run)
        return made.calls, ctx

    def test_the_four_ways(self):
        for found, changed, middle, change in (
            (None, {}, ["create"], "created"),
            ("old", {}, ["update ['value']"], "updated"),
            ("new", {}, [], "nochange"),
            ("new", {"purged": True}, ["delete"], "purged"),
            (None, {"purged": True}, [], "nochange"),
        ):
            with self.subTest(found=found, **changed):
                calls, ctx = self.execute(found, **changed)
                self.assertEqual(calls, ["pre", "read", *middle, "post"])
                self.assertEqual(ctx.change.value, change)
                self.assertIs(ctx.resource_state, State.deployed)

    def test_dry_run_and_report_only_stop_before_enforcing(self):
        calls, ctx = self.execute("old", dry_run=True)
        self.assertEqual(calls, ["pre", "read", "post"])
        self.assertIs(ctx.resource_state, State.dry)
        self.assertEqual((ctx.changes["value"].current, ctx.changes["value"].desired), ("old", "new"))
        calls, ctx = self.execute(None, report_only=True)
        self.assertEqual(calls, ["pre", "read", "post"])
        self.assertIs(ctx.resource_state, State.non_compliant)
        _, ctx = self.execute("new", report_only=True)
        self.assertIs(ctx.resource_state, State.deployed)

    def test_what_is_raised_becomes_the_state(self):
        for raised, state in (
            (handler.SkipResource("later"), State.skipped),
            (handler.SkipResourceForDependencies("later"), State.skipped_for_dependency),
            (RuntimeError("broken"), State.failed),
        ):
            calls, ctx = self.execute(raised)
            self.assertEqual(calls, ["pre", "read", "post"])
            self.assertIs(ctx.resource_state, state)
            self.assertIn(str(raised), ctx.logs[-1].msg)

    def test_the_desired_state_is_not_touched_by_reading(self):
        wanted = res()
        made = Recording(self.agent)
        made.execute(handler.HandlerContext(wanted), wanted)
        self.assertEqual(wanted.value, "new")

    def test_dependencies_decide(self):
        for state, expected in (
            (State.deployed, State.deployed),
            (State.failed, State.skipped_for_dependency),
            (State.skipped, State.skipped_for_dependency),
            (State.unavailable, State.skipped_for_dependency),
            (State.non_compliant, State.skipped_for_dependency),
            (State.dry, State.skipped_for_dependency),
        ):
            wanted = res()
            ctx = handler.HandlerContext(wanted)
            Recording(self.agent).deploy(ctx, wanted, {"t::R[a,name=m]": state})
            self.assertIs(ctx.resource_state, expected, state)

    def test_reload_when_a_dependency_changed(self):
        for reloads, changed, expected in ((True, True, True), (True, False, False), (False, True, False)):
            made, wanted = Recording(self.agent), res()
            made.reloads = reloads
            ctx = handler.HandlerContext(wanted)
            ctx.set("_dependency_changed", changed)
            made.deploy(ctx, wanted, {})
            self.assertEqual("reload" in made.calls, expected)

    def test_facts(self):
        made = Recording(self.agent)
        self.assertEqual(made.check_facts(handler.HandlerContext(res()), res()), {"size": "3"})
        self.assertEqual(made.calls, ["pre", "post"])

    def test_post_that_fails_is_told_and_no_more(self):
        class Clumsy(Recording):
            def post(self, ctx, resource):
                raise ValueError("slipped")

        wanted = res()
        ctx = handler.HandlerContext(wanted)
        Clumsy(self.agent).execute(ctx, wanted)
        self.assertIs(ctx.resource_state, State.deployed)
        self.assertIn("slipped", ctx.logs[-1].msg)

    def test_steps_of_a_resource_handler(self):
        class Stepwise(handler.ResourceHandler):
            def check_resource(self, ctx, resource):
                return resource.clone(value="old")

            def do_changes(self, ctx, resource, changes):
                ctx.set("done", dict(changes))
                ctx.set_updated()

        wanted = res()
        ctx = handler.HandlerContext(wanted)
        Stepwise(self.agent).execute(ctx, wanted)
        self.assertEqual(ctx.get("done"), {"value": {"current": "old", "desired": "new"}})
        ctx = handler.HandlerContext(wanted, True)
        Stepwise(self.agent).execute(ctx, wanted, dry_run=True)
        self.assertFalse(ctx.contains("done"))

    def test_discovery(self):
        class Finder(handler.DiscoveryHandler):
            def discover_resources(self, ctx, discovery_resource):
                return {"t::R[a,name=found]": {"size": 1}}

        wanted = res()
        ctx = handler.HandlerContext(wanted)
        Finder(self.agent).execute(ctx, wanted)
        self.assertEqual(ctx.get("_discovered"), {"t::R[a,name=found]": {"size": 1}})

    def test_awaitables_and_client(self):
        made = Recording(self.agent)

        async def answer():
            return 42

        self.assertEqual(made.run_sync(answer), 42)
        with self.assertRaisesRegex(ConnectionRefusedError, "get_version"):
            made.run_sync(lambda: made.get_client().get_version())
        with self.assertRaises(handler.HandlerNotAvailableException):
            made.get_file("00")

    def test_a_handler_may_have_any_method_of_its_own(self):
        def surprise(*args, **kwargs):
            raise AssertionError("nobody calls this")

        own = {
            name: surprise for name in ("_deploy", "_execute", "_guarded", "_after", "_steps", "_changes_of", "_work")
        }
        made, wanted = type("Own", (Recording,), own)(self.agent), res()
        ctx = handler.HandlerContext(wanted)
        made.deploy(ctx, wanted, {})
        self.assertEqual(made.calls, ["pre", "read", "update ['value']", "post"])
        self.assertIs(ctx.resource_state, State.deployed)

    def test_every_deployment_says_that_it_reads(self):
        told, wanted = [], res()
        Recording(self.agent).execute(handler.HandlerContext(wanted, reading=lambda: told.append(1)), wanted)
        self.assertEqual(told, [1])
        ctx = handler.HandlerContext(wanted)
        Recording(self.agent).execute(ctx, wanted)
        self.assertEqual(ctx.logs[0].msg, "Calling read_resource")


@resource("t::Shown", agent="agent", id_attribute="name")
class Shown(PurgeableResource):
    """One whose fields are not as they are set."""

    fields = ("agent", "name", "value")

    def populate(self, fields, force_fields=False):
        super().populate({**fields, "value": "populated"}, force_fields)


class Resources(unittest.TestCase):
    """What the executor works on is made of JSON."""

    def test_of_json_as_of_anything(self):
        values = {**res(requires=["t::R[a,name=m]"]).serialize()}
        made, same = Resource.of_json(Id.parse_id(values["id"]), values), Resource.deserialize(values)
        self.assertEqual(made.serialize(), same.serialize())
        self.assertEqual((made.requires, made.unknowns), (same.requires, set()))
        del values["send_event"], values["requires"]  # which may be missing
        self.assertEqual(
            Resource.of_json(Id.parse_id(values["id"]), values).serialize(), Resource.deserialize(values).serialize()
        )
        del values["many"]
        for make in (Resource.deserialize, lambda values: Resource.of_json(Id.parse_id(values["id"]), values)):
            with self.assertRaisesRegex(Exception, "does not have field many"):
                make(values)

    def test_a_class_that_makes_them_itself(self):
        values = {**res().serialize(), "id": "t::Shown[a,name=n],v=3"}
        self.assertEqual(Resource.of_json(Id.parse_id(values["id"]), values).value, "populated")
        with self.assertRaisesRegex(TypeError, "t::Nobody"):
            Resource.of_json(Id.parse_id("t::Nobody[a,name=n]"), {"id": "t::Nobody[a,name=n]"})

    def test_unknown_values_are_counted(self):
        self.assertEqual(res(value=Unknown(), many=Unknown()).unknowns, {"value", "many"})
        self.assertEqual(res(value=Unknown()).clone(many=1).unknowns, {"value"})

    def test_ids(self):
        name = Id.parse_id("a::b::C[agent-1,path=/x=y,z],v=12")
        self.assertEqual(
            (name.entity_type, name.agent_name, name.attribute, name.attribute_value, name.version),
            ("a::b::C", "agent-1", "path", "/x=y,z", 12),
        )
        self.assertEqual(
            (str(name), str(Id.parse_id("a::C[b,c=d]"))), ("a::b::C[agent-1,path=/x=y,z],v=12", "a::C[b,c=d]")
        )
        for wrong in ("a::C[b,c,d=e]", "a::C[b,c=d]e]", "a::C[b,c=d],v=", "C[b,c=d]", "a::C[,c=d]"):
            with self.assertRaises(ValueError, msg=wrong):
                Id.parse_id(wrong)

    def test_differences(self):
        made, wanted = Recording(None), res()
        current = wanted.clone(value=1)
        current.many = dict(wanted.many)  # another one, and equal
        self.assertEqual(made._diff(current, wanted), {"value": {"current": 1, "desired": "new"}})
        other = type(
            "Other", (), {**{name: getattr(wanted, name) for name in R.fields}, "many": 2}
        )()  # not even a resource
        self.assertEqual(made._diff(other, wanted), {"many": {"current": 2, "desired": {"x": 1}}})
        del current.__dict__["value"]
        with self.assertRaises(AttributeError):
            made._diff(current, wanted)


class Providers(unittest.TestCase):
    def test_the_last_one_wins(self):
        first = type("First", (Recording,), {})
        second = type("Second", (Recording,), {})
        handler.provider("t::Two", name="x")(first)
        handler.provider("t::Two", name="y")(second)
        self.assertIs(handler.Commander.get_provider_class("t::Two", "x"), second)
        with self.assertRaisesRegex(Exception, "t::R"):
            handler.Commander.get_provider(None, res())
