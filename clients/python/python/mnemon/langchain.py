"""LangChain: chat history, retriever and vector store.

>>> from mnemon import Mnemon
>>> from mnemon.langchain import MnemonChatMessageHistory, MnemonRetriever, MnemonVectorStore
>>> memory = Mnemon(URL)
>>> history = MnemonChatMessageHistory(memory, "lc-doc")
>>> history.add_user_message("I drink green tea")
>>> [message.content for message in history.messages]
['I drink green tea']
>>> store = MnemonVectorStore(memory, name="lc-doc")
>>> _ = store.add_texts(["Tea is brewed at 80 degrees", "Brakes wear out"])
>>> store.similarity_search("How hot is tea?", k=1)[0].page_content
'Tea is brewed at 80 degrees'
>>> memory.close()

Async methods run in threads.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore

from . import Mnemon
from ._conversation import Conversation, Entry, Role
from ._records import Writer, digest, find_by_tags, forget_by_tags, record

ROLES: dict[str, Role] = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}


class MnemonChatMessageHistory(BaseChatMessageHistory):
    """The messages of a session, in the conversation of the same name.

    Messages are read back as they were added, with tool calls and metadata. Their texts are found
    by every search of the memory.
    """

    def __init__(self, memory: Mnemon, session_id: str, *, user: str | None = None) -> None:
        self._conversation = Conversation(memory, "langchain", session_id, user)

    @property
    def conversation(self) -> str:
        """The name of the conversation."""
        return self._conversation.session

    def last(self, count: int) -> list[BaseMessage]:
        """The last messages, oldest first."""
        return messages_from_dict([_as_langchain(one) for one in self._conversation.read(count)])

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        return messages_from_dict([_as_langchain(one) for one in self._conversation.read()])

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        entries = [Entry(ROLES.get(m.type, "user"), _text(m), message_to_dict(m)) for m in messages]
        self._conversation.append(entries)

    def clear(self) -> None:
        self._conversation.clear()


def _text(message: BaseMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    parts = [part if isinstance(part, str) else str(part.get("text", "")) for part in message.content]
    return "\n".join(part for part in parts if part)


def _as_langchain(stored: dict[str, Any]) -> dict[str, Any]:
    if "data" in stored:
        return stored
    names = {role: name for name, role in ROLES.items()}
    kind = names.get(stored["role"], "human")
    # A result of a tool that another program added has no call here.
    return {"type": "human" if kind == "tool" else kind, "data": {"content": stored["content"]}}


class MnemonRetriever(BaseRetriever):
    """Search of the memory: notes, facts, documents and conversations.

    `options` are further arguments of `Mnemon.search`, such as `user`, `kind`, `tags` or `filter`.
    """

    memory: Any
    k: int = 4
    options: dict[str, Any] = {}

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None, **options: Any
    ) -> list[Document]:
        hits = self.memory.search(query, limit=k or self.k, **{**self.options, **options})["hits"]
        return [_found(hit["record"], hit["score"]) for hit in hits]


def _found(found: Any, score: float) -> Document:
    about = {name: found[name] for name in ("kind", "source", "tags", "owner") if name in found}
    about.update(found.get("metadata", {}), created=found["created"].isoformat(), score=score)
    return Document(id=found["id"], page_content=found["content"], metadata=about)


class MnemonVectorStore(VectorStore):
    """Documents that are searched by words and meaning. Embeddings are made by the server.

    `name` separates several vector stores of one memory. `filter` is a condition on the metadata,
    such as `{"lang": "vi", "year": {"$gte": 2020}}`.
    """

    def __init__(self, memory: Mnemon, *, name: str = "langchain") -> None:
        self._memory = memory
        self._writer = Writer(memory)
        self._name = name

    @property
    def _tag(self) -> str:
        return f"lcv-{digest(self._name)}"

    def _document_tag(self, id: str) -> str:
        """The tag, and the id, of one document."""
        return f"lcd-{digest(self._name, id)}"

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        contents = list(texts)
        abouts = metadatas if metadatas is not None else [{} for _ in contents]
        names = [id or uuid.uuid4().hex for id in (ids if ids is not None else [None] * len(contents))]
        if not len(contents) == len(abouts) == len(names):
            raise ValueError("texts, metadatas and ids must have the same length")
        self._writer.write(self._record(*one) for one in zip(names, contents, abouts))
        return names

    def _record(self, id: str, content: str, about: dict[str, Any]) -> dict[str, Any]:
        tag = self._document_tag(id)
        return record(
            tag,
            kind="fact",
            scope="semantic",
            tags=[tag, self._tag],
            body={"id": id, "blank": None if content.strip() else content},
            content=content if content.strip() else "",
            metadata=about,
            origin="file",
        )

    def similarity_search(
        self, query: str, k: int = 4, filter: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        return [found for found, _ in self.similarity_search_with_score(query, k, filter)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The nearest documents with scores from 0 to 1; documents without a match have 0."""
        tags = [self._tag]
        hits = self._memory.search(query, tags=tags, filter=filter, limit=k, min_score=0.0)["hits"]
        found = [(_document(hit["record"]), float(hit["score"])) for hit in hits]
        if len(found) < k:
            seen = {document.id for document, _ in found}
            rest = (_document(one) for one in self._memory.list_all(tags=tags, filter=filter))
            others = ((one, 0.0) for one in rest if one.id not in seen)
            found += list(islice(others, k - len(found)))
        return found

    def _select_relevance_score_fn(self) -> Any:
        return lambda score: score

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        found = find_by_tags(self._memory, [self._document_tag(id) for id in ids])
        by_id = {document.id: document for document in map(_document, found)}
        return [by_id[id] for id in ids if id in by_id]

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete documents; without ids, all of them."""
        forget_by_tags(self._memory, [self._tag] if ids is None else [self._document_tag(id) for id in ids])
        return True

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        memory: Mnemon | None = None,
        name: str = "langchain",
        **kwargs: Any,
    ) -> MnemonVectorStore:
        """A store with these texts. `embedding` is not used: the server makes embeddings."""
        if memory is None:
            raise ValueError("memory is missing: MnemonVectorStore.from_texts(…, memory=Mnemon(…))")
        store = cls(memory, name=name)
        store.add_texts(texts, metadatas, ids=ids)
        return store


def _document(found: Any) -> Document:
    body = found["body"]
    content = found["content"] if body.get("blank") is None else body["blank"]
    return Document(id=body["id"], page_content=content, metadata=found.get("metadata", {}))
