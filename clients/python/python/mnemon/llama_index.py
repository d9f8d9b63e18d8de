"""LlamaIndex: a chat store for its memories.

>>> from llama_index.core.llms import ChatMessage
>>> from llama_index.core.memory import ChatMemoryBuffer
>>> from mnemon import Mnemon
>>> from mnemon.llama_index import MnemonChatStore
>>> memory = Mnemon(URL)
>>> chat = ChatMemoryBuffer.from_defaults(chat_store=MnemonChatStore(memory=memory), chat_store_key="li-doc")
>>> chat.put(ChatMessage(role="user", content="I drink green tea"))
>>> [message.content for message in chat.get_all()]
['I drink green tea']
>>> memory.close()
"""

from __future__ import annotations

from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.llms import ChatMessage
from llama_index.core.storage.chat_store.base import BaseChatStore

from ._conversation import Conversation, Entry, Role, session_of

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "tool"}


class MnemonChatStore(BaseChatStore):
    """The messages of each key, in the conversation of the same name.

    Messages are read back as they were added. Their texts are found by every search of the memory.
    `user` owns the conversations.
    """

    memory: Any = Field(exclude=True)
    user: str = "llama-index"

    @classmethod
    def class_name(cls) -> str:
        return "MnemonChatStore"

    def _conversation(self, key: str) -> Conversation:
        return Conversation(self.memory, "llama_index", key, self.user)

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        conversation = self._conversation(key)
        conversation.clear()
        conversation.append([_entry(message) for message in messages])

    def get_messages(self, key: str) -> list[ChatMessage]:
        return [ChatMessage.model_validate(stored) for stored in self._conversation(key).read()]

    def add_message(self, key: str, message: ChatMessage) -> None:
        self._conversation(key).append([_entry(message)])

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        found = self.get_messages(key)
        self._conversation(key).clear()
        return found or None

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        found = self._conversation(key).remove(idx)
        return None if found is None else ChatMessage.model_validate(found)

    def delete_last_message(self, key: str) -> ChatMessage | None:
        found = self._conversation(key).pop()
        return None if found is None else ChatMessage.model_validate(found)

    def get_keys(self) -> list[str]:
        return [session_of(one["session"]) for one in self.memory.chat_list_all(user=self.user)]


def _entry(message: ChatMessage) -> Entry:
    return Entry(ROLES.get(message.role.value, "user"), message.content or "", message.model_dump(mode="json"))
