"""The API of handlers."""

from inmanta._fallback import reach

reach(__name__)
