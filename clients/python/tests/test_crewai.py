"""The storage of CrewAI in its own memory. `./scripts/clients crewai` runs it: its packages are many."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mnemon import Mnemon

pytest.importorskip("crewai")

from crewai.memory.storage.backend import StorageBackend  # noqa: E402
from crewai.memory.types import MemoryRecord  # noqa: E402
from crewai.memory.unified_memory import Memory  # noqa: E402

from mnemon.crewai import MnemonStorage  # noqa: E402


@pytest.fixture
def client(tmp_path: Path) -> Any:
    with Mnemon(tmp_path / "memory.db") as memory:
        yield memory


def record(id: str, content: str, scope: str = "/", **named: Any) -> MemoryRecord:
    return MemoryRecord(id=id, content=content, scope=scope, **named)


def filled(client: Mnemon) -> MnemonStorage:
    storage = MnemonStorage(client)
    old = datetime.utcnow() - timedelta(days=10)
    storage.save(
        [
            record("1", "Ann drinks oolong tea", "/ann", categories=["taste"], metadata={"n": 1}, created_at=old),
            record("2", "Ann has a cat", "/ann/home", categories=["pets"], importance=0.9),
            record("3", "Annabel drinks tea", "/annabel", categories=["taste"]),
        ]
    )
    return storage


def test_operations(client: Mnemon) -> None:
    storage = filled(client)
    assert isinstance(storage, StorageBackend)
    assert storage.count() == 3 and storage.count("/ann") == 2 and storage.count("/none") == 0
    assert storage.list_scopes() == ["/ann", "/annabel"] and storage.list_scopes("/ann") == ["/ann/home"]
    assert storage.list_categories() == {"taste": 2, "pets": 1}
    info = storage.get_scope_info("/ann")
    assert (info.record_count, info.categories, info.child_scopes) == (2, ["pets", "taste"], ["/ann/home"])
    assert [one.id for one in storage.list_records(limit=2)][-1] != "1" and len(storage.list_records(offset=2)) == 1
    found = storage.get_record("2")
    assert found is not None and found.importance == 0.9 and storage.get_record("9") is None
    storage.update(found.model_copy(update={"content": "Ann has a dog"}))
    assert storage.count() == 3
    again = storage.get_record("2")
    assert again is not None and again.content == "Ann has a dog"


def test_search_and_delete(client: Mnemon) -> None:
    storage = filled(client)
    [tea] = storage.embedder(["tea"])
    assert {one.id for one, _ in storage.search(tea)} >= {"1", "3"}
    assert [one.id for one, _ in storage.search(tea, scope_prefix="/ann", categories=["taste"])] == ["1"]
    assert [one.id for one, _ in storage.search(tea, metadata_filter={"n": 1})] == ["1"]
    assert asyncio.run(storage.asearch(tea, limit=1))[0][1] > 0
    with pytest.raises(ValueError, match="embedder"):
        storage.search([0.5])
    assert storage.delete(older_than=datetime.utcnow() - timedelta(days=1)) == 1
    assert storage.delete(record_ids=["2", "9"]) == 1 and storage.count() == 1
    storage.reset("/ann")
    assert storage.count() == 1
    storage.reset()
    assert storage.count() == 0


def test_the_memory_of_crewai_remembers(tmp_path: Path) -> None:
    for turn in range(2):
        with Mnemon(tmp_path / "m.db") as client:
            storage = MnemonStorage(client)
            memory = Memory(storage=storage, embedder=storage.embedder)
            if turn == 0:
                memory.remember("Ann drinks oolong tea", scope="/ann", categories=["taste"], importance=0.5)
            matches = memory.recall("What tea does Ann drink?", depth="shallow")
            assert [match.record.content for match in matches] == ["Ann drinks oolong tea"]
