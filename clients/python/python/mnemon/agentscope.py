"""AgentScope 1: short-term and long-term memory of an agent.

>>> import asyncio
>>> from agentscope.message import Msg
>>> from mnemon import Mnemon
>>> from mnemon.agentscope import MnemonLongTermMemory, MnemonMemory
>>> memory = Mnemon(URL)
>>> async def main():
...     messages = MnemonMemory(memory, "as-doc", user="as-doc")
...     await messages.add(Msg("ann", "I drink green tea", "user"))
...     known = MnemonLongTermMemory(memory, user="as-doc")
...     await known.record_to_memory("a preference", ["Ann drinks green tea"])
...     return [message.content for message in await messages.get_memory()], await known.retrieve(Msg("ann", "tea?", "user"))
>>> asyncio.run(main())
(['I drink green tea'], 'Ann drinks green tea')
>>> memory.close()

`ReActAgent(…, memory=MnemonMemory(…), long_term_memory=MnemonLongTermMemory(…))` works in all three modes
of long-term memory, and with AgentScope's own compression.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from agentscope.memory import LongTermMemoryBase, MemoryBase
from agentscope.message import Msg, TextBlock
from agentscope.tool import ToolResponse

from . import Mnemon
from ._conversation import Conversation, Entry, Role
from ._records import Writer, digest, find, record
from .errors import NotFoundError

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
# Messages that AgentScope makes of recalled text. Recording them would repeat the memory to itself.
RECALLED = "long_term_memory"


class MnemonMemory(MemoryBase):
    """The messages of an agent, in the conversation `session`, with marks and compression.

    Messages, marks and the summary of the compressed messages are there after a restart. Messages that
    were compressed leave the prompt, but not the conversation: every search of the memory finds them.
    """

    def __init__(self, memory: Mnemon, session: str, *, user: str | None = None) -> None:
        super().__init__()
        self._memory = memory
        self._conversation = Conversation(memory, "agentscope", session, user)
        self._writer = Writer(memory)
        self._user = user
        self._id = f"asm-{digest(session, user or '')}"
        # A change of the marks reads and writes; two of them must not cross.
        self._guard = threading.Lock()

    async def add(
        self,
        memories: Msg | list[Msg] | None,
        marks: str | list[str] | None = None,
        allow_duplicates: bool = False,
        **kwargs: Any,
    ) -> None:
        messages = [memories] if isinstance(memories, Msg) else list(memories or [])
        if messages:
            await asyncio.to_thread(self._add, messages, _marks(marks), allow_duplicates)

    def _add(self, messages: list[Msg], marks: list[str], allow_duplicates: bool) -> None:
        if not allow_duplicates:
            known = {message.id for message, _ in self._read()}
            messages = [message for message in messages if message.id not in known]
        self._conversation.append([_entry(message, marks) for message in messages])

    async def get_memory(
        self,
        mark: str | None = None,
        exclude_mark: str | None = None,
        prepend_summary: bool = True,
        **kwargs: Any,
    ) -> list[Msg]:
        for one in (mark, exclude_mark):
            if one is not None and not isinstance(one, str):
                raise TypeError(f"a mark must be a string, not {type(one).__name__}")
        found, summary = await asyncio.to_thread(lambda: (self._read(), self._state()["summary"]))
        chosen = [
            message
            for message, marks in found
            if (mark is None or mark in marks) and (exclude_mark is None or exclude_mark not in marks)
        ]
        return [Msg("user", summary, "user"), *chosen] if prepend_summary and summary else chosen

    async def size(self) -> int:
        return len(await asyncio.to_thread(self._read))

    async def clear(self) -> None:
        def clear() -> None:
            self._conversation.clear()
            try:
                self._memory.delete(self._id)
            except NotFoundError:
                pass

        await asyncio.to_thread(clear)

    async def delete(self, msg_ids: list[str], **kwargs: Any) -> int:
        wanted = set(msg_ids)
        return await asyncio.to_thread(self._delete, lambda message, _: message.id in wanted)

    async def delete_by_mark(self, mark: str | list[str], *args: Any, **kwargs: Any) -> int:
        wanted = set(_marks(mark))
        return await asyncio.to_thread(self._delete, lambda _, marks: bool(wanted.intersection(marks)))

    def _delete(self, chosen: Callable[[Msg, list[str]], bool]) -> int:
        changed = self._state()["marks"]
        return self._conversation.remove_where(lambda stored: chosen(*_message(stored, changed)))

    async def update_messages_mark(
        self, new_mark: str | None, old_mark: str | None = None, msg_ids: list[str] | None = None
    ) -> int:
        new, old = (None if mark is None else _marks(mark)[0] for mark in (new_mark, old_mark))
        return await asyncio.to_thread(self._update_marks, new, old, msg_ids)

    def _update_marks(self, new: str | None, old: str | None, ids: list[str] | None) -> int:
        changed: dict[str, list[str]] = {}
        count = 0
        with self._guard:
            found = self._read()
            for message, marks in found:
                if (ids is not None and message.id not in ids) or (old is not None and old not in marks):
                    continue
                after = [mark for mark in marks if mark != old]
                if new is not None and new not in after:
                    after.append(new)
                if after != marks:
                    changed[message.id] = after
                    count += 1
            if changed:
                state = self._state()
                present = {message.id for message, _ in found}
                kept = {id: marks for id, marks in state["marks"].items() if id in present}
                self._set_state({**state, "marks": {**kept, **changed}})
        return count

    async def update_compressed_summary(self, summary: str) -> None:
        def update() -> None:
            with self._guard:
                self._set_state({**self._state(), "summary": summary})

        await asyncio.to_thread(update)

    def state_dict(self) -> dict[str, Any]:
        """The whole conversation, as AgentScope's own memory has it, for its sessions."""
        content = [[message.to_dict(), marks] for message, marks in self._read()]
        return {"_compressed_summary": self._state()["summary"], "content": content}

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Replace the conversation by a saved one."""
        if strict and "content" not in state_dict:
            raise KeyError("the state has no `content`")
        # Older states have messages without marks.
        pairs = [(one, []) if isinstance(one, dict) else one for one in state_dict.get("content", [])]
        entries = [_entry(Msg.from_dict(message), list(marks)) for message, marks in pairs]
        self._conversation.clear()
        self._conversation.append(entries)
        self._set_state({"summary": state_dict.get("_compressed_summary", ""), "marks": {}})

    def _read(self) -> list[tuple[Msg, list[str]]]:
        changed = self._state()["marks"]
        return [_message(stored, changed) for stored in self._conversation.read()]

    def _state(self) -> dict[str, Any]:
        """The summary, and the marks that were changed after their messages were added."""
        found = find(self._memory, self._id)
        return {"summary": "", "marks": {}} if found is None else found["body"]

    def _set_state(self, state: dict[str, Any]) -> None:
        owner = {"session": self._conversation.session, **({"user": self._user} if self._user else {})}
        made = record(self._id, kind="state", scope="state", tags=[], body=state, content=state["summary"], owner=owner)
        self._writer.write([made])


class MnemonLongTermMemory(LongTermMemoryBase):
    """What is known about a user, for `static_control`, `agent_control` and both.

    `record` stores the messages of a reply, and `retrieve` searches all that is known: the developer's
    side. `record_to_memory` and `retrieve_from_memory` are the tools of the model.
    """

    def __init__(self, memory: Mnemon, *, user: str, agent: str | None = None) -> None:
        super().__init__()
        self._memory = memory
        self._user = user
        self._agent = agent

    async def record(self, msgs: Sequence[Msg | None], **kwargs: Any) -> int:
        """Store messages; those that were stored before are left alone. Returns the number of new ones."""
        texts = [
            (message.id, f"{message.name}: {text}")
            for message in msgs
            if message is not None and message.role != "system" and message.name != RECALLED
            for text in [(message.get_text_content() or "").strip()]
            if text
        ]
        return await asyncio.to_thread(self._record, texts)

    def _record(self, texts: list[tuple[str, str]]) -> int:
        new = 0
        for id, text in texts:
            # The id of the message is the idempotency key: a reply records the whole conversation.
            key = f"agentscope-{digest(self._user, id)}"
            made = self._memory.add(text, user=self._user, agent=self._agent, kind="fact", origin="agent", key=key)
            new += made["commit"] is not None
        return new

    async def retrieve(self, msg: Msg | list[Msg] | None, limit: int = 5, **kwargs: Any) -> str:
        messages = [msg] if isinstance(msg, Msg) else list(msg or [])
        query = "\n".join(message.get_text_content() or "" for message in messages)
        return "\n".join(await asyncio.to_thread(self._search, [query], limit))

    async def record_to_memory(self, thinking: str, content: list[str], **kwargs: Any) -> ToolResponse:
        """Use this function to record important information that you may need later. The target content
        should be specific and concise, e.g. who, when, where, do what, why, how, etc.

        Args:
            thinking (`str`):
                Your thinking and reasoning about what to record.
            content (`list[str]`):
                The content to remember, which is a list of strings.
        """
        facts = [text for text in content if text.strip()]
        if not facts:
            return _response("Nothing was recorded: the content is empty.")
        await asyncio.to_thread(self._memory.long_term_record, facts, thinking=thinking or None, user=self._user)
        return _response(f"Recorded {len(facts)} of {len(content)} items.")

    async def retrieve_from_memory(self, keywords: list[str], limit: int = 5, **kwargs: Any) -> ToolResponse:
        """Retrieve the memory based on the given keywords.

        Args:
            keywords (`list[str]`):
                The keywords to search for in the memory, which should be specific and concise, e.g. the
                person's name, the date, the location, etc.
            limit (`int`, optional):
                The maximum number of memories to retrieve for each keyword. Defaults to 5.
        """
        found = await asyncio.to_thread(self._search, keywords, limit)
        return _response("\n".join(found) or "Nothing is known about it.")

    def _search(self, queries: Iterable[str], limit: int) -> list[str]:
        found: dict[str, None] = {}
        for query in queries:
            if query.strip():
                hits = self._memory.search(query, user=self._user, kind=["fact", "note"], limit=limit)["hits"]
                found.update(dict.fromkeys(hit["record"]["content"] for hit in hits))
        return list(found)


def _response(text: str) -> ToolResponse:
    return ToolResponse(content=[TextBlock(type="text", text=text)])


def _marks(marks: str | list[str] | None) -> list[str]:
    found = [] if marks is None else [marks] if isinstance(marks, str) else marks
    if not isinstance(found, list) or not all(isinstance(mark, str) for mark in found):
        raise TypeError(f"marks must be a string or a list of strings, not {marks!r}")
    # AgentScope's own marks are values of an enum.
    return [str.__str__(mark) for mark in found]


def _entry(message: Msg, marks: list[str]) -> Entry:
    return Entry(ROLES[message.role], message.get_text_content() or "", {"msg": message.to_dict(), "marks": marks})


def _message(stored: dict[str, Any], changed: dict[str, list[str]]) -> tuple[Msg, list[str]]:
    if "msg" in stored:
        message = Msg.from_dict(stored["msg"])
        return message, list(changed.get(message.id, stored["marks"]))
    # Another program added it: its role and text are all that both sides know.
    role = "user" if stored["role"] == "tool" else stored["role"]
    message = Msg(role, stored["content"], role)
    message.id = digest(role, stored["content"])
    return message, list(changed.get(message.id, []))
