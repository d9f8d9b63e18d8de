"""The transport to a store in this process: the routes of the server, without a connection."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable

from .. import _form, _local
from ..errors import InvalidError, UnsupportedError
from . import io
from .http import AsyncHttpTransport, Connection


class AsyncLocalTransport(AsyncHttpTransport):
    """Requests to a store that this process has opened.

    Limits of time do not apply: an operation that has begun is carried out.
    """

    def __init__(
        self,
        store: str,
        *,
        tenant: str | None = None,
        config: str | None = None,
        embedder: _local.Embedder | None = None,
    ) -> None:
        super().__init__("http://localhost", retries=0)
        self._store = _local.open_store(store, tenant, config, embedder)
        self._process = os.getpid()

    async def _begin(self, request: _form.Request, accept: str, deadline: float, limit: float) -> Connection:
        if self._closed:
            raise InvalidError("the client was closed")
        if self._process != os.getpid():
            raise UnsupportedError("this store was opened before a fork: open stores only after the fork")
        _form.check_headers(request.headers)
        headers = [("accept", accept), *request.headers.items()]
        answer = await io.run(self._store.request, request.method, request.target, headers, request.body)
        connection = _Answer(answer)
        if connection.status != 200:
            raise await self._refusal(connection, deadline)
        return connection

    async def aclose(self) -> None:
        self._closed = True
        if self._process == os.getpid():
            await io.run(self._store.close)


class _Answer(Connection):
    """An answer of the store."""

    def __init__(self, answer: _local.NativeAnswer) -> None:
        self._answer = answer
        self.status = answer.status
        self.headers = dict(answer.headers)
        self.done = False

    @property
    def reusable(self) -> bool:
        return False

    def close(self) -> None:
        self._answer.close()

    async def body(self, deadline: Callable[[], float]) -> AsyncIterator[bytes]:
        del deadline
        while part := await io.run(self._answer.read):
            yield part
        self.done = True
