"""Blocking sockets and sleep. `mnemon._async.io` has the same for asyncio."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import ssl

T = TypeVar("T")

READ_SIZE = 256 * 1024


class Stream:
    """A connection. Deadlines are times of `time.monotonic`."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    @classmethod
    def connect(cls, host: str, port: int, tls: ssl.SSLContext | None, deadline: float) -> Stream:
        connection = socket.create_connection((host, port), timeout=_left(deadline))
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                connection.settimeout(_left(deadline))
                connection = tls.wrap_socket(connection, server_hostname=host)
        except BaseException:
            connection.close()
            raise
        return cls(connection)

    def write(self, data: bytes, deadline: float) -> None:
        self._socket.settimeout(_left(deadline))
        self._socket.sendall(data)

    def read(self, deadline: float) -> bytes:
        """The next bytes; none at the end."""
        self._socket.settimeout(_left(deadline))
        return self._socket.recv(READ_SIZE)

    def is_stale(self) -> bool:
        """Whether the server has closed it, or sent something that nobody asked for."""
        try:
            if hasattr(select, "poll"):
                # select cannot watch file descriptors above 1023.
                poll = select.poll()
                poll.register(self._socket, select.POLLIN)
                return bool(poll.poll(0))
            return bool(select.select([self._socket], [], [], 0)[0])
        except (OSError, ValueError):
            return True

    def close(self) -> None:
        self._socket.close()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def run(function: Callable[..., T], *arguments: Any) -> T:
    return function(*arguments)


def place() -> object:
    """Where connections can be used: anywhere in this process."""
    return None


TIMEOUTS: tuple[type[BaseException], ...] = (TimeoutError,)
