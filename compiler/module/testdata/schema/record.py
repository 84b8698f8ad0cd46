"""Records what inmanta-core's models say of values: cases.json, for schema_test.go.

Run it with an interpreter that has inmanta-core:  python record.py > cases.json
"""

import datetime
import json
import random
import re
import warnings

import pydantic
from inmanta.module import ModuleV1Metadata, ProjectMetadata

UTC = datetime.timezone.utc
CEST = datetime.timezone(datetime.timedelta(hours=2))
SCALARS = [
    None, True, False, 0, 1, 2, -1, 10**30, 0.0, 1.0, 5.0, 1.5, -0.0, 1e300, float("inf"), float("nan"),
    "", " ", "yes", "OFF", "t", "a", "a.b", "1.2.3", "é" * 30, "a" * 48, "a" * 49, "é" * 24 + "aé" * 3, "it's", 'say "x"', "\n\t\x00\x7f",
    b"\xff", b"yes", b"1", b"1.5", b"1_0", b" 12 ", b"1.0", b"x", b"'", "git", "package", "release", "==", "~=",
    "a::B.c before a::D.e", "  a.b   before c.d ", "a.b before", "joe@example.com", "Joe <joe@example.com>", "joe", "joe@localhost",
    datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 1, 2, 3, 4), datetime.datetime(2020, 1, 1, tzinfo=UTC),
    datetime.datetime(2020, 1, 1, 10, 0, 5, tzinfo=CEST),
]


def some(rand: random.Random, depth: int = 0) -> object:
    """One value, of those that a YAML file can give."""
    kind = rand.random()
    if depth > 2 or kind < 0.6:
        return rand.choice(SCALARS)
    items = [some(rand, depth + 1) for _ in range(rand.randint(0, 3))]
    if kind < 0.75:
        return items
    if kind < 0.78:
        return tuple(items)
    if kind < 0.8:
        return {"a"} if rand.random() < 0.5 else set()
    keys = ["a", "b.c", 1, 1.5, True, None, datetime.date(2020, 1, 1), b"k", b"\xff", "url", "type", "index_url", "pre"]
    return {rand.choice(keys): item for item in items}


def encode(value: object) -> object:
    """A value with its type, for JSON."""
    name = type(value).__name__
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return {"int": str(value)}
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, bytes):
        return {"bytes": list(value)}
    if isinstance(value, (list, tuple, set)):
        return {name: [encode(v) for v in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(k), encode(v)] for k, v in value.items()]}
    return {"other": [name, repr(value), str(value)]}


def main() -> None:
    warnings.simplefilter("ignore")
    rand = random.Random(4)
    said: dict[str, int] = {}
    for _ in range(3000):
        model = rand.choice([ProjectMetadata, ProjectMetadata, ModuleV1Metadata])
        raw = {"name": "x"} if model is ProjectMetadata else {"name": "x", "version": "1.0", "license": "x"}
        for field in rand.sample(list(model.model_fields), rand.choice([1, 1, 1, 2, 3])):
            raw[field] = some(rand)
            if field == "pip" and rand.random() < 0.9:
                pip = ["index_url", "index-url", "extra_index_url", "extra-index-url", "pre", "use_system_config", "use-system-config"]
                raw[field] = {rand.choice(pip): some(rand)}
            if field == "repo" and rand.random() < 0.6:
                raw[field] = [{"type": rand.choice(["git", some(rand)]), **({"url": some(rand)} if rand.random() < 0.8 else {})}]
        if rand.random() < 0.02:
            raw.pop(rand.choice(list(raw)))
        try:
            model(**raw)
            says = ""
        except pydantic.ValidationError as e:
            says = str(e)
        except Exception:
            continue  # Python stumbles before the schema is asked
        # Of texts that are alike one is enough; of values that fit, some more.
        like = re.sub(r"input_value=.*|[0-9]+|got .*", "", says)
        if said.setdefault(like, 0) < (1 if says else 150):
            said[like] += 1
            print(json.dumps({"model": model.__name__, "raw": encode(raw), "says": says}))


main()
