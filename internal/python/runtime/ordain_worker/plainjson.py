"""Values as plain JSON, as a server would get them."""

import json
from math import isfinite
from typing import Any

from inmanta.resources import Id
from inmanta.util import api_boundary_json_encoder


def plain(value: Any, name: str, id: Id) -> Any:
    """The value as plain JSON. For a value that has none, the error names the place."""
    if _is_plain(value):
        return value
    try:
        # By way of text, because that is what the server would get.
        return json.loads(json.dumps(value, default=api_boundary_json_encoder, allow_nan=False))
    except (TypeError, ValueError) as exc:
        from inmanta._noted import noted

        raise noted(
            TypeError(str(exc)),
            f"it is the value of field {name} of {id}, which has to be JSON",
        ) from exc


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return True
    if kind is float:
        return isfinite(value)
    if kind is list:
        return all(_is_plain(each) for each in value)
    if kind is dict:
        return all(type(key) is str and _is_plain(each) for key, each in value.items())
    return False
