"""What handlers report: lines, changes, states."""

import logging
import unittest

from inmanta import const
from inmanta.agent.handler import HandlerContext, InvalidOperation, PythonLogger
from inmanta.resources import Id


class Res:
    id = Id.parse_id("t::R[a,name=n],v=3")


class Context(unittest.TestCase):
    def setUp(self):
        self.ctx = HandlerContext(Res())

    def last(self):
        return self.ctx.logs[-1]

    def test_message_has_its_values(self):
        self.ctx.info("%(count)d of %(what)s, 100%% sure", count=3, what={"a": 1})
        self.assertEqual(self.last().msg, "3 of {'a': 1}, 100% sure")
        self.assertEqual(self.last().kwargs, {"count": 3, "what": {"a": 1}})
        self.assertIs(self.last().level, const.LogLevel.INFO)

    def test_message_that_does_not_fit_is_kept(self):
        for msg, kwargs in (("100% fun", {}), ("no %(such)s", {"a": 1}), ("%d", {"a": 1})):
            self.ctx.warning(msg, **kwargs)
            self.assertEqual(self.last().msg, msg)

    def test_values_become_json(self):
        class Rude:
            def __str__(self):
                raise ValueError("no")

        self.ctx.debug("x", raw=b"y", none=None, nan=float("nan"), many={1}, rude=Rude(), key={(1, 2): 3})
        kwargs = self.last().kwargs
        self.assertEqual(kwargs["raw"], "b'y'")
        self.assertEqual(kwargs["nan"], "nan")
        self.assertEqual(kwargs["many"], [1])
        self.assertIn("ValueError", kwargs["rude"])
        self.assertEqual(kwargs["key"], "{(1, 2): 3}")

    def test_exception_carries_its_trace(self):
        try:
            raise KeyError("gone")
        except KeyError:
            self.ctx.exception("sorry")
        self.assertIn("KeyError: 'gone'", self.last().kwargs["traceback"])
        self.assertIs(self.last().level, const.LogLevel.ERROR)

    def test_changes_in_all_their_forms(self):
        self.ctx.add_change("a", desired=1)
        self.ctx.add_changes(b=2, c={"desired": 1})
        self.ctx.fields_updated("d")
        self.ctx.fields_updated("a")
        self.ctx.update_changes({"e": {"current": 1, "desired": 2}, "f": (3, 4)})
        found = {name: (change.current, change.desired) for name, change in self.ctx.changes.items()}
        expected = {
            "a": (None, 1),
            "b": (None, 2),
            "c": (None, {"desired": 1}),
            "d": (None, None),
            "e": (1, 2),
            "f": (3, 4),
        }
        self.assertEqual(found, expected)
        with self.assertRaises(InvalidOperation):
            self.ctx.update_changes({"g": (1, 2, 3)})

    def test_one_change_only(self):
        self.ctx.set_created()
        self.assertTrue(self.ctx.changed)
        with self.assertRaises(InvalidOperation):
            self.ctx.set_updated()

    def test_states(self):
        with self.assertRaises(InvalidOperation):
            self.ctx.set_resource_state(const.HandlerResourceState.non_compliant)
        self.ctx.set_resource_state(const.HandlerResourceState.skipped_for_dependency)
        self.assertIs(self.ctx.status, const.ResourceState.skipped)
        self.ctx.set_status(const.ResourceState.deployed)
        self.assertIs(self.ctx.resource_state, const.HandlerResourceState.deployed)
        self.ctx.set_status(const.ResourceState.cancelled)
        self.assertIs(self.ctx.resource_state, const.HandlerResourceState.failed)

    def test_facts_and_notes(self):
        self.ctx.set_fact("ip", "::1", expires=False)
        self.assertEqual(self.ctx.facts[0]["resource_id"], "t::R[a,name=n]")
        self.ctx.set("k", 1)
        self.assertTrue(self.ctx.contains("k"))
        self.assertEqual(self.ctx.get("k"), 1)

    def test_python_logger(self):
        with self.assertLogs("some.where", "INFO") as seen:
            PythonLogger(logging.getLogger("some.where")).info("hi %(who)s", who="you")
        self.assertEqual(seen.records[0].getMessage(), "hi you")
