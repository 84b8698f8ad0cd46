"""What handlers ask of the server with a client."""

import asyncio
import base64
import hashlib
import threading
import unittest
import uuid

from inmanta.agent import _loop
from inmanta.const import ParameterSource
from inmanta.protocol import Client, SyncClient, endpoints
from ordain_worker import calls
from ordain_worker.frames import Failure
from ordain_worker.tasks import Masks, Task


class Store:
    """A conversation with a server that has a few files."""

    def __init__(self, *contents):
        self.files = {hashlib.sha1(content).hexdigest(): content for content in contents}

    def ask(self, op, args):
        if op == "call":
            self.called = args
            return {"code": 0 if args["name"] == "release_version" else 200, "body": {"data": args}}
        if op == "put_file":
            content = base64.b64decode(args["data"])
            name = hashlib.sha1(content).hexdigest()
            self.files[name] = content
            return name
        if op == "stat_file":
            return args["hash"] in self.files
        if args["hash"] == "broken":
            raise Failure("the database is away", kind="unavailable")
        if args["hash"] not in self.files:
            raise Failure("no such file", kind="not found")
        content = self.files[args["hash"]]
        return {"size": len(content), "data": base64.b64encode(content).decode()}


def working(store, masks=Masks()):
    return Task(store, {"action": "deploy", "action_id": "", "id": "lab::Thing[a,name=x]"}, masks)


HELLO = hashlib.sha1(b"hello").hexdigest()


class Calls(unittest.TestCase):
    def setUp(self):
        endpoints.answer_with(calls.answer, waits=True)
        self.addCleanup(endpoints.answer_with, None)
        self.client = SyncClient("agent")
        self.store = Store(b"hello")

    def answering(self):
        return working(self.store)

    def test_a_file_by_position_and_by_name(self):
        with self.answering():
            for result in (self.client.get_file(HELLO), self.client.get_file(id=HELLO)):
                self.assertEqual((result.code, base64.b64decode(result.result["content"])), (200, b"hello"))

    def test_what_is_not_there(self):
        with self.answering():
            self.assertEqual(self.client.get_file("nope").code, 404)
            self.assertIn("nope", self.client.get_file("nope").result["message"])
            self.assertEqual([self.client.stat_file(id=name).code for name in (HELLO, "nope")], [200, 404])

    def test_an_upload(self):
        name = hashlib.sha1(b"new").hexdigest()
        with self.answering():
            self.assertEqual(self.client.upload_file(id=name, content=base64.b64encode(b"new").decode()).code, 200)
            self.assertEqual(self.store.files[name], b"new")
            self.assertEqual(self.client.upload_file(HELLO, base64.b64encode(b"other").decode()).code, 400)
            self.assertEqual(self.client.upload_file(HELLO, "***").code, 400)

    def test_trouble_of_the_server_is_an_answer(self):
        with self.answering():
            result = self.client.get_file("broken")
        self.assertEqual(result.code, 500)
        self.assertIn("the database is away", result.result["message"])

    def test_other_calls_are_refused(self):
        with self.answering():
            with self.assertRaisesRegex(ConnectionRefusedError, "release_version"):
                self.client.release_version(tid="x")
            with self.assertRaisesRegex(TypeError, "upload_file needs content"):
                self.client.upload_file(HELLO)

    def test_calls_that_the_server_answers(self):
        with self.answering():
            result = self.client.set_param(
                uuid.UUID(int=1), "state", source=ParameterSource.fact, value="x", recompile=True
            )
        self.assertEqual(result.code, 200)
        self.assertEqual(
            self.store.called,
            {
                "name": "set_param",
                "positional": ["00000000-0000-0000-0000-000000000001", "state"],
                "named": {"source": "fact", "value": "x", "recompile": True},
            },
        )

    def test_a_secret_is_not_stored(self):
        masks = Masks()
        masks.learn("hunter2")
        name = hashlib.sha1(b"it is hunter2").hexdigest()
        with working(self.store, masks):
            for result in (
                self.client.set_param(tid="e", id="state", source="fact", value="it is hunter2"),
                self.client.set_parameters("e", [{"id": "state", "value": {"deep": ["hunter2"]}}]),
                self.client.upload_file(name, base64.b64encode(b"it is hunter2").decode()),
            ):
                self.assertIn(result.code, (400, 403))
                self.assertIn("not stored", result.result["message"])
            self.assertFalse(hasattr(self.store, "called"))
            self.assertNotIn(name, self.store.files)
            self.assertEqual(self.client.get_param("e", "hunter2").code, 200)

    def test_awaited_on_the_loop_of_all_handlers(self):
        with self.answering():
            result = _loop.run_sync(lambda: Client("agent").get_file(HELLO))
        self.assertEqual(result.code, 200)

    def test_each_thread_asks_for_its_own_task(self):
        other = Store(b"other")
        meet = threading.Barrier(2)
        codes = {}

        def work(name, store):
            with working(store):
                meet.wait(10)
                codes[name] = self.client.stat_file(HELLO).code
                meet.wait(10)

        threads = [threading.Thread(target=work, args=each) for each in (("own", self.store), ("other", other))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(codes, {"own": 200, "other": 404})

    def test_nobody_asks_after_the_task(self):
        with self.assertRaisesRegex(ConnectionRefusedError, "get_file"):
            self.client.get_file(HELLO)
        ended = threading.Event()

        async def late():
            await asyncio.to_thread(ended.wait, 10)
            return await Client("agent").get_file(HELLO)

        with self.answering():
            left = asyncio.run_coroutine_threadsafe(late(), _loop.running())
        ended.set()
        with self.assertRaisesRegex(ConnectionRefusedError, "while it does"):
            left.result(10)
