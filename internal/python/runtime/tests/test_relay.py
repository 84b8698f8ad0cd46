"""In which order the threads of agents run, and which of them reads."""

import os
import queue
import threading
import time
import unittest

from inmanta.agent.executor import Worker
from ordain_worker import relay
from ordain_worker.relay import Relay, Seat


class Bench:
    """A relay that reads requests from a queue."""

    def __init__(self, slow=lambda: None):
        self.requests = queue.SimpleQueue()
        self.readers = set()
        self.reading = threading.Semaphore()
        self.relay = Relay(self.read, slow)
        threading.Thread(target=self.relay.run, daemon=True).start()

    def read(self, seconds):
        if not self.reading.acquire(blocking=False):
            raise AssertionError("two threads read")
        try:
            self.readers.add(threading.current_thread().name)
            came = [self.requests.get(timeout=seconds)]
            while not self.requests.empty():
                came.append(self.requests.get())
        except queue.Empty:
            return False
        finally:
            self.reading.release()
        for seat, work in came:
            self.relay.give(seat, work)
        return True

    def send(self, seat, work):
        self.requests.put((seat, work))

    def wait(self, seats):
        """Wait until all that was sent is done."""
        for seat in seats:
            done = threading.Event()
            self.send(seat, done.set)
            if not done.wait(30):
                raise AssertionError("the requests are not read any more")


def seats(count):
    return [Seat(Worker(f"agent-{number}")) for number in range(count)]


class Order(unittest.TestCase):
    def setUp(self):
        for name in ("PATIENCE", "OPEN"):
            self.addCleanup(setattr, relay, name, getattr(relay, name))

    def test_short_tasks_follow_each_other(self):
        relay.PATIENCE = 10
        bench, all_of_them, most, inside, threads = Bench(), seats(4), [], [], {}

        def work(seat):
            inside.append(1)
            most.append(len(inside))
            threads.setdefault(seat, set()).add(threading.current_thread().name)
            time.sleep(0)  # lets go of the interpreter
            inside.pop()

        for number in range(400):
            seat = all_of_them[number * 7 % 4]
            bench.send(seat, lambda seat=seat: work(seat))
        bench.wait(all_of_them)
        self.assertEqual((len(most), max(most)), (400, 1))
        self.assertEqual({seat: {f"agent-{n}"} for n, seat in enumerate(all_of_them)}, threads)
        self.assertIn("agent-1", bench.readers)  # who runs reads on

    def test_nobody_waits_for_one_that_always_has_something_to_do(self):
        relay.PATIENCE = 10
        bench, (busy, other), done, ran = Bench(), seats(2), threading.Event(), []

        def work():  # each is followed by another one, until the other agent has had its turn
            ran.append(1)
            if not done.is_set() and len(ran) < 100 * relay.TURN:
                bench.relay.give(busy, work)

        def first():
            bench.relay.give(busy, work)
            bench.relay.give(other, done.set)

        bench.send(busy, first)
        self.assertTrue(done.wait(30))
        bench.wait([busy])
        self.assertLess(len(ran), 3 * relay.TURN)

    def test_nobody_waits_for_a_long_one(self):
        """Each of these waits for all the others to be there: one at a time they would never end."""
        bench, all_of_them, together = Bench(), seats(20), threading.Barrier(20)
        for seat in all_of_them:
            bench.send(seat, lambda: together.wait(30))
        bench.wait(all_of_them)
        self.assertFalse(together.broken)

    def test_what_is_for_one_agent_keeps_its_order(self):
        """Long ones among short ones, which take the lead from their thread again and again."""
        bench, all_of_them, seen, long_ones = Bench(), seats(3), {}, []

        def work(seat, number):
            if number % 50 == 0:
                gate = threading.Event()
                long_ones.append(gate)
                gate.wait(0.01)
            seen.setdefault(seat, []).append(number)

        for number in range(600):
            seat = all_of_them[number // 2 % 3]
            bench.send(seat, lambda seat=seat, number=number: work(seat, number))
        bench.wait(all_of_them)
        for n, seat in enumerate(all_of_them):
            self.assertEqual(seen[seat], [number for number in range(600) if number // 2 % 3 == n])
        self.assertEqual([seat.apart for seat in all_of_them], [0, 0, 0])

    def test_one_that_takes_its_time_and_what_waits_for_it_keep_nobody(self):
        relay.OPEN = 0  # the lead is handed on at once after it was taken
        slow, gate, began, free = threading.Event(), threading.Event(), threading.Event(), []
        bench, (one, other) = Bench(slow=slow.set), seats(2)

        def first():  # what it sends is read by its own thread, together
            for work in (lambda: None, lambda: began.set() or gate.wait(30), lambda: free.append(gate.is_set())):
                bench.send(one, work)

        bench.send(one, first)
        self.assertTrue(began.wait(30) and slow.wait(30))
        bench.send(one, lambda: free.append(gate.is_set()))
        bench.wait([other])
        gate.set()
        bench.wait([one])
        self.assertEqual(free, [True, True])

    def test_one_that_takes_its_time_is_told_of(self):
        told = threading.Event()
        bench, (one,) = Bench(slow=told.set), seats(1)
        bench.send(one, lambda: self.assertTrue(told.wait(30)))
        bench.wait([one])
        self.assertTrue(told.is_set())

    def test_a_task_that_raises_is_not_the_last(self):
        bench, (one,), said = Bench(), seats(1), []

        def fail():
            raise ValueError("as the test wants it")

        hook, relay.traceback = relay.traceback, type("Said", (), {"print_exc": lambda: said.append(1)})
        try:
            bench.send(one, fail)
            bench.wait([one])
        finally:
            relay.traceback = hook
        self.assertEqual(said, [1])

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_copy_of_the_process_reads_nothing(self):
        bench, (one,), told = Bench(), seats(1), os.pipe()
        parent, children = os.getpid(), []

        def fork():
            child = os.fork()
            if child:
                children.append(child)

        def tell():
            os.write(told[1], b"p" if os.getpid() == parent else b"c")
            if os.getpid() != parent:
                os._exit(0)

        original = one.thread._run

        def run():  # a copy goes back to waiting for work, which is where it ends here
            try:
                original()
            finally:
                os._exit(3)

        one.thread._run = run
        relay.PATIENCE = 10
        get = one.thread._waiting.get
        one.thread._waiting = type(
            "Waiting", (), {"put": one.thread._waiting.put, "get": lambda _: get() if os.getpid() == parent else None}
        )()
        for work in (fork, tell, tell):
            one.todo.append(work)
        bench.send(one, lambda: None)
        bench.wait([one])
        _, status = os.waitpid(children[0], 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 3)
        self.assertEqual(os.read(told[0], 10), b"pp")


if __name__ == "__main__":
    unittest.main()
