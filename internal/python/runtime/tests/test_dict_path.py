"""Paths into nested dicts and lists."""

import copy
import unittest

from inmanta.util import dict_path

TREE = {
    "a": {"b": 1, "c.d": 2, "*": 9},
    "l": [{"k": "x", "v": 1}, {"k": "y", "v": 2, "m": None}, {"k": "3", "v": 3}, {"k": 3}],
    "e": [],
}


class Read(unittest.TestCase):
    def test_get_element(self) -> None:
        for path, want in {
            "a.b": 1,
            r"a.c\.d": 2,
            r"a.\*": 9,
            "l[k=x]": {"k": "x", "v": 1},
            "l[k=y].v": 2,
            r"l[k=y][m=\0].v": 2,
            ".": TREE,
            ".a.b": 1,
        }.items():
            with self.subTest(path):
                self.assertEqual(dict_path.to_path(path).get_element(TREE), want)

    def test_nothing_or_too_much(self) -> None:
        for path in ("zz", "a.zz", "l[k=zz]", "l[k=3]", "e[k=1]"):
            with self.subTest(path):
                with self.assertRaises(KeyError):
                    dict_path.to_path(path).get_element(TREE)
                self.assertEqual(dict_path.to_path(path).get_elements(TREE), [])

    def test_wild(self) -> None:
        for path, want in {
            "a.*": [1, 2, 9],
            "l[k=*].v": [1, 2, 3],
            "l[*=x].v": [1],
            "l[k=3]": [{"k": "3", "v": 3}, {"k": 3}],
        }.items():
            with self.subTest(path):
                self.assertEqual(dict_path.to_wild_path(path).get_elements(TREE), want)
        resolved = [str(each) for each in dict_path.to_wild_path("l[k=*].v").resolve_wild_cards(TREE)]
        self.assertEqual(resolved, ["l[k=x].v", "l[k=y].v", "l[k=3].v"])

    def test_what_is_no_path(self) -> None:
        for path in ("", "[", "l[]", "[k=v]", "a=b", "l[k=x=y]", "a.*", "a*", "*[k=v]", r"a\b", "l]"):
            with self.subTest(path), self.assertRaises(dict_path.InvalidPathException):
                dict_path.to_path(path)

    def test_what_nothing_closes_separates(self) -> None:
        for path in ("a[b", "a[b[", "[a.b\\"):
            with self.subTest(path):
                self.assertEqual(dict_path.to_path(path).get_element(TREE), TREE["a"]["b"])
        self.assertEqual(
            dict_path.to_path("l[k=x][v").get_element(TREE), dict_path.to_path("l[k=x].v").get_element(TREE)
        )


class Write(unittest.TestCase):
    def changed(self, path: str, value: object, **options: bool) -> object:
        tree = copy.deepcopy(TREE)
        dict_path.to_path(path).set_element(tree, value, **options)
        return tree

    def test_set_element(self) -> None:
        self.assertEqual(self.changed("a.new.deep", 7)["a"]["new"], {"deep": 7})
        self.assertEqual(self.changed("l[k=new].v", 7)["l"][-1], {"k": "new", "v": 7})
        self.assertEqual(self.changed("l[k=x]", {"k": "x"})["l"][0], {"k": "x"})
        with self.assertRaises(KeyError):
            self.changed("a.new.deep", 7, construct=False)

    def test_remove(self) -> None:
        tree = copy.deepcopy(TREE)
        dict_path.to_path("l[k=x]").remove(tree)
        dict_path.to_path("a.b").remove(tree)
        dict_path.to_path("not.there").remove(tree)
        self.assertEqual(len(tree["l"]), 3)
        self.assertNotIn("b", tree["a"])

    def test_text(self) -> None:
        self.assertEqual(str(dict_path.InDict("a.b*")), r"a\.b\*")
        self.assertEqual(str(dict_path.KeyedList("r", [("k", "v]=."), ("n", r"\0")])), r"r[k=v\]\=\.][n=\0]")
        self.assertEqual(str(dict_path.to_path("a.b") + dict_path.to_path("c[k=v]")), "a.b.c[k=v]")
        self.assertEqual(dict_path.to_path("a.b"), dict_path.to_path("a.b"))
