"""Which dependency managers can be left alone."""

import functools
import unittest
from collections import defaultdict

from ordain_worker.managers import types_of


def ordered(model, resources):
    """Like that of std."""
    hosts = defaultdict(list)
    for _id, resource in resources.items():
        if resource.id.get_entity_type() == "m::File" or resource.id.get_entity_type() == "m::Folder":
            hosts[resource.model.host].append(resource)
    for host, files in hosts.items():
        for file in files:
            file.requires.add(host)


def by_key(model, resources):
    for key in resources:
        if key.entity_type in ("m::A", "m::B") and key.agent_name:
            resources[key].requires.clear()


def everything(model, resources):
    for resource in resources.values():
        resource.requires.clear()


def otherwise(model, resources):
    for resource in resources.values():
        if resource.id.get_entity_type() == "m::A":
            pass
        else:
            resource.requires.clear()


def unequal(model, resources):
    for resource in resources.values():
        if resource.id.get_entity_type() != "m::A":
            resource.requires.clear()


def either(model, resources):
    for resource in resources.values():
        if resource.id.get_entity_type() == "m::A" or resource.name == "x":
            resource.requires.clear()


def counting(model, resources):
    print(len(resources))


def of_another(model, resources):
    for resource in model.values():
        if resource.id.get_entity_type() == "m::A":
            resource.requires.clear()


def filled(model, resources):
    found = [1]
    for each in found:
        print(each)


def shadowing(model, resources):
    found = []
    for found, resource in resources.items():
        if found.entity_type == "m::A":
            pass
    for each in found:
        print(each)


def shadowing_a_call(model, resources):
    for list, resource in resources.items():
        if list.entity_type == "m::A":
            pass
    found = list()


def telling_all(model, resources):
    for key in resources:
        if key.entity_type == "m::A":
            global told
    told = []


def with_more(model, resources, *, more):
    for key in resources:
        if key.entity_type == "m::A":
            pass


def filling(model, resources):
    found = {}
    for found["x"] in resources:
        if found["x"].entity_type == "m::A":
            pass


@functools.wraps(by_key)
def wrapping(model, resources):
    print(len(resources))


class Managers(unittest.TestCase):
    def test_types(self) -> None:
        self.assertEqual(types_of(ordered), ["m::File", "m::Folder"])
        self.assertEqual(types_of(by_key), ["m::A", "m::B"])

    def test_what_cannot_be_told(self) -> None:
        unread = (len, lambda m, r: None, wrapping)
        with_names = (shadowing, shadowing_a_call, telling_all, with_more, filling)
        for manager in (everything, otherwise, unequal, either, counting, of_another, filled, *with_names, *unread):
            with self.subTest(manager=manager):
                self.assertIsNone(types_of(manager))


if __name__ == "__main__":
    unittest.main()
