"""Sockets, threads and sleep of asyncio. `mnemon._sync.io` has the same with blocking calls."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")

READ_SIZE = 256 * 1024


class Stream:
    """A connection. Deadlines are times of `time.monotonic`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, host: str, port: int, tls: ssl.SSLContext | None, deadline: float) -> Stream:
        return cls(*await _within(asyncio.open_connection(host, port, ssl=tls, limit=READ_SIZE), deadline))

    async def write(self, data: bytes, deadline: float) -> None:
        self._writer.write(data)
        await _within(self._writer.drain(), deadline)

    async def read(self, deadline: float) -> bytes:
        """The next bytes; none at the end."""
        return await _within(self._reader.read(READ_SIZE), deadline)

    def is_stale(self) -> bool:
        """Whether the server has closed it, or sent something that nobody asked for."""
        unread = getattr(self._reader, "_buffer", b"")
        return bool(unread) or self._reader.at_eof() or self._writer.is_closing()

    def close(self) -> None:
        try:
            self._writer.close()
        except RuntimeError:
            # Its event loop is closed, and the socket with it.
            pass


async def _within(work: Awaitable[T], deadline: float) -> T:
    return await asyncio.wait_for(work, max(0.0, deadline - time.monotonic()))


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def run(function: Callable[..., T], *arguments: Any) -> T:
    """Run a blocking function in a thread, so that the event loop goes on."""
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


def place() -> object:
    """Where connections can be used: in one event loop."""
    return asyncio.get_running_loop()


# asyncio of Python 3.10 has a class of its own for it.
TIMEOUTS: tuple[type[BaseException], ...] = (TimeoutError, asyncio.TimeoutError)
