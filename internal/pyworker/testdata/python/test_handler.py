"""How handlers run: the order of steps, what ends them, dependencies, reload, facts."""

import unittest
import uuid

from inmanta import const
from inmanta.agent import handler
from inmanta.agent.executor import AgentInstance
from inmanta.resources import PurgeableResource, Resource, resource

State = const.HandlerResourceState


@resource("t::R", agent="agent", id_attribute="name")
class R(PurgeableResource):
    fields = ("agent", "name", "value", "many")


def res(**changed):
    attributes = dict(
        agent="a", name="n", value="new", many={"x": 1}, purged=False, purge_on_delete=False, send_event=False,
        receive_events=True, report_only=False, references=[], mutators=[], requires=[], id="t::R[a,name=n],v=3",
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


class Providers(unittest.TestCase):
    def test_the_last_one_wins(self):
        first = type("First", (Recording,), {})
        second = type("Second", (Recording,), {})
        handler.provider("t::Two", name="x")(first)
        handler.provider("t::Two", name="y")(second)
        self.assertIs(handler.Commander.get_provider_class("t::Two", "x"), second)
        with self.assertRaisesRegex(Exception, "t::R"):
            handler.Commander.get_provider(None, res())
