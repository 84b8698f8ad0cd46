"""Options of the process in which handlers run."""

import os
import tempfile

from inmanta._fallback import lacking
from inmanta.config import Option, is_str

state_dir: "Option[str]" = Option(
    "config",
    "state-dir",
    lambda: os.path.join(tempfile.gettempdir(), f"inmanta-agent-{os.getuid()}"),
    "The folder in which handlers keep files between deployments",
    is_str,
)

__getattr__ = lacking(__name__)
