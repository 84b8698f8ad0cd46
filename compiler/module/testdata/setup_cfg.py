"""Read texts, a list in JSON, as the reference reads a setup.cfg."""

import json
import os
import sys
import tempfile

from inmanta.module import InvalidMetadata, ModuleV2Metadata


def read(text: str) -> dict[str, object]:
    with open("setup.cfg", "w", encoding="utf-8", newline="") as f:
        f.write(text)
    try:
        with open("setup.cfg", encoding="utf-8") as f:
            m = ModuleV2Metadata.parse(f)
    except InvalidMetadata as e:
        return {"Text": text, "Error": str(e)}
    return {
        "Text": text,
        "Name": m.name,
        "Version": str(m.get_full_version()),
        "InstallRequires": m.install_requires or None,
        "Deprecated": bool(m.deprecated),
    }


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    json.dump([read(text) for text in json.load(sys.stdin)], sys.stdout)
    os.chdir("/")
