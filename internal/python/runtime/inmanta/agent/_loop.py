"""An event loop for the awaitables of all handlers, in a thread of its own."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Optional, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: Optional[asyncio.AbstractEventLoop] = None


def running() -> asyncio.AbstractEventLoop:
    """Return the loop, which is started on first use."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="ordain-loop", daemon=True).start()
        return _loop


def run_sync(make: Callable[[], Awaitable[T]]) -> T:
    """Wait for the awaitable that make returns. It is called and awaited on the loop."""

    async def call() -> T:
        return await make()

    return asyncio.run_coroutine_threadsafe(call(), running()).result()
