"""The LangChain adapters with the real packages and their standard tests."""

from __future__ import annotations

import doctest
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("langchain_tests")

from langchain_core.documents import Document  # noqa: E402
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage  # noqa: E402
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests  # noqa: E402

import mnemon.langchain  # noqa: E402
from mnemon import Mnemon  # noqa: E402
from mnemon.langchain import MnemonChatMessageHistory, MnemonRetriever, MnemonVectorStore  # noqa: E402


@pytest.fixture
def client(server: Any) -> Iterator[Mnemon]:
    with Mnemon(server.url) as memory:
        yield memory


def test_the_example(server: Any) -> None:
    result = doctest.testmod(mnemon.langchain, extraglobs={"URL": server.url})
    assert result.attempted > 0 and result.failed == 0


class TestVectorStore(VectorStoreIntegrationTests):
    """The standard tests of vector stores."""

    @pytest.fixture
    def vectorstore(self, client: Mnemon) -> MnemonVectorStore:  # type: ignore[override]
        return MnemonVectorStore(client, name=uuid.uuid4().hex)


class TestRetriever(RetrieversIntegrationTests):
    """The standard tests of retrievers."""

    @pytest.fixture(autouse=True)
    def _memory(self, client: Mnemon) -> None:
        self.client = client
        self.tag = uuid.uuid4().hex
        for number in range(5):
            client.add(f"Tea number {number} is {'very ' * number}green", tags=[self.tag])

    @property
    def retriever_constructor(self) -> type[MnemonRetriever]:
        return MnemonRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.client, "options": {"tags": [self.tag]}}

    @property
    def retriever_query_example(self) -> str:
        return "green tea"


def test_the_history_reads_back_as_written(client: Mnemon) -> None:
    history = MnemonChatMessageHistory(client, f"team/{uuid.uuid4().hex}..x", user="ann")
    assert history.messages == []
    long = "a long text, " * 5000
    messages = [
        SystemMessage("Be kind"),
        HumanMessage("What is 6 times 7?", name="ann", id="h1", additional_kwargs={"lang": "en", "odd": {"$text": 0}}),
        AIMessage("", tool_calls=[{"name": "times", "args": {"a": 6, "note": long}, "id": "c1"}]),
        ToolMessage("42", tool_call_id="c1"),
        AIMessage([{"type": "text", "text": "It is 42"}, {"type": "text", "text": long}]),
        HumanMessage(long),
    ]
    history.add_messages(messages)
    assert history.messages == messages
    history.add_ai_message("Anything else?")
    assert len(history.messages) == 7
    assert any(hit["record"]["kind"] == "message" for hit in client.search("6 times 7", user="ann")["hits"])
    history.clear()
    history.clear()
    assert history.messages == []


def test_the_history_shows_messages_of_others(client: Mnemon) -> None:
    session = uuid.uuid4().hex
    client.chat_append(session, "from the command line")
    assert MnemonChatMessageHistory(client, session).messages == [HumanMessage("from the command line")]


def test_filters_scores_and_from_texts(client: Mnemon) -> None:
    store = MnemonVectorStore.from_texts(
        ["green tea", "black tea", "car"], metadatas=[{"n": 1}, {"n": 2}, {"n": 3}], ids=["a", "b", "c"],
        memory=client, name=uuid.uuid4().hex,
    )
    assert [d.id for d in store.similarity_search("tea", filter={"n": {"$gte": 2}})][0] == "b"
    scores = store.similarity_search_with_relevance_scores("green tea", k=3)
    assert scores[0][0].id == "a" and all(0 <= score <= 1 for _, score in scores)
    assert store.as_retriever(search_kwargs={"k": 1}).invoke("car") == [Document(id="c", page_content="car", metadata={"n": 3})]
    store.delete()
    assert store.similarity_search("tea") == []
    with pytest.raises(ValueError, match="memory"):
        MnemonVectorStore.from_texts(["x"])
