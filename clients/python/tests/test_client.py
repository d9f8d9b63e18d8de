"""The client against the real program, in its sync and its async form."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import itertools
import json
import logging
import os
import threading
import uuid
import warnings
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import mnemon
from mnemon import AsyncMnemon, ConflictError, InvalidError, Mnemon, NotFoundError, UnauthorizedError, UnsupportedError
from mnemon._table import OPERATIONS


def name() -> str:
    """A tag or a session that no other test has."""
    return f"t{uuid.uuid4().hex[:12]}"


def test_a_record_is_stored_found_changed_and_deleted(memory: Any) -> None:
    user = name()
    receipt = memory.add("Ann drinks green tea", user=user, tags=["drink"], metadata={"rating": 4})
    found = receipt["items"][0]["id"]
    hits = memory.search("tea", user=user, own=True, filter={"rating": {"$gte": 3}})["hits"]
    assert [hit["record"]["content"] for hit in hits] == ["Ann drinks green tea"]
    assert memory.update(found, content="Ann drinks black tea", if_version=1)["version"] == 2
    with pytest.raises(ConflictError):
        memory.update(found, content="x", if_version=1)
    assert memory.get(found)["records"][0]["content"] == "Ann drinks black tea"
    assert memory.delete(found)["items"][0]["fate"] == "deleted"
    with pytest.raises(NotFoundError) as error:
        memory.get(found)
    assert isinstance(error.value, LookupError) and error.value.status == 404 and error.value.hint


def test_values_of_python(memory: Any) -> None:
    tag = name()
    created = datetime(2020, 5, 1, 10, tzinfo=timezone(timedelta(hours=2)))
    memory.add("old", tags={tag}, created=created, ttl=timedelta(days=36500), source=Path("a") / "b.md")
    (record,) = memory.list(tags=[tag], until=datetime(2021, 1, 1, tzinfo=timezone.utc))["records"]
    assert record["created"] == created and record["created"].tzinfo is not None
    assert record["expires"] > datetime.now(timezone.utc)
    assert record["source"] == str(Path("a") / "b.md")
    assert memory.list(tags=[tag], since=datetime(2021, 1, 1))["records"] == []
    # Texts of users are no times, whatever their names are.
    memory.session_save(tag, state={"part": {"created": "2020-05-01T10:00:00Z"}})
    saved = memory.session_load(tag)
    assert saved["components"]["part"]["created"] == "2020-05-01T10:00:00Z"
    assert isinstance(saved["timestamp"], datetime)


def test_ids_and_texts_with_special_characters(memory: Any) -> None:
    odd = f"a/b?c#d%20+{name()}"
    memory.add("öé 🍵 \u2028 \\ \"", id=odd)
    assert memory.get(odd)["records"][0]["content"] == "öé 🍵 \u2028 \\ \""
    user = f"ü&=? {name()}"
    memory.add("hers", user=user)
    assert len(memory.list(user=user, own=True)["records"]) == 1


def test_every_page(memory: Any) -> None:
    tag = name()
    for number in range(7):
        memory.add(f"{tag} item {number}", tags=[tag])
    assert [r["content"][-1] for r in memory.list_all(tags=[tag], limit=3)] == list("6543210")
    for number in range(5):
        memory.chat_append(tag, f"line {number}", user=tag)
    said = [message["content"][0]["text"] for message in memory.chat_tail_all(tag, user=tag, count=2)]
    assert said == [f"line {number}" for number in (4, 3, 2, 1, 0)]
    assert [c["session"] for c in memory.chat_list_all(user=tag, limit=1)] == [tag]
    changes = itertools.islice(memory.history_all(limit=3), 12)
    assert all(isinstance(change["at"], datetime) for change in changes)


def test_an_error_has_the_details_of_the_server(memory: Any) -> None:
    with pytest.raises(InvalidError) as error:
        memory.search("tea", limit=0)
    assert error.value.code == "invalid" and error.value.status == 400
    assert error.value.field == "limit" and error.value.request_id
    assert isinstance(error.value, ValueError) and str(error.value).startswith("limit: ")
    with pytest.raises(InvalidError):
        memory.get("")
    with pytest.raises(InvalidError):
        memory.add("x", metadata={"a": object()})
    with pytest.raises(InvalidError):
        memory.add("x", key="two\r\nlines")


def test_a_key(start_server: Any, form: Any) -> None:
    key = "a-key-with-enough-characters"
    closed = start_server(key=key)
    without, right = form(closed.url), form(closed.url + "/", key=key)
    with pytest.raises(UnauthorizedError):
        without.stats()
    assert right.stats()["records"] == 0
    without.close()
    right.close()


def test_the_same_key_stores_once(memory: Any) -> None:
    tag = name()
    first = memory.add("once", tags=[tag], key=tag)
    assert memory.add("once", tags=[tag], key=tag)["items"][0]["id"] == first["items"][0]["id"]
    assert len(memory.list(tags=[tag])["records"]) == 1


def test_export_import_and_progress(memory: Any) -> None:
    tag = name()
    memory.add("to be carried", tags=[tag])
    records = list(memory.export(tags=[tag]))
    assert len(records) == 1 and isinstance(records[0]["created"], datetime)
    assert memory.import_(records, on_conflict="skip")["duplicate"] == 1
    seen: list[Any] = []
    assert memory.import_(records, progress=seen.append)["records"] == 1
    memory.documents_add(documents=[{"uri": f"{tag}.md", "text": "# Tea\n\nGreen."}], progress=seen.append)
    with pytest.raises(InvalidError):
        memory.import_([{"v": 1}], progress=seen.append)
    assert all("done" in one for one in seen)


def test_metrics_are_those_of_a_server(start_server: Any, form: Any) -> None:
    client = form(start_server().url)
    assert "mnemon_uptime_seconds" in client.metrics()
    client.close()


def test_the_feed(memory: Any) -> None:
    tag = name()
    memory.add("first", tags=[tag])
    memory.add("not for the feed")
    memory.add("second", tags=[tag])
    feed = memory.changes(after=0, tags=[tag])
    assert [next(feed)["after"]["content"] for _ in range(2)] == ["first", "second"]
    feed.close()
    with pytest.raises(InvalidError):
        next(memory.changes(after=10**9))


def test_the_feed_continues_after_a_restart(start_server: Any, form: Any) -> None:
    server = start_server()
    client = form(server.url)
    feed = client.changes(after=0)
    client.add("before")
    assert next(feed)["after"]["content"] == "before"
    server.stop(keep=True)
    again = start_server(listen=server.url.removeprefix("http://"), home=server.home)
    client.add("after")
    assert next(feed)["after"]["content"] == "after"
    feed.close()
    client.close()
    again.stop()


def test_a_closed_client_says_so(server: Any) -> None:
    with Mnemon(server.url) as memory:
        memory.health()
    with pytest.raises(InvalidError, match="closed"):
        memory.health()


def test_many_threads_share_a_client(server: Any) -> None:
    tag = name()
    with Mnemon(server.url) as memory:
        def work(number: int) -> None:
            for turn in range(4):
                memory.add(f"{tag} {number} {turn}", tags=[tag])

        threads = [threading.Thread(target=work, args=(number,)) for number in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({r["content"] for r in memory.list_all(tags=[tag])}) == 128


async def test_many_tasks_and_cancelled_ones(server: Any) -> None:
    tag = name()
    async with AsyncMnemon(server.url) as memory:
        await asyncio.gather(*(memory.add(f"{tag} {number}", tags=[tag]) for number in range(50)))
        # A request that was cancelled leaves no answer behind for the next one.
        for delay in (0, 0.0001, 0.0005, 0.001, 0.002):
            task = asyncio.create_task(memory.search("tea"))
            await asyncio.sleep(delay)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert (await memory.health())["status"] == "ok"
        assert len([r async for r in memory.list_all(tags=[tag], limit=20)]) == 50


def test_a_client_in_two_event_loops(server: Any) -> None:
    memory = AsyncMnemon(server.url)

    async def use() -> None:
        assert (await memory.health())["status"] == "ok"

    with warnings.catch_warnings():
        # Connections of a loop that has ended can only be dropped.
        warnings.simplefilter("ignore", ResourceWarning)
        asyncio.run(use())
        asyncio.run(use())
        del memory
        gc.collect()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_gets_connections_of_its_own(server: Any) -> None:
    tag = name()
    with Mnemon(server.url) as memory:
        memory.health()
        child = os.fork()
        if child == 0:
            try:
                for number in range(20):
                    memory.add(f"child {number}", tags=[tag])
                os._exit(0)
            finally:
                os._exit(1)
        for number in range(20):
            memory.add(f"parent {number}", tags=[tag])
        assert os.waitpid(child, 0)[1] == 0
        assert len(list(memory.list_all(tags=[tag]))) == 40


def test_requests_are_logged_without_contents(server: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="mnemon"), Mnemon(server.url) as memory:
        memory.search("a secret question")
        memory.list(tags=["a-private-tag"])
    assert "POST /v1/search 200" in caplog.text
    assert "secret" not in caplog.text and "private" not in caplog.text


def test_every_operation_has_a_method() -> None:
    contract = json.loads((Path(__file__).parents[3] / "docs" / "openapi.json").read_text())
    routes = {(m.upper(), p) for p, methods in contract["paths"].items() for m in methods}
    assert {(row[0], row[1]) for row in OPERATIONS.values()} == routes
    for operation in OPERATIONS:
        method = "import_" if operation == "import" else operation
        assert callable(getattr(Mnemon, method)) and callable(getattr(AsyncMnemon, method))


def test_a_store_in_this_process_needs_the_compiled_part() -> None:
    if importlib.util.find_spec("mnemon._native") is None:
        with pytest.raises(UnsupportedError, match="compiled part"):
            Mnemon("sqlite:memory.db")
    with pytest.raises(InvalidError):
        Mnemon("http://")
    assert mnemon.__version__
