"""Tells what PyYAML makes of texts, for the tests of this package.

It reads texts from standard input, one a line, in base64, and answers each with a line of JSON: what PyYAML raises,
[class, message], or the tree of nodes as text. With the argument `load` it is the values that it answers with.
"""

import base64
import datetime
import io
import json
import sys

import yaml

STYLES = {None: "plain", "'": "single", '"': "double", "|": "literal", ">": "folded"}
FLOWS = {True: "flow", False: "block", None: "indentless"}


class File(io.BytesIO):
    name = "project.yml"


def hexed(text):
    return text.encode("utf-8", "surrogatepass").hex()


def place(mark):
    return f"{mark.line + 1}:{mark.column + 1}"


def dump(node, out, seen):
    """Writes a node and what it holds, in the order of the text; what is there twice by its number."""
    if node is None:
        return
    if id(node) in seen:
        out.append(f"alias {seen[id(node)]}")
        return
    seen[id(node)] = len(seen)
    line = f"{place(node.start_mark)}-{place(node.end_mark)} {node.id} {hexed(node.tag)}"
    if isinstance(node, yaml.ScalarNode):
        out.append(f"{line} {STYLES[node.style]} {hexed(node.value)}")
        return
    pairs = isinstance(node, yaml.MappingNode)
    out.append(f"{line} {FLOWS[node.flow_style]} {len(node.value) * (2 if pairs else 1)}")
    for child in node.value:
        for n in child if pairs else (child,):
            dump(n, out, seen)


def value(v, out, within):
    """Writes a value; what is in a set is sorted, since Python has it in any order."""
    if id(v) in within:
        out.append("loop")
    elif isinstance(v, set):
        parts = []
        for e in v:
            part = []
            value(e, part, within)
            parts.append("\n".join(part))
        out.append(f"set {len(v)}")
        out.extend(sorted(parts))
    elif isinstance(v, (list, tuple)):
        out.append(f"{type(v).__name__} {len(v)}")
        for e in v:
            value(e, out, within | {id(v)})
    elif isinstance(v, dict):
        out.append(f"dict {len(v)}")
        for k, e in v.items():
            value(k, out, within)
            value(e, out, within | {id(v)})
    elif isinstance(v, str):
        out.append(f"str {hexed(v)}")
    elif isinstance(v, bytes):
        out.append(f"bytes {v.hex()}")
    elif isinstance(v, datetime.datetime):
        out.append(f"datetime {v.isoformat()}")
    elif isinstance(v, int) and not isinstance(v, bool):
        out.append(f"int {v:x}")
    else:
        out.append(f"{type(v).__name__} {v}")


def answer(data, load):
    stream = io.TextIOWrapper(File(data), encoding="utf-8")
    out = []
    try:
        if load:
            value(yaml.safe_load(stream), out, frozenset())
        else:
            dump(yaml.compose(stream, yaml.SafeLoader), out, {})
    except Exception as e:
        return [f"{type(e).__module__}.{type(e).__name__}", str(e)]
    return "\n".join(out)


def main():
    load = sys.argv[1:] == ["load"]
    for line in sys.stdin:
        print(json.dumps(answer(base64.b64decode(line), load)), flush=True)


if __name__ == "__main__":
    main()
