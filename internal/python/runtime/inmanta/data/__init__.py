"""Records of the server, as far as modules touch them, and how it reads settings."""

from typing import Union

from inmanta._fallback import lacking

_WORDS = {"1": True, "yes": True, "true": True, "on": True, "0": False, "no": False, "false": False, "off": False}


def convert_boolean(value: Union[bool, str]) -> bool:
    """A truth value, also one in words as configuration files have them."""
    if isinstance(value, bool):
        return value
    truth = _WORDS.get(value.lower())
    if truth is None:
        raise ValueError(f"Not a boolean: {value}")
    return truth


__getattr__ = lacking(__name__)
