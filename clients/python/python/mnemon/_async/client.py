"""The client: the generated methods on a transport."""

from __future__ import annotations

import os

from ..errors import InvalidError
from .operations import AsyncOperations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping
    from types import TracebackType
    from typing import Any, Literal, Protocol

    from .. import models
    from .._local import Embed

    class AsyncTransport(Protocol):
        """How operations reach a store. The names and fields are those of the HTTP API."""

        async def call(
            self,
            operation: str,
            fields: Mapping[str, Any],
            *,
            timeout: float | None = None,
            progress: Callable[[dict[str, Any]], object] | None = None,
            body: bytes | None = None,
        ) -> Any: ...

        def changes(self, fields: Mapping[str, Any], *, timeout: float | None = None) -> AsyncIterator[Any]: ...

        def lines(
            self, operation: str, fields: Mapping[str, Any], *, timeout: float | None = None
        ) -> AsyncIterator[Any]: ...

        async def aclose(self) -> None: ...


class AsyncMnemon(AsyncOperations):
    """A memory: on a server, or in this process.

    `store` is the address of a server (`http://127.0.0.1:8750`), or a store to be opened in this
    process: a path, `sqlite:PATH` or `postgres://…`.

    `key` is the key of the server, where one is needed, and `ca` a file with the authorities of its
    certificate, if not those of the system. `timeout` is the limit of one attempt in seconds, and
    `retries` says how often a request that failed is repeated, where that is safe.

    `tenant` and `config` are for a store in this process: whose records are used (a key decides that
    on a server), and a file `mnemon.toml`. Without one, the defaults apply, and neither variables nor
    files of the working folder are read.

    `embed` makes the vectors of a store in this process: a function that takes a list of texts and
    returns a list with a vector or None for each. `embed_model` names its model; vectors of the same
    model are compared with each other. Without `dimensions`, the length of its vectors, it is called
    once to learn it. It must not use this client. If it fails, records are found by their words, an
    answer has a notice, and the log has the exception; `reembed` makes vectors that are missing.

    The methods have the names of the operations, and return dictionaries as in `mnemon.models`,
    with times as `datetime`.
    """

    def __init__(
        self,
        store: str | os.PathLike[str] = "http://127.0.0.1:8750",
        *,
        key: str | None = None,
        timeout: float = 30.0,
        retries: int = 2,
        ca: str | os.PathLike[str] | None = None,
        tenant: str | None = None,
        config: str | os.PathLike[str] | None = None,
        embed: Embed | None = None,
        embed_model: str | None = None,
        dimensions: int | None = None,
        transport: AsyncTransport | None = None,
    ) -> None:
        place = os.fspath(store)
        if embed is None and (embed_model is not None or dimensions is not None):
            raise InvalidError("is missing: `embed_model` and `dimensions` describe it", field="embed")
        if transport is not None:
            self._transport = transport
        elif place.startswith(("http://", "https://")):
            if embed is not None:
                message = "is for a store in this process: a server has `embedder` in its mnemon.toml"
                raise InvalidError(message, field="embed")
            from .http import AsyncHttpTransport

            self._transport = AsyncHttpTransport(place, key=key, timeout=timeout, retries=retries, ca=ca)
        else:
            from .._local import embedder_of
            from .local import AsyncLocalTransport

            file = None if config is None else os.fspath(config)
            embedder = None if embed is None else embedder_of(embed, embed_model, dimensions)
            self._transport = AsyncLocalTransport(place, tenant=tenant, config=file, embedder=embedder)

    async def __aenter__(self) -> AsyncMnemon:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, or the store."""
        await self._transport.aclose()

    async def import_(
        self,
        records: Iterable[models.MemoryRecord | Mapping[str, Any]],
        *,
        on_conflict: Literal["fail", "skip", "replace"] | None = None,
        progress: Callable[[dict[str, Any]], object] | None = None,
        timeout: float | None = None,
    ) -> models.Imported:
        """Import records that an export wrote, as one commit.

        Args:
            records: The records.
            on_conflict: Action if a different record has the same id; `fail` by default.
            progress: Called with the numbers of records that are `done`.
            timeout: Limit of one attempt in seconds.
        """
        from .. import _form

        body = b"".join(_form.to_json(record) + b"\n" for record in records)
        fields = {"on_conflict": on_conflict}
        return await self._call("import", fields, timeout, progress=progress, body=body)

    async def _call(
        self,
        operation: str,
        fields: dict[str, Any],
        timeout: float | None,
        *,
        progress: Callable[[dict[str, Any]], object] | None = None,
        body: bytes | None = None,
    ) -> Any:
        from .. import _form

        answer = await self._transport.call(operation, fields, timeout=timeout, progress=progress, body=body)
        return _form.with_dates(answer, _form.operation(operation).answer)

    async def _pages(
        self,
        operation: str,
        fields: dict[str, Any],
        items: str,
        cursor: str,
        timeout: float | None,
        *,
        backwards: bool = False,
    ) -> AsyncIterator[Any]:
        while True:
            page = await self._call(operation, fields, timeout)
            for item in reversed(page[items]) if backwards else page[items]:
                yield item
            if page.get("next") is None:
                return
            fields[cursor] = page["next"]

    async def _stream(self, operation: str, fields: dict[str, Any], timeout: float | None) -> AsyncIterator[Any]:
        from .. import _form

        if operation == "changes":
            source, model = self._transport.changes(fields, timeout=timeout), "change"
        else:
            source, model = self._transport.lines(operation, fields, timeout=timeout), "record"
        try:
            async for value in source:
                yield _form.with_dates(value, model)
        finally:
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()
