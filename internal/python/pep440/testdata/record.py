"""Record anew what packaging makes of the texts in requirements.jsonl.

Each line there is a requirement and its normal form, or null where packaging refuses it.
It was recorded with packaging 26.3:

    python -m venv venv && venv/bin/pip install packaging==26.3 && venv/bin/python record.py
"""

import json
import pathlib

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name


def read(text: str) -> str | None:
    try:
        r = Requirement(text)
    except InvalidRequirement:
        return None
    r.name = canonicalize_name(r.name)
    return str(r)


path = pathlib.Path(__file__).parent / "requirements.jsonl"
lines = []
for line in path.read_text(encoding="utf-8").splitlines():
    text, _ = json.loads(line)
    lines.append(json.dumps([text, read(text)]) + "\n")
path.write_text("".join(lines), encoding="utf-8")
