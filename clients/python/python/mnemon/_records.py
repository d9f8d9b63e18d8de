"""Records that adapters keep under ids and tags of their own."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal

from ._log import log
from .errors import BusyError, InvalidError, NotFoundError

if TYPE_CHECKING:
    from ._sync.client import Mnemon


# A request may name this many tags.
TAGS_PER_REQUEST = 20
# How long a write waits for its turn on the server, which works on two imports of a tenant at a time.
PATIENCE = 60.0


def digest(*parts: str) -> str:
    """A name for a list of texts that fits into ids and tags."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def record(
    id: str,
    *,
    kind: str,
    scope: str,
    tags: Sequence[str],
    body: Any,
    content: str = "",
    created: datetime | None = None,
    expires: datetime | None = None,
    metadata: Mapping[str, Any] | None = None,
    owner: Mapping[str, str] | None = None,
    origin: str = "agent",
) -> dict[str, Any]:
    """A record for an import. The server sets its tenant, number and version."""
    now = datetime.now(timezone.utc)
    made: dict[str, Any] = {
        "v": 1,
        "id": id,
        "tenant": "default",
        "scope": scope,
        "kind": kind,
        "namespace": "long-term",
        "content": content.replace("\0", ""),
        "body": body,
        "tags": list(tags),
        "origin": origin,
        "created": created or now,
        "updated": now,
        "metadata": dict(metadata or {}),
    }
    if owner:
        made["owner"] = dict(owner)
    if expires is not None:
        made["expires"] = expires
    return made


def find(memory: Mnemon, id: str) -> dict[str, Any] | None:
    """The record with this id."""
    try:
        records: list[Any] = memory.get(id)["records"]
    except NotFoundError:
        return None
    return records[0] if records else None


def find_by_tags(memory: Mnemon, tags: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The records with one of these tags, each once."""
    seen: set[str] = set()
    for start in range(0, len(tags), TAGS_PER_REQUEST):
        for found in memory.list_all(tags=tags[start : start + TAGS_PER_REQUEST], limit=1000):
            if found["id"] not in seen:
                seen.add(found["id"])
                yield dict(found)


def forget_by_tags(memory: Mnemon, tags: Sequence[str]) -> None:
    """Delete the records with one of these tags."""
    for start in range(0, len(tags), TAGS_PER_REQUEST):
        while memory.forget(tags=tags[start : start + TAGS_PER_REQUEST])["more"]:
            pass


class _Write:
    def __init__(self, records: list[dict[str, Any]], conflict: Literal["skip", "replace"]) -> None:
        self.records = records
        self.conflict: Literal["skip", "replace"] = conflict
        self.done = False
        self.error: BaseException | None = None


class Writer:
    """Stores records under given ids.

    Threads that write at the same time share one request: the thread that gets its turn sends
    the records of all that wait.
    """

    def __init__(self, memory: Mnemon) -> None:
        self._memory = memory
        self._guard = threading.Lock()
        self._turn = threading.Lock()
        self._waiting: list[_Write] = []

    def write(self, records: Iterable[dict[str, Any]], conflict: Literal["skip", "replace"] = "replace") -> None:
        """Store records. `conflict` says which record stays if one with the same id is there."""
        mine = _Write(list(records), conflict)
        if not mine.records:
            return
        with self._guard:
            self._waiting.append(mine)
        with self._turn:
            if not mine.done:
                with self._guard:
                    group, self._waiting = self._waiting, []
                self._send(group)
        if mine.error is not None:
            raise mine.error

    def _send(self, group: list[_Write]) -> None:
        for conflict in ("replace", "skip"):
            writes = [one for one in group if one.conflict == conflict]
            try:
                self._import([record for one in writes for record in one.records], conflict)
            except InvalidError as error:
                if len(writes) == 1:
                    writes[0].error = error
                else:
                    # One of them is wrong; the others must not suffer for it.
                    for one in writes:
                        self._send([one])
            except BaseException as error:
                for one in writes:
                    one.error = error
            for one in writes:
                one.done = True

    def _import(self, records: list[dict[str, Any]], conflict: Literal["skip", "replace"]) -> None:
        unique: dict[str, dict[str, Any]] = {}
        for one in records:
            if conflict == "replace" or one["id"] not in unique:
                unique[one["id"]] = one
        if not unique:
            return
        patience = time.monotonic() + PATIENCE
        while True:
            try:
                answer = self._memory.import_(unique.values(), on_conflict=conflict)
                break
            except BusyError:
                if time.monotonic() > patience:
                    raise
        for notice in answer.get("notices", []):
            log.warning("%s", notice)
