"""What handlers keep between resources, and for how long."""

import threading
import unittest
from unittest import mock

from inmanta.agent import cache as module
from inmanta.agent.cache import AgentCache
from inmanta.agent.handler import ResourceHandler, cache


class Clock:
    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


class Keeper(ResourceHandler):
    def __init__(self):
        super().__init__(None)
        self.made = []
        self.dropped = dropped

    @cache(ignore=["ticket"])
    def plain(self, key, ticket=None):
        self.made.append(key)
        return object()

    @cache(evict_after_creation=100, call_on_delete=lambda value: dropped.append(value))
    def aging(self, timeout):
        self.made.append(timeout)
        return timeout

    @cache(cache_none=False)
    def nothing(self):
        self.made.append(None)

    @cache
    def bare(self):
        return len(self.made)


dropped = []


class Caches(unittest.TestCase):
    def setUp(self):
        dropped.clear()
        self.clock = Clock()
        patch = mock.patch.object(module, "time", self.clock)
        patch.start()
        self.addCleanup(patch.stop)
        self.keeper = Keeper()

    def test_arguments_make_the_key_however_they_are_passed(self):
        one = self.keeper.plain("a", ticket=1)
        self.assertIs(self.keeper.plain(key="a", ticket=2), one)
        self.assertIsNot(self.keeper.plain("b"), one)
        self.assertEqual(self.keeper.made, ["a", "b"])

    def test_arguments_may_have_any_name(self):
        self.assertEqual(self.keeper.aging(timeout=5), 5)
        self.assertEqual(self.keeper.bare(), 1)

    def test_used_values_live_and_unused_ones_go(self):
        one = self.keeper.plain("a")
        for _ in range(5):
            self.clock.now += 50
            self.keeper.cache.clean_stale_entries()
            self.assertIs(self.keeper.plain("a"), one)
        self.clock.now += 61
        self.keeper.cache.clean_stale_entries()
        self.assertIsNot(self.keeper.plain("a"), one)

    def test_age_counts_from_creation(self):
        self.keeper.aging(1)
        self.clock.now += 99
        self.keeper.cache.clean_stale_entries()
        self.keeper.aging(1)
        self.clock.now += 2
        self.keeper.cache.clean_stale_entries()
        self.assertEqual(dropped, [1])
        self.keeper.aging(1)
        self.assertEqual(self.keeper.made, [1, 1])

    def test_nothing_is_evicted_under_a_handler(self):
        kept = AgentCache()
        with kept:
            kept.cache_value("k", 1)
            self.clock.now += 1000
            self.assertEqual(kept.find("k"), 1)
        self.assertEqual(kept.find("k"), 1)

    def test_none_is_kept_only_if_told(self):
        self.keeper.nothing()
        self.keeper.nothing()
        self.assertEqual(self.keeper.made, [None, None])

    def test_close_gives_everything_back_though_one_fails(self):
        def fail(value):
            raise OSError("gone already")

        kept = AgentCache()
        kept.cache_value("a", 1, call_on_delete=fail)
        kept.cache_value("b", 2, call_on_delete=dropped.append)
        with self.assertLogs("inmanta.agent.cache", "WARNING"):
            kept.close()
        self.assertEqual(dropped, [2])
        with self.assertRaises(KeyError):
            kept.find("a")

    def test_one_of_many_threads_makes_the_value(self):
        kept, made, gate = AgentCache(), [], threading.Barrier(8)

        def make():
            made.append(1)
            return object()

        def ask():
            gate.wait()
            values.append(kept.get_or_else("k", make))

        values = []
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual((len(made), len(set(map(id, values)))), (1, 1))
