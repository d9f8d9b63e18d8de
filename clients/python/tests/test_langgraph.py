"""The LangGraph adapters with the real packages and their conformance suite."""

from __future__ import annotations

import doctest
import threading
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

pytest.importorskip("langgraph.checkpoint.base")

from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp, SearchOp  # noqa: E402

import mnemon.langgraph  # noqa: E402
from mnemon import Mnemon  # noqa: E402
from mnemon.langgraph import MnemonSaver, MnemonStore  # noqa: E402


@pytest.fixture
def client(server: Any) -> Iterator[Mnemon]:
    with Mnemon(server.url) as memory:
        yield memory


@pytest.fixture
def store(client: Mnemon) -> MnemonStore:
    return MnemonStore(client, name=uuid.uuid4().hex)


def test_the_example(server: Any) -> None:
    pytest.importorskip("langgraph.graph")
    result = doctest.testmod(mnemon.langgraph, extraglobs={"URL": server.url})
    assert result.attempted > 0 and result.failed == 0


async def test_the_conformance_suite_of_checkpointers(client: Mnemon, capsys: pytest.CaptureFixture[str]) -> None:
    conformance = pytest.importorskip("langgraph.checkpoint.conformance")

    @conformance.checkpointer_test(name="MnemonSaver")
    async def registered() -> Any:
        yield MnemonSaver(client, name=uuid.uuid4().hex)

    report = await conformance.validate(registered)
    passed = sum(result.tests_passed for result in report.results.values())
    failed = sum(result.tests_failed for result in report.results.values())
    with capsys.disabled():
        print(f"\nlanggraph-checkpoint-conformance: {passed} passed, {failed} failed, {report.conformance_level()}")
    assert failed == 0 and passed > 50, [result.failures for result in report.results.values()]
    assert all(result.detected for result in report.results.values())


def test_put_get_and_delete(store: MnemonStore) -> None:
    store.put(("users", "ann"), "drink", {"text": "green tea", "n": 1, "deep": {"list": [1, None, True]}})
    first = store.get(("users", "ann"), "drink")
    assert first and first.value == {"text": "green tea", "n": 1, "deep": {"list": [1, None, True]}}
    assert first.namespace == ("users", "ann") and first.created_at.tzinfo
    store.put(("users", "ann"), "drink", {"text": "black tea"})
    second = store.get(("users", "ann"), "drink")
    assert second and second.value == {"text": "black tea"}
    assert second.created_at == first.created_at and second.updated_at > first.updated_at
    assert store.get(("users",), "drink") is None
    store.delete(("users", "ann"), "drink")
    store.delete(("users", "ann"), "drink")
    assert store.get(("users", "ann"), "drink") is None
    with pytest.raises(InvalidNamespaceError):
        store.put(("a.b",), "x", {})


def test_a_batch_reads_before_it_writes(store: MnemonStore) -> None:
    store.put(("a",), "one", {"n": 1})
    results = store.batch(
        [
            PutOp(("a",), "one", {"n": 2}),
            GetOp(("a",), "one"),
            PutOp(("a",), "two", {"n": 3}),
            PutOp(("a",), "two", {"n": 4}),
            GetOp(("a",), "two"),
            SearchOp(("a",)),
        ]
    )
    assert [getattr(r, "value", r) for r in results[:5]] == [None, {"n": 1}, None, None, None]
    assert [item.value for item in results[5]] == [{"n": 1}]  # type: ignore[union-attr]
    assert [item.value["n"] for item in store.search(("a",))] in ([2, 4], [4, 2])
    store.batch([PutOp(("b",), str(n), {"n": n}) for n in range(50)])
    assert len(store.search(("b",), limit=100)) == 50
    got = store.batch([GetOp(("b",), str(n)) for n in range(50)])
    assert [item.value["n"] for item in got] == list(range(50))  # type: ignore[union-attr]


def test_search_by_prefix_filter_and_page(store: MnemonStore) -> None:
    for n in range(6):
        store.put(("docs", "u1" if n % 2 else "u2"), f"k{n}", {"n": n, "color": "red" if n < 3 else "blue", "tags": ["x", n], "deep": {"a": n}})
    store.put(("other",), "k", {"n": 1, "color": "red"})
    keys = lambda *a, **k: {item.key for item in store.search(*a, limit=50, **k)}  # noqa: E731
    assert keys(("docs",)) == {f"k{n}" for n in range(6)}
    assert keys(("docs", "u1")) == {"k1", "k3", "k5"}
    assert keys(("doc",)) == set() and len(keys(())) == 7
    assert keys(("docs",), filter={"color": "red"}) == {"k0", "k1", "k2"}
    assert keys(("docs",), filter={"color": {"$ne": "red"}, "n": {"$lt": 5}}) == {"k3", "k4"}
    assert keys(("docs",), filter={"n": 1.0}) == {"k1"}
    assert keys(("docs",), filter={"n": {"$gte": 2, "$lte": 3}}) == {"k2", "k3"}
    assert keys(("docs",), filter={"deep": {"a": 4}}) == {"k4"}
    assert keys(("docs",), filter={"tags": ["x", 5]}) == {"k5"}
    assert keys(("docs",), filter={"absent": {"$gt": 1}}) == set()
    with pytest.raises(ValueError, match="operator"):
        store.search(("docs",), filter={"n": {"$near": 1}})
    pages = [item.key for page in range(3) for item in store.search(("docs",), limit=2, offset=2 * page)]
    assert sorted(pages) == [f"k{n}" for n in range(6)] and len(store.search(("docs",), offset=6)) == 0


