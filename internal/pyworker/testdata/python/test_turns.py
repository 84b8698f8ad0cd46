"""Who runs when, among the threads of agents."""

import threading
import time
import unittest

from ordain_worker import turns
from ordain_worker.turns import Turns


class Order(unittest.TestCase):
    def test_short_tasks_follow_each_other(self):
        taking, most, inside = Turns(), [], []

        def work():
            inside.append(1)
            most.append(len(inside))
            time.sleep(0)  # lets go of the interpreter
            inside.pop()

        turns.PATIENCE, before = 10, turns.PATIENCE
        try:
            threads = [threading.Thread(target=lambda: [taking.take(work) for _ in range(50)]) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            turns.PATIENCE = before
        self.assertEqual((len(most), max(most)), (200, 1))

    def test_nobody_waits_for_a_long_one(self):
        """Each of these waits for all the others to be there: one at a time they would never end."""
        taking, together = Turns(), threading.Barrier(20)
        threads = [threading.Thread(target=taking.take, args=(lambda: together.wait(30),)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertFalse(together.broken)

    def test_a_task_that_raises_gives_its_turn_back(self):
        taking, done = Turns(), []

        def fail():
            raise ValueError

        turns.PATIENCE, before = 10, turns.PATIENCE
        try:
            with self.assertRaises(ValueError):
                taking.take(fail)
            taking.take(lambda: done.append(taking._open_until))
        finally:
            turns.PATIENCE = before
        self.assertEqual(done, [0.0])  # it did not have to wait


if __name__ == "__main__":
    unittest.main()
