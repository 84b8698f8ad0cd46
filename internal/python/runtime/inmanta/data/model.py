"""Shapes of data that the server and modules exchange."""

import dataclasses
from typing import Any

from inmanta._fallback import lacking

ResourceIdStr = str
ResourceVersionIdStr = str
ResourceType = str


class BaseModel:
    """A record that can be turned into a dict."""

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)  # type: ignore[call-overload]

    def model_dump(self, **_: object) -> dict[str, Any]:
        return self.to_dict()


@dataclasses.dataclass
class AttributeStateChange(BaseModel):
    """What a handler found beside what is desired."""

    current: Any = None
    desired: Any = None


@dataclasses.dataclass
class Event(BaseModel):
    """That a resource changed, for those that need it."""

    resource_id: str = ""
    change: str = "nochange"


__getattr__ = lacking(__name__)
