"""CrewAI: the storage of its memory.

    from crewai.memory.unified_memory import Memory
    from mnemon import Mnemon
    from mnemon.crewai import MnemonStorage

    storage = MnemonStorage(Mnemon("memory.db"))
    memory = Memory(storage=storage, embedder=storage.embedder)
    memory.remember("Ann drinks green tea", scope="/ann", categories=["taste"], importance=0.5)
    memory.recall("Who drinks tea?", depth="shallow")

CrewAI searches with the vector of a question. Mnemon searches by words and meaning and needs the question
itself, so `embedder` makes vectors that only identify their texts. No key of a provider is needed.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from crewai.memory.types import MemoryRecord, ScopeInfo

from . import Mnemon
from ._records import Writer, digest, find, find_by_tags, forget_by_tags, record

# A search returns at most this many hits.
HITS = 1000
DIMENSIONS = 32
# Texts whose vectors are recognised. A vector is used right after it was made.
KNOWN_TEXTS = 10_000


class TextVectors:
    """Makes a vector of a text from which the text can be found again, in this process."""

    def __init__(self) -> None:
        self._texts: OrderedDict[tuple[float, ...], str] = OrderedDict()
        self._guard = threading.Lock()

    def __call__(self, input: list[str]) -> list[list[float]]:
        return [self._vector(text) for text in input]

    def _vector(self, text: str) -> list[float]:
        hashed = hashlib.blake2b(text.encode(), digest_size=DIMENSIONS).digest()
        vector = [(byte - 127.5) / 127.5 for byte in hashed]
        with self._guard:
            self._texts[tuple(vector)] = text
            self._texts.move_to_end(tuple(vector))
            while len(self._texts) > KNOWN_TEXTS:
                self._texts.popitem(last=False)
        return vector

    def text(self, vector: list[float]) -> str:
        with self._guard:
            found = self._texts.get(tuple(vector))
        if found is None:
            raise ValueError("this vector is unknown: use Memory(storage=storage, embedder=storage.embedder)")
        return found


class MnemonStorage:
    """Memories of crews. Each is a record, whose text is found by every other search of Mnemon, too.

    `name` separates several storages of one Mnemon.
    """

    def __init__(self, memory: Mnemon, *, name: str = "crewai") -> None:
        self._memory = memory
        self._writer = Writer(memory)
        self._name = name
        self.embedder = TextVectors()

    def save(self, records: list[MemoryRecord]) -> None:
        self._writer.write(self._record(one) for one in records)

    def update(self, record: MemoryRecord) -> None:
        self.save([record])

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        query = self.embedder.text(query_embedding)
        # Conditions that only this side can check may remove hits.
        wanted = HITS if categories or metadata_filter else min(limit, HITS)
        tags = [self._scope_tag(_parts(scope_prefix))]
        hits = self._memory.search(query, tags=tags, limit=wanted, min_score=min_score)["hits"]
        found = ((_memory(hit["record"]), float(hit["score"])) for hit in hits)
        return [pair for pair in found if _matches(pair[0], categories, metadata_filter)][:limit]

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        tags = None if record_ids is None else [self._tag(id) for id in record_ids]
        chosen = [
            one.id
            for one in self._all(scope_prefix, tags)
            if _matches(one, categories, metadata_filter) and (older_than is None or _utc(one.created_at) < _utc(older_than))
        ]
        forget_by_tags(self._memory, [self._tag(id) for id in chosen])
        return len(chosen)

    def get_record(self, record_id: str) -> MemoryRecord | None:
        found = find(self._memory, self._tag(record_id))
        return None if found is None else _memory(found)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        found = sorted(self._all(scope_prefix), key=lambda one: _utc(one.created_at), reverse=True)
        return found[offset : offset + limit]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        found = list(self._all(scope))
        times = [one.created_at for one in found]
        return ScopeInfo(
            path=_path(_parts(scope)),
            record_count=len(found),
            categories=sorted({category for one in found for category in one.categories}),
            oldest_record=min(times, key=_utc, default=None),
            newest_record=max(times, key=_utc, default=None),
            child_scopes=_children(found, _parts(scope)),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        return _children(list(self._all(parent)), _parts(parent))

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        return dict(Counter(category for one in self._all(scope_prefix) for category in one.categories))

    def count(self, scope_prefix: str | None = None) -> int:
        return sum(1 for _ in self._all(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        forget_by_tags(self._memory, [self._scope_tag(_parts(scope_prefix))])

    async def asave(self, records: list[MemoryRecord]) -> None:
        await asyncio.to_thread(self.save, records)

    async def asearch(self, query_embedding: list[float], *args: Any, **named: Any) -> list[tuple[MemoryRecord, float]]:
        return await asyncio.to_thread(self.search, query_embedding, *args, **named)

    async def adelete(self, *args: Any, **named: Any) -> int:
        return await asyncio.to_thread(self.delete, *args, **named)

    def _tag(self, id: str) -> str:
        """The tag, and the id, of one memory."""
        return f"crm-{digest(self._name, id)}"

    def _scope_tag(self, parts: list[str]) -> str:
        """The tag of all memories below a scope."""
        return f"crs-{digest(self._name, *parts)}"

    def _record(self, one: MemoryRecord) -> dict[str, Any]:
        parts = _parts(one.scope)
        above = [parts[:length] for length in range(len(parts) + 1)]
        return record(
            self._tag(one.id),
            kind="fact",
            scope="semantic",
            tags=[self._tag(one.id), *(self._scope_tag(prefix) for prefix in above)],
            body=one.model_dump(mode="json"),
            content=one.content,
            created=_utc(one.created_at),
        )

    def _all(self, scope_prefix: str | None, tags: list[str] | None = None) -> Iterator[MemoryRecord]:
        parts = _parts(scope_prefix)
        for found in find_by_tags(self._memory, [self._scope_tag(parts)] if tags is None else tags):
            one = _memory(found)
            if _parts(one.scope)[: len(parts)] == parts:
                yield one


def _memory(found: Any) -> MemoryRecord:
    return MemoryRecord.model_validate(found["body"])


def _parts(scope: str | None) -> list[str]:
    return [part for part in (scope or "").split("/") if part]


def _path(parts: list[str]) -> str:
    return "/" + "/".join(parts)


def _children(found: list[MemoryRecord], parent: list[str]) -> list[str]:
    paths = (_parts(one.scope) for one in found)
    return sorted({_path(path[: len(parent) + 1]) for path in paths if len(path) > len(parent)})


def _matches(one: MemoryRecord, categories: list[str] | None, metadata: dict[str, Any] | None) -> bool:
    if categories and not any(category in one.categories for category in categories):
        return False
    return all(one.metadata.get(name) == value for name, value in (metadata or {}).items())


def _utc(time: datetime) -> datetime:
    """CrewAI's times have no zone, and are UTC."""
    return time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time.astimezone(timezone.utc)
