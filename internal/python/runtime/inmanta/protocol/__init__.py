"""Clients of the server."""

from inmanta._fallback import lacking
from inmanta.protocol.common import Result
from inmanta.protocol.endpoints import Client, SyncClient

__all__ = ["Client", "Result", "SyncClient"]

__getattr__ = lacking(__name__)
