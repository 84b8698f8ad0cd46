"""One task: its secrets, its limits, its output."""

import gc
import json
import io
import threading
import unittest
import uuid
import weakref

from ordain_worker import tasks
from ordain_worker.frames import Failure
from ordain_worker.tasks import Files, Masks, Task


class Talk:
    """A conversation that remembers."""

    def __init__(self, answers=None):
        self.notices = []
        self.answers = answers or {}

    def notify(self, op, args, most=0, soon=True):
        self.notices.append((op, args))
        return len(json.dumps(args))

    def ask(self, op, args):
        return self.answers[op](args)


def task():
    talk = Talk()
    args = {"id": "t::R[a,name=n],v=3", "action": "deploy", "action_id": str(uuid.uuid4())}
    return talk, Task(talk, args)


def messages(talk):
    return [args["msg"] for _, args in talk.notices]


class Secrets(unittest.TestCase):
    def test_every_form_of_a_secret_is_masked(self):
        masks = Masks()
        masks.learn({"user": "root", "password": 'pa"ss\nword', "pin": 123456, "list": [b"bytes!"]})
        for text in ('pa"ss\nword', 'x pa\\"ss\\nword y', repr('pa"ss\nword'), "word", "123456", "bytes!", "root"):
            masked = masks.text(text)
            self.assertIn("***", masked, text)
            for part in ('pa"', 'pa\\"', "word", "1234", "bytes"):
                self.assertNotIn(part, masked)
        self.assertEqual(
            masks.value({"a": [123456, "x"], "root": 1, "b": True}), {"a": ["***", "x"], "***": 1, "b": True}
        )

    def test_short_values_do_not_destroy_the_log(self):
        masks = Masks()
        masks.learn(["1", "", "abc", True, None, 0])
        self.assertEqual(masks.text("1 abc True None 0"), "1 abc True None 0")

    def test_longest_first(self):
        masks = Masks()
        masks.learn(["pass", "password"])
        self.assertEqual(masks.text("password pass"), "*** ***")

    def test_a_field_that_was_filled_is_masked_whole(self):
        masks = Masks()
        masks.fields = {"pin"}
        changes = {"pin": {"current": 1, "desired": 2}, "size": {"current": 1, "desired": 2}}
        expected = {"pin": {"current": "***", "desired": "***"}, "size": {"current": 1, "desired": 2}}
        self.assertEqual(masks.changes(changes), expected)
        self.assertEqual(
            masks.kwargs({"changes": changes, "pin": 3, "x": 4}), {"changes": expected, "pin": "***", "x": 4}
        )


class Limits(unittest.TestCase):
    def test_lines(self):
        talk, one = task()
        for number in range(tasks.MAX_LINES + 10):
            one.ctx.info("line")
        one.settle()
        self.assertEqual(len(talk.notices), tasks.MAX_LINES + 2)
        self.assertIn("10 more log lines", messages(talk)[-1])
        self.assertIn("did not say", messages(talk)[-2])
        self.assertEqual(one.status(), "failed")  # nobody said how it went

    def test_bytes(self):
        talk, one = task()
        for _ in range(100):
            one.ctx.info("x" * 200_000)
        one.settle()
        self.assertLess(sum(map(len, messages(talk))), tasks.MAX_BYTES + 2 * tasks.MAX_TEXT)

    def test_output_of_this_thread_only(self):
        talk, one = task()
        real = io.StringIO()
        out = tasks._Output("stdout", real)
        with one:
            out.write("half ")
            out.write("a line\nand another")
            other = threading.Thread(target=lambda: print("elsewhere", file=out))
            other.start()
            other.join()
        print("afterwards", file=out)
        one.settle()
        self.assertEqual(messages(talk)[:2], ["half a line", "and another"])
        self.assertEqual(real.getvalue(), "elsewhere\nafterwards\n")

    def test_a_task_is_gone_when_it_is_over(self):
        """Without a collection of garbage: there would be one for every few tasks."""
        gc.disable()
        self.addCleanup(gc.enable)
        talk, one = task()
        with one:
            self.assertIs(one.files, one.files)
            one.ctx.info("line")
        self.assertIsNone(one.files)
        one.settle()
        one.end()
        known = weakref.ref(one), weakref.ref(one.ctx)
        del one
        self.assertEqual([ref() for ref in known], [None, None])

    def test_a_line_without_end(self):
        talk, one = task()
        with one:
            out = tasks._Output("stderr", io.StringIO())
            for _ in range(1000):
                out.write("x" * 10_000)
        one.settle()
        self.assertLess(len(messages(talk)[0]), tasks.MAX_PRINTED_LINE + 100)


class FileStore(unittest.TestCase):
    def test_large_files_come_in_parts(self):
        import base64

        content = bytes(range(256)) * 100

        def part(args):
            piece = content[args["offset"] : args["offset"] + 1000]
            return {"size": len(content), "data": base64.b64encode(piece).decode()}

        self.assertEqual(Files(Talk({"file": part})).get("x"), content)
        self.assertEqual(Files(Talk({"file": lambda _: {"size": 0, "data": ""}})).get("x"), b"")

    def test_a_file_that_ends_early(self):
        with self.assertRaises(Failure):
            Files(Talk({"file": lambda _: {"size": 10, "data": ""}})).get("x")

    def test_missing_and_refused(self):
        def refuse(kind):
            def answer(args):
                raise Failure("no", kind=kind)

            return answer

        self.assertIsNone(Files(Talk({"file": refuse("not found")})).get("x"))
        with self.assertRaises(Failure):
            Files(Talk({"file": refuse("unavailable")})).get("x")

    def test_upload_checks_the_hash(self):
        store = Files(Talk({"put_file": lambda _: "right"}))
        store.put("right", b"x")
        with self.assertRaises(ValueError):
            store.put("wrong", b"x")
