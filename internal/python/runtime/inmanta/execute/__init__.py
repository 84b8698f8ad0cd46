"""Values of the model as Python code sees them."""

from inmanta._fallback import reach

reach(__name__)