def test_search_by_words_and_meaning(store: MnemonStore) -> None:
    store.put(("m",), "tea", {"text": "Ann drinks green tea in the morning"})
    store.put(("m",), "car", {"text": "The car needs new brakes"})
    store.put(("m",), "hidden", {"text": "tea tea tea"}, index=False)
    store.put(("m",), "field", {"title": "coffee", "text": "tea"}, index=["title"])
    found = store.search(("m",), query="What does Ann drink?", limit=2)
    assert found[0].key == "tea" and found[0].score is not None and found[0].score > 0
    everything = store.search(("m",), query="tea", limit=10)
    assert everything[0].key == "tea" and {item.key for item in everything} == {"tea", "car", "hidden", "field"}
    assert next(item for item in everything if item.key == "hidden").score is None
    assert store.search(("m",), query="coffee", limit=1)[0].key == "field"
    assert [i.key for i in store.search(("m",), query="tea", filter={"title": "coffee"})] == ["field"]


def test_namespaces(store: MnemonStore) -> None:
    for namespace in [("a", "b", "c"), ("a", "b", "d"), ("a", "x"), ("z", "b")]:
        store.put(namespace, "k", {"v": 1})
    store.put(("gone",), "k", {"v": 1})
    store.delete(("gone",), "k")
    assert store.list_namespaces() == [("a", "b", "c"), ("a", "b", "d"), ("a", "x"), ("z", "b")]
    assert store.list_namespaces(prefix=("a",), max_depth=2) == [("a", "b"), ("a", "x")]
    assert store.list_namespaces(suffix=("b",)) == [("z", "b")]
    assert store.list_namespaces(prefix=("*", "b")) == [("a", "b", "c"), ("a", "b", "d"), ("z", "b")]
    assert store.list_namespaces(prefix=("a", "*"), suffix=("d",)) == [("a", "b", "d")]
    assert store.list_namespaces(limit=1, offset=2) == [("a", "x")]


def test_ttl(client: Mnemon, store: MnemonStore) -> None:
    store.put(("t",), "long", {"v": 1}, ttl=60)
    store.put(("t",), "expired", {"v": 1}, ttl=-1)
    assert store.get(("t",), "expired") is None
    assert [item.key for item in store.search(("t",))] == ["long"]
    (kept,) = [r for r in client.list_all(tags=[store._tag(("t",))])]
    left = kept["expires"] - datetime.now(timezone.utc)
    assert timedelta(minutes=58) < left < timedelta(minutes=61)
    store.get(("t",), "long", refresh_ttl=False)
    assert kept["version"] == 2  # the search refreshed it
    assert client.get(kept["id"])["records"][0]["version"] == 2
    store.get(("t",), "long")
    refreshed = client.get(kept["id"])["records"][0]
    assert refreshed["expires"] > kept["expires"]
    item = store.get(("t",), "long")
    assert item and item.updated_at < refreshed["updated"]
    default = MnemonStore(client, name=uuid.uuid4().hex, ttl={"default_ttl": -5.0})
    default.put(("t",), "x", {"v": 1})
    assert default.get(("t",), "x") is None


async def test_async_methods(store: MnemonStore) -> None:
    await store.aput(("as",), "k", {"v": 1})
    item = await store.aget(("as",), "k")
    assert item and item.value == {"v": 1}
    assert len(await store.asearch(("as",))) == 1
    assert await store.alist_namespaces() == [("as",)]
    await store.adelete(("as",), "k")
    assert await store.aget(("as",), "k") is None


def test_many_threads_write(store: MnemonStore) -> None:
    def work(number: int) -> None:
        for turn in range(5):
            store.put(("many",), f"{number}-{turn}", {"n": number})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.search(("many",), limit=200)) == 80


def test_a_wrong_value_does_not_disturb_others(store: MnemonStore) -> None:
    with pytest.raises(ValueError):
        store.put(("w",), "bad", {"v": object()})
    errors: list[BaseException] = []

    def work(key: str, value: Any) -> None:
        try:
            store.put(("w",), key, value)
        except BaseException as error:
            errors.append(error)

    deep: Any = 1
    for _ in range(120):
        deep = {"a": deep}
    values = [("good1", {"v": 1}), ("deep", deep), ("good2", {"v": 2})]
    threads = [threading.Thread(target=work, args=pair) for pair in values]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 1
    assert {item.key for item in store.search(("w",))} == {"good1", "good2"}


def test_a_graph_continues_in_another_process(server: Any) -> None:
    graphs = pytest.importorskip("langgraph.graph")
    thread = {"configurable": {"thread_id": uuid.uuid4().hex}}

    def app(memory: Mnemon) -> Any:
        graph = graphs.StateGraph(graphs.MessagesState)
        graph.add_node("answer", lambda state: {"messages": [f"answer {len(state['messages'])}"]})
        graph.add_edge(graphs.START, "answer")
        return graph.compile(checkpointer=MnemonSaver(memory))

    with Mnemon(server.url) as memory:
        app(memory).invoke({"messages": ["one"]}, thread)
    with Mnemon(server.url) as memory:
        second = app(memory)
        assert len(second.invoke({"messages": ["two"]}, thread)["messages"]) == 4
        history = list(second.get_state_history(thread))
        assert len(history) == 6
        ids = [state.config["configurable"]["checkpoint_id"] for state in history]
        assert ids == sorted(ids, reverse=True)
        # Time travel: from the state before the second answer.
        again = second.invoke(None, history[1].config)
        assert len(again["messages"]) == 4
