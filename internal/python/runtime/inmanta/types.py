"""Names for the types of plain values."""

from collections.abc import Mapping, Sequence
from typing import Any, Union

from inmanta._fallback import lacking

PrimitiveTypes = Union[str, int, float, bool, None]
SimpleTypes = Union[str, int, float, bool, None]
JsonType = dict[str, Any]
StrictJson = Union[dict[str, Any], list, str, int, float, bool, None]
ReturnTypes = Any
Apireturn = Any
ArgumentTypes = Any
StrictNonIntBool = bool
ResourceVersionIdStr = str
ResourceIdStr = str
ResourceType = str
DateTimeNormalizerModel = object
StrMapping = Mapping[str, object]
Values = Sequence[object]

__getattr__ = lacking(__name__)
