"""Read requirements, a list in JSON, as packaging does."""

import json
import sys

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name


def read(text: str) -> dict[str, str]:
    try:
        r = Requirement(text)
        r.name = canonicalize_name(r.name)
        return {"Text": text, "Canonical": str(r), "Error": ""}
    except InvalidRequirement as e:
        return {"Text": text, "Canonical": "", "Error": str(e)}


json.dump([read(text) for text in json.load(sys.stdin)], sys.stdout)
