"""OpenAI Agents SDK: a session.

>>> import asyncio
>>> from mnemon import Mnemon
>>> from mnemon.openai_agents import MnemonSession
>>> memory = Mnemon(URL)
>>> session = MnemonSession(memory, "oa-doc")
>>> asyncio.run(session.add_items([{"role": "user", "content": "I drink green tea"}]))
>>> [item["content"] for item in asyncio.run(session.get_items())]
['I drink green tea']
>>> memory.close()
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents.items import TResponseInputItem
from agents.memory import SessionSettings
from agents.memory.session import SessionABC

from . import Mnemon
from ._conversation import Conversation, Entry, Role

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


class MnemonSession(SessionABC):
    """The items of a session, in the conversation of the same name.

    Items are read back as they were added. Their texts are found by every search of the memory.
    """

    def __init__(
        self,
        memory: Mnemon,
        session_id: str,
        *,
        user: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._conversation = Conversation(memory, "openai", session_id, user)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        wanted = limit if limit is not None else getattr(self.session_settings, "limit", None)
        found: list[Any] = [] if wanted == 0 else await asyncio.to_thread(self._conversation.read, wanted)
        return found

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await asyncio.to_thread(self._conversation.append, [_entry(dict(item)) for item in items])

    async def pop_item(self) -> TResponseInputItem | None:
        found: Any = await asyncio.to_thread(self._conversation.pop)
        return found

    async def clear_session(self) -> None:
        await asyncio.to_thread(self._conversation.clear)


def _entry(item: dict[str, Any]) -> Entry:
    kind = item.get("type", "message")
    if kind == "function_call_output":
        return Entry("tool", _text(item.get("output")), item)
    if kind == "function_call":
        return Entry("assistant", f"{item.get('name')} {item.get('arguments')}", item)
    return Entry(ROLES.get(str(item.get("role")), "assistant"), _text(item.get("content")), item)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, (list, tuple)):
        return "\n".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    return "" if content is None else json.dumps(content)
