"""The few JSON paths that exported references use.

    path := ["$"] step*        step := .name | .'quoted name' | [number]

The first name may stand without its dot: ``content``, ``data.'a b'[3]``.
"""

import re
from typing import Any, Union

_STEP = re.compile(
    r"\.?(?:'((?:\\.|[^'\\])*)'|\"((?:\\.|[^\"\\])*)\"|([^.\[\]'\"]+))|\[(-?\d+)\]|\[['\"]([^'\"]*)['\"]\]"
)


def below(path: str, key: str) -> str:
    """The path of a key below a path."""
    escaped = key.replace("'", "\\'")
    return f"{path}.'{escaped}'"


def parse(path: str) -> list[Union[str, int]]:
    """The steps of a path."""
    steps: list[Union[str, int]] = []
    at = 1 if path.startswith("$") else 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or found.end() == at:
            raise ValueError(f"{path!r} is not a path that references use: cannot read it from {path[at:]!r}")
        single, double, plain, index, bracket = found.groups()
        if index is not None:
            steps.append(int(index))
        elif single is not None:
            steps.append(single.replace("\\'", "'"))
        elif double is not None:
            steps.append(double.replace('\\"', '"'))
        else:
            steps.append(plain if plain is not None else bracket)
        at = found.end()
    return steps


def replace(root: Any, path: str, value: object) -> None:
    """Set what path names in root, a container or a resource."""
    steps = parse(path)
    if not steps:
        raise ValueError(f"{path!r} names no place in a value")
    target = root
    for step in steps[:-1]:
        target = target[step]
    target[steps[-1]] = value
