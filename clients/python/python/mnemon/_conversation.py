"""Conversations of frameworks, whose messages are read back as they were written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast
from urllib.parse import quote, unquote

from .errors import NotFoundError

if TYPE_CHECKING:
    from ._sync.client import Mnemon

Role = Literal["user", "assistant", "system", "tool"]

# Longer texts of a message go into its content, as metadata may have 64 KiB.
LONG_TEXT = 500
PAGE = 1000
# A message needs a text.
EMPTY = "(no text)"


class Entry(NamedTuple):
    """A message: its role and text for every reader, and itself for its framework."""

    role: Role
    text: str
    original: dict[str, Any]


class Conversation:
    """The messages of one session, in the conversation of the same name."""

    def __init__(self, memory: Mnemon, framework: str, session: str, user: str | None = None) -> None:
        self._memory = memory
        self._framework = framework
        self.session = session_name(session)
        self._user = user

    def append(self, entries: Sequence[Entry]) -> None:
        """Add messages, all or none."""
        if entries:
            messages = [self._message(entry) for entry in entries]
            self._memory.chat_append(self.session, message=messages, user=self._user)

    def _message(self, entry: Entry) -> dict[str, Any]:
        texts = [entry.text if entry.text.strip() else EMPTY]
        original = _moved(entry.original, texts)
        return {
            "role": entry.role,
            "content": [{"type": "text", "text": text} for text in texts],
            "metadata": {self._framework: original},
        }

    def read(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The messages, or the last ones, oldest first."""
        found: list[dict[str, Any]] = []
        count = PAGE if limit is None else max(1, min(limit, PAGE))
        try:
            for message in self._memory.chat_tail_all(self.session, user=self._user, count=count):
                if limit is not None and len(found) >= limit:
                    break
                found.append(self._original(message))
        except NotFoundError:
            return []
        return found[::-1]

    def _original(self, message: Any) -> dict[str, Any]:
        texts = [block.get("text", "") for block in message["content"] if block.get("type") == "text"]
        stored = message["metadata"].get(self._framework)
        if stored is None:
            # Somebody else added it: its text is all that both sides know.
            return {"role": message["role"].lower(), "content": "\n".join(texts)}
        return cast("dict[str, Any]", _restored(stored, texts))

    def pop(self) -> dict[str, Any] | None:
        """Remove the last message, and return it."""
        try:
            last = self._memory.chat_tail(self.session, user=self._user, count=1)["messages"]
            if not last:
                return None
            self._memory.delete(last[-1]["id"])
        except NotFoundError:
            return None
        return self._original(last[-1])

    def remove(self, position: int) -> dict[str, Any] | None:
        """Remove the message at this position, counted from the oldest, and return it."""
        try:
            messages = list(self._memory.chat_tail_all(self.session, user=self._user, count=PAGE))[::-1]
            if not 0 <= position < len(messages):
                return None
            self._memory.delete(messages[position]["id"])
        except NotFoundError:
            return None
        return self._original(messages[position])

    def remove_where(self, chosen: Callable[[dict[str, Any]], bool]) -> int:
        """Remove the messages that are chosen, and return their number."""
        count = 0
        try:
            for message in list(self._memory.chat_tail_all(self.session, user=self._user, count=PAGE)):
                if chosen(self._original(message)):
                    self._memory.delete(message["id"])
                    count += 1
        except NotFoundError:
            pass
        return count

    def clear(self) -> None:
        """Delete the conversation."""
        try:
            self._memory.chat_delete(self.session, user=self._user)
        except NotFoundError:
            pass


def _moved(value: Any, texts: list[str]) -> Any:
    """The value with its long texts replaced by their numbers in `texts`."""
    if isinstance(value, str) and value:
        if value not in texts and len(value) > LONG_TEXT:
            texts.append(value)
        return {"$text": texts.index(value)} if value in texts else value
    if isinstance(value, dict):
        moved = {str(k): _moved(v, texts) for k, v in cast("dict[Any, Any]", value).items()}
        # An object that looks like a number of ours is marked by a list.
        return {"$text": [moved["$text"]]} if list(moved) == ["$text"] else moved
    if isinstance(value, (list, tuple)):
        return [_moved(one, texts) for one in cast("list[Any]", value)]
    return value


def _restored(value: Any, texts: list[str]) -> Any:
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        if list(found) == ["$text"]:
            marked: Any = found["$text"]
            return texts[marked] if isinstance(marked, int) else {"$text": _restored(marked[0], texts)}
        return {k: _restored(v, texts) for k, v in found.items()}
    if isinstance(value, list):
        return [_restored(one, texts) for one in cast("list[Any]", value)]
    return value


def session_name(session: str) -> str:
    """A name that a conversation can have: without / \\ and .."""
    bad = any(c in "/\\%" or not c.isprintable() for c in session) or ".." in session
    return quote(session, safe="").replace("..", "%2E%2E") if bad else session


def session_of(name: str) -> str:
    return unquote(name)
