"""Frames over real pipes."""

import os
import select
import struct
import threading
import unittest

from inmanta.agent.executor import Worker
from ordain_worker import relay, switchboard
from ordain_worker.frames import Channel, Dialogue, Failure
from ordain_worker.relay import Seat
from ordain_worker.requests import Requests
from ordain_worker.switchboard import Switchboard


class Pipes(unittest.TestCase):
    def setUp(self):
        their_in, our_out = os.pipe()
        our_in, their_out = os.pipe()
        self.theirs = Channel(their_in, their_out)
        self.ours = Channel(our_in, our_out)
        self.our_out = our_out
        for fd in (their_in, our_in, their_out):
            self.addCleanup(os.close, fd)
        self.open = True
        self.addCleanup(self.hang_up)

    def hang_up(self):
        if self.open:
            os.close(self.our_out)
            self.open = False

    def test_there_and_back(self):
        for value in ({"op": "x", "args": "é\ud800\x00"}, {"op": "y", "args": [1.5, None, True, 10**30]}):
            self.ours.write(value)
            self.assertEqual(self.theirs.read(), value)

    def test_larger_than_the_pipe(self):
        value = {"op": "x", "args": "y" * 3_000_000}
        writer = threading.Thread(target=self.ours.write, args=(value,))
        writer.start()
        self.assertEqual(self.theirs.read(), value)
        writer.join()

    def test_end_between_and_inside_frames(self):
        os.write(self.our_out, struct.pack(">I", 100) + b"{}")
        self.hang_up()
        self.assertIsNone(self.theirs.read())
        self.assertIsNone(self.theirs.read())

    def test_absurd_length(self):
        os.write(self.our_out, b"\xff\xff\xff\xff")
        with self.assertRaises(Failure):
            self.theirs.read()

    def test_reply_that_is_no_json(self):
        circular = []
        circular.append(circular)
        for value in (object(), float("nan"), circular):
            self.theirs.reply(1, value)
            self.assertIn("message", self.ours.read()["err"])

    def test_dialogue_answers_while_it_waits(self):
        talk = Dialogue(self.theirs, lambda op, args: args + 1)
        self.ours.write({"id": 9, "op": "inc", "args": 41})
        self.ours.write({"re": 1, "ok": "done"})
        self.assertEqual(talk.ask("work", None), "done")
        self.assertEqual(self.ours.read(), {"id": 1, "op": "work", "args": None})
        self.assertEqual(self.ours.read(), {"re": 9, "ok": 42})

    def test_refusal_keeps_its_fields(self):
        talk = Dialogue(self.theirs, lambda op, args: None)
        self.ours.write({"re": 1, "err": {"kind": "unset", "class": "a.B", "message": "m", "line": 3}})
        with self.assertRaises(Failure) as caught:
            talk.ask("work", None)
        self.assertEqual((caught.exception.kind, caught.exception.cls, caught.exception.line), ("unset", "a.B", 3))
        self.assertIs(Failure.of(caught.exception), caught.exception)

    def test_switchboard_sorts_replies(self):
        board = Switchboard(self.theirs, lambda talk, op, args: talk.ask("name", args) + "!")
        threading.Thread(target=board.serve, kwargs={"beat": 1000}, daemon=True).start()
        for number in (1, 2):
            self.ours.write({"id": number, "op": "greet", "args": number})
        asked = [self.ours.read(), self.ours.read()]
        for question in reversed(asked):
            self.ours.write({"re": question["id"], "ok": f"caller {question['for']}"})
        replies = {frame["re"]: frame["ok"] for frame in (self.ours.read(), self.ours.read())}
        self.assertEqual(replies, {1: "caller 1!", 2: "caller 2!"})
        self.open = False  # closing the pipe would end this process: that is what workers do

    def test_a_held_frame_goes_before_the_next(self):
        for number in (1, 2):
            self.ours.hold('{"op":"log","args":%d}' % number)
        self.assertEqual(select.select([self.theirs.descriptors[0]], [], [], 0)[0], [])
        self.ours.reply(7, None)
        self.assertEqual(
            [self.theirs.read() for _ in range(3)],
            [{"op": "log", "args": 1}, {"op": "log", "args": 2}, {"re": 7, "ok": None}],
        )
        self.ours.send_held()
        self.assertEqual(select.select([self.theirs.descriptors[0]], [], [], 0)[0], [])

    def test_many_requests_are_read_at_once(self):
        requests = Requests(self.theirs.descriptors[0])
        self.assertEqual(requests.read(0), [])
        sent = [{"op": "x", "args": "y" * size} for size in (0, 1, 60_000, 500, 500_000, 3)]
        writer = threading.Thread(target=lambda: [self.ours.write(each) for each in sent])
        writer.start()
        got = []
        while len(got) < len(sent):
            got += requests.read(10)
        writer.join()
        self.assertEqual(got, sent)

    def test_requests_in_pieces(self):
        requests = Requests(self.theirs.descriptors[0])
        two = struct.pack(">I", 9) + b'{"op":1} ' + struct.pack(">I", 8) + b'{"op":2}'
        got = []
        for cut in range(1, len(two)):
            pieces = [two[:cut], two[cut:]]
            writer = threading.Thread(target=lambda: [os.write(self.our_out, piece) for piece in pieces])
            writer.start()
            got = []
            while len(got) < 2:
                got += requests.read(10)
            writer.join()
            self.assertEqual(got, [{"op": 1}, {"op": 2}], cut)
        os.write(self.our_out, two[:5])
        self.hang_up()
        self.assertIsNone(requests.read(10))

    def test_an_absurd_request(self):
        os.write(self.our_out, b"\xff\xff\xff\xff")
        with self.assertRaises(Failure):
            Requests(self.theirs.descriptors[0]).read()

    def test_a_held_frame_leaves_while_its_task_goes_on(self):
        gate = threading.Event()

        def work(talk, op, args):
            talk.notify_later("log", str(args))
            gate.wait()

        seats = {number: Seat(Worker(f"agent-{number}")) for number in (1, 2)}
        board = Switchboard(self.theirs, work, place=lambda op, args: seats[args])
        threading.Thread(target=board.serve, kwargs={"beat": 1000}, daemon=True).start()
        for number in (1, 2):
            self.ours.write({"id": number, "op": "work", "args": number})
            self.assertEqual(self.ours.read(), {"op": "log", "args": number, "for": number})
        gate.set()
        self.assertEqual({self.ours.read()["re"], self.ours.read()["re"]}, {1, 2})
        self.open = False

    def test_what_is_taken_back_does_not_begin(self):
        switchboard.LOOK, before = 0, switchboard.LOOK
        self.addCleanup(setattr, switchboard, "LOOK", before)
        relay.PATIENCE, patience = 1000, relay.PATIENCE
        self.addCleanup(setattr, relay, "PATIENCE", patience)
        seat, ran, began, go_on = Seat(Worker("agent")), [], threading.Event(), threading.Event()

        def work(talk, op, args):
            ran.append(args)
            began.set()
            go_on.wait()

        board = Switchboard(self.theirs, work, place=lambda op, args: seat)
        threading.Thread(target=board.serve, kwargs={"beat": 1000}, daemon=True).start()
        for number in range(1, 5):
            self.ours.write({"id": number, "op": "work", "args": number, "behind": number > 1})
        began.wait(10)
        self.ours.write({"id": 5, "op": "retract", "args": {"requests": [1, 3, 4]}})
        go_on.set()
        self.assertEqual(
            [self.ours.read() for _ in range(3)],
            [{"re": 1, "ok": None}, {"re": 5, "ok": {"back": [3, 4]}}, {"re": 2, "ok": None}],
        )
        self.assertEqual(ran, [1, 2])
        self.open = False

    def test_nothing_begins_behind_the_last_task_of_a_process(self):
        """Requests that the server sent before it read that reply, too."""
        seats = {name: Seat(Worker(name)) for name in "ab"}
        ran = []

        def work(talk, op, args):
            ran.append(args)
            talk.give_back()

        board = Switchboard(self.theirs, work, place=lambda op, args: seats[args])
        threading.Thread(target=board.serve, kwargs={"beat": 1000}, daemon=True).start()
        self.ours.write({"id": 1, "op": "work", "args": "a"})
        self.assertEqual(self.ours.read(), {"re": 1, "ok": None})
        for number, agent in ((2, "a"), (3, "a"), (4, "b")):
            self.ours.write({"id": number, "op": "work", "args": agent, "behind": True})
            self.assertEqual(self.ours.read(), {"re": number, "ok": {"withdrawn": True}})
        self.assertEqual(ran, ["a"])
        self.open = False

    def test_who_asks_back_does_not_keep_others_waiting(self):
        """The first task waits for a reply, and the one who read its request has to run it: somebody else reads on."""
        relay.PATIENCE, before = 1000, relay.PATIENCE  # nobody takes the lead from it
        self.addCleanup(setattr, relay, "PATIENCE", before)
        seats = {name: Seat(Worker(name)) for name in "ab"}
        threads = {}

        def work(talk, op, args):
            threads.setdefault(args, set()).add(threading.get_ident())
            return talk.ask("name", args) if op == "greet" else args

        board = Switchboard(self.theirs, work, place=lambda op, args: seats[args])
        threading.Thread(target=board.serve, kwargs={"beat": 1000}, daemon=True).start()
        for number in range(1, 400, 4):
            self.ours.write({"id": number, "op": "greet", "args": "a"})
            self.ours.write({"id": number + 1, "op": "tell", "args": "a"})
            self.ours.write({"id": number + 2, "op": "tell", "args": "b"})
            asked, replies = None, {}
            while "b" not in replies.values() or asked is None:
                frame = self.ours.read()
                if "re" in frame:
                    replies[frame["re"]] = frame["ok"]
                else:
                    asked = frame
            self.assertEqual(replies, {number + 2: "b"})  # what is for the same agent waits
            self.ours.write({"re": asked["id"], "ok": "A"})
            after = [self.ours.read() for _ in range(2)]
            self.assertEqual(after, [{"re": number, "ok": "A"}, {"re": number + 1, "ok": "a"}])
        self.assertEqual([len(each) for each in threads.values()], [1, 1])  # each agent has one thread
        self.open = False


class Described(unittest.TestCase):
    def test_exceptions_that_cannot_be_shown(self):
        class Mute(Exception):
            def __str__(self):
                raise RuntimeError("no words")

        try:
            raise Mute()
        except Mute as exc:
            failure = Failure.of(exc)
        self.assertIn("RuntimeError", failure.message)
        self.assertTrue(failure.cls.endswith("Mute"))
        self.assertTrue(failure.file.endswith("test_frames.py"))
