"""What CPython's re and str know of each character: writes characters.json.

    python3.13 characters.py > characters.json

Sets of characters are lists of first and last ones in turn. What is matched
without regard to case is asked of re itself: for each letter with a case, the
letters that match it, as a literal and as a range of one in a set, with (?i).
"""

import json
import re
import sys


def ranges(chars):
    out = []
    for c in chars:
        if out and out[-1] == c - 1:
            out[-1] = c
        else:
            out += [c, c]
    return out


def all_that(pattern):
    compiled = re.compile(pattern)
    return ranges(c for c in range(sys.maxunicode + 1) if compiled.match(chr(c)))


cased = [c for c in range(sys.maxunicode + 1) if len({chr(c), chr(c).lower(), chr(c).upper(), chr(c).title()}) > 1]
others = [[c, [d for d in cased if d != c and compiled.match(chr(d))]] for c in cased for compiled in [re.compile("(?i)" + re.escape(chr(c)))]]
ranged = [[c, [d for d in cased if d != c and compiled.match(chr(d))]] for c in cased for compiled in [re.compile(f"(?i)[{chr(c)}-{chr(c)}]")]]
json.dump(
    {
        r"\w": all_that(r"\w"),
        r"\d": all_that(r"\d"),
        r"\s": all_that(r"\s"),
        "identifier": ranges(c for c in range(sys.maxunicode + 1) if chr(c).isidentifier()),
        "a identifier": ranges(c for c in range(sys.maxunicode + 1) if ("a" + chr(c)).isidentifier()),
        "printable": ranges(c for c in range(sys.maxunicode + 1) if chr(c).isprintable()),
        "alpha": ranges(c for c in range(sys.maxunicode + 1) if chr(c).isalpha()),
        "same": [row for row in others if row[1]],
        "same in sets": [b for a, b in zip(others, ranged) if a != b],
        "cased": ranges(cased),
    },
    sys.stdout,
    separators=(",", ":"),
)
