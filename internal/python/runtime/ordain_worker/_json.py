"""JSON of frames, from the accelerators of the package json, because importing the
package takes longer than most plug-ins run. If the interpreter lacks the
accelerators, the package is used.
"""

try:
    import _json

    def _refuse(name: str) -> object:
        raise ValueError(f"{name} is not JSON")

    class _Decoder:
        strict = True
        object_hook = None
        object_pairs_hook = None
        parse_float = float
        parse_int = int
        parse_constant = staticmethod(_refuse)
        memo: dict = {}  # type: ignore[type-arg]

    _scan = _json.make_scanner(_Decoder())

    def _odd(value: object) -> object:
        raise TypeError(f"a {type(value).__name__} is not JSON")

    _iterencode = _json.make_encoder(None, _odd, _json.encode_basestring_ascii, None, ":", ",", False, False, False)

    def decode(body: bytes) -> object:
        try:
            return _scan(body.decode(), 0)[0]
        except StopIteration as end:
            raise ValueError(f"not JSON from {end.value} on") from None

    def encode(value: object) -> str:
        return "".join(_iterencode(value, 0))

except (ImportError, AttributeError, TypeError):
    import json

    decode = json.loads
    encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode
