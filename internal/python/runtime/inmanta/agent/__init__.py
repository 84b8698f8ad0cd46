"""What handlers are written against."""

from inmanta._fallback import reach

reach(__name__)
