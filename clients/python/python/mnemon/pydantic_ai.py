"""Pydantic AI: the message history of an agent.

>>> from pydantic_ai import Agent
>>> from pydantic_ai.models.test import TestModel
>>> from mnemon import Mnemon
>>> from mnemon.pydantic_ai import MnemonHistory
>>> memory = Mnemon(URL)
>>> history = MnemonHistory(memory, "pa-doc")
>>> agent = Agent(TestModel(custom_output_text="Green tea it is."))
>>> result = agent.run_sync("I drink green tea", message_history=history.messages())
>>> history.add(result.new_messages())
>>> [message.kind for message in history.messages()]
['request', 'response']
>>> memory.close()

`amessages`, `aadd` and `aclear` do the same in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest, ModelResponse, TextPart, UserPromptPart

from . import Mnemon
from ._conversation import Conversation, Entry, Role


class MnemonHistory:
    """The messages of a session, in the conversation of the same name.

    Messages are read back as they were added. Their texts are found by every search of the memory.
    """

    def __init__(self, memory: Mnemon, session: str, *, user: str | None = None) -> None:
        self._conversation = Conversation(memory, "pydantic_ai", session, user)

    def messages(self, limit: int | None = None) -> list[ModelMessage]:
        """All messages, or the last ones, oldest first.

        With a limit, the list begins with a question: answers and results of tools whose beginning was
        left out are refused by most models.
        """
        stored = self._conversation.read(limit)
        found = [message for one in stored for message in _messages(one)]
        if limit is not None and len(stored) == limit:
            while found and not _is_question(found[0]):
                found.pop(0)
        return found

    def add(self, messages: Sequence[ModelMessage]) -> None:
        """Add messages, all or none: those of `result.new_messages()`."""
        self._conversation.append([_entry(message) for message in messages])

    def clear(self) -> None:
        """Delete the conversation."""
        self._conversation.clear()

    async def amessages(self, limit: int | None = None) -> list[ModelMessage]:
        return await asyncio.to_thread(self.messages, limit)

    async def aadd(self, messages: Sequence[ModelMessage]) -> None:
        await asyncio.to_thread(self.add, messages)

    async def aclear(self) -> None:
        await asyncio.to_thread(self.clear)


def _entry(message: ModelMessage) -> Entry:
    [original] = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    return Entry(_role(message), "\n".join(_texts(message)), original)


def _role(message: ModelMessage) -> Role:
    if message.kind == "response":
        return "assistant"
    kinds = {part.part_kind for part in message.parts}
    if "user-prompt" in kinds:
        return "user"
    return "tool" if kinds & {"tool-return", "retry-prompt"} else "system"


def _texts(message: ModelMessage) -> Iterator[str]:
    for part in message.parts:
        content: Any = getattr(part, "content", None)
        if part.part_kind == "tool-call":
            yield f"{part.tool_name} {part.args_as_json_str()}"
        elif part.part_kind == "tool-return":
            yield part.model_response_str()
        elif part.part_kind == "thinking":
            continue
        elif isinstance(content, str):
            yield content
        elif isinstance(content, (list, tuple)):
            yield from (one for one in content if isinstance(one, str))


def _messages(stored: dict[str, Any]) -> list[ModelMessage]:
    if "kind" in stored:
        return list(ModelMessagesTypeAdapter.validate_python([stored]))
    # Another program added it: its role and text are all that both sides know.
    if stored["role"] == "assistant":
        return [ModelResponse(parts=[TextPart(stored["content"])])]
    return [ModelRequest(parts=[UserPromptPart(stored["content"])])]


def _is_question(message: ModelMessage) -> bool:
    return message.kind == "request" and any(part.part_kind == "user-prompt" for part in message.parts)
