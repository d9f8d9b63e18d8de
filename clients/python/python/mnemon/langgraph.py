"""LangGraph: a store for long-term memory, and a saver for checkpoints.

>>> from langgraph.graph import START, MessagesState, StateGraph
>>> from mnemon import Mnemon
>>> from mnemon.langgraph import MnemonSaver, MnemonStore
>>> memory = Mnemon(URL)
>>> store = MnemonStore(memory)
>>> store.put(("users", "ann"), "drink", {"text": "Ann drinks green tea"})
>>> [item.key for item in store.search(("users",), query="tea")]
['drink']
>>> graph = StateGraph(MessagesState)
>>> _ = graph.add_node("answer", lambda state: {"messages": ["fine"]})
>>> _ = graph.add_edge(START, "answer")
>>> app = graph.compile(checkpointer=MnemonSaver(memory), store=store)
>>> config = {"configurable": {"thread_id": "doc-1"}}
>>> len(app.invoke({"messages": ["how are you?"]}, config)["messages"])
2
>>> len(app.invoke({"messages": ["and now?"]}, config)["messages"])
4
>>> memory.close()

Both take a `Mnemon` and run its calls in threads where LangGraph asks for async methods.
"""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, cast

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    tokenize_path,
)

from ._records import Writer, digest, find, find_by_tags, forget_by_tags, record
from .errors import NotFoundError

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from . import Mnemon

Namespace = tuple[str, ...]

# A search of the server returns at most this many hits.
HITS = 1000
# Texts of this length or shorter can be filtered by the server.
FILTER_TEXT = 256
# Checkpoints that may have been made within one millisecond.
SAME_MOMENT = 10


class MnemonStore(BaseStore):
    """LangGraph's store on Mnemon: all operations, search by words and meaning, TTL.

    Each item is a record; its text is found by every other search of the memory, too. `name`
    separates several stores of one memory. `fields` are the paths of the values that are searched;
    all texts by default. Embeddings are made by the server.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Mnemon,
        *,
        name: str = "langgraph",
        fields: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        self._memory = memory
        self._writer = Writer(memory)
        self._name = name
        self._fields = None if fields is None or list(fields) == ["$"] else list(fields)
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations. Reads come before writes, as in the other stores of LangGraph."""
        asked = list(ops)
        keys = [(op.namespace, op.key) for op in asked if isinstance(op, (GetOp, PutOp))]
        known = self._known(keys)
        results: list[Result] = []
        writes: dict[tuple[Namespace, str], PutOp] = {}
        for op in asked:
            if isinstance(op, GetOp):
                results.append(self._get(op, known.get((op.namespace, op.key))))
            elif isinstance(op, SearchOp):
                results.append(cast("list[Item]", self._search(op)))
            elif isinstance(op, ListNamespacesOp):
                results.append(self._namespaces(op))
            elif isinstance(op, PutOp):
                writes[(op.namespace, op.key)] = op
                results.append(None)
            else:
                raise ValueError(f"{type(op).__name__} is not an operation of a store")
        self._write(writes, known)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _tag(self, prefix: Namespace) -> str:
        """The tag of all items below a namespace."""
        return f"lgs-{digest(self._name, *prefix)}"

    def _item_tag(self, namespace: Namespace, key: str) -> str:
        """The tag, and the id, of one item."""
        return f"lgi-{digest(self._name, *namespace, '', key)}"

    def _known(self, keys: list[tuple[Namespace, str]]) -> dict[tuple[Namespace, str], dict[str, Any]]:
        """The records of these items, as far as they are there."""
        if len(keys) == 1:
            one = find(self._memory, self._item_tag(*keys[0]))
            return {} if one is None else {keys[0]: one}
        tags = list(dict.fromkeys(self._item_tag(*key) for key in keys))
        found = {one["id"]: one for one in find_by_tags(self._memory, tags)}
        return {key: found[self._item_tag(*key)] for key in keys if self._item_tag(*key) in found}

    def _get(self, op: GetOp, found: dict[str, Any] | None) -> Item | None:
        if found is None:
            return None
        self._refresh(found, op.refresh_ttl)
        return Item(**_item(found))

    def _refresh(self, found: dict[str, Any], wanted: bool) -> None:
        minutes = found["body"].get("ttl")
        if wanted and minutes is not None:
            try:
                self._memory.update(found["id"], ttl=timedelta(minutes=minutes))
            except NotFoundError:
                pass

    def _search(self, op: SearchOp) -> list[SearchItem]:
        tags, condition = [self._tag(op.namespace_prefix)], _server_filter(op.filter)
        end = op.offset + op.limit
        matches: list[tuple[dict[str, Any], float | None]] = []
        if op.query:
            # Without a condition that only this client can check, the best hits are enough.
            limit = min(HITS, end if not op.filter else HITS)
            hits = self._memory.search(op.query, tags=tags, filter=condition, limit=limit, min_score=0.0)
            matches = [(dict(hit["record"]), hit["score"]) for hit in hits["hits"] if _matches(hit["record"], op.filter)]
        if len(matches) < end:
            # Items without a match follow those with one, as in the other stores of LangGraph.
            seen = {found["id"] for found, _ in matches}
            rest = self._memory.list_all(tags=tags, filter=condition, limit=min(HITS, max(end, 10)))
            others = ((dict(found), None) for found in rest if found["id"] not in seen and _matches(found, op.filter))
            matches += list(islice(others, end - len(matches)))
        chosen = matches[op.offset : end]
        for found, _ in chosen:
            self._refresh(found, op.refresh_ttl)
        return [SearchItem(**_item(found), score=score) for found, score in chosen]

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        found: set[Namespace] = set()
        for one in self._memory.list_all(tags=[self._tag(_fixed_prefix(conditions))], limit=HITS):
            namespace = tuple(one["body"]["namespace"])  # type: ignore[index, call-overload]
            if all(_fits(condition, namespace) for condition in conditions):
                found.add(namespace[: op.max_depth])
        return sorted(found)[op.offset : op.offset + op.limit]

    def _write(
        self, writes: dict[tuple[Namespace, str], PutOp], known: dict[tuple[Namespace, str], dict[str, Any]]
    ) -> None:
        gone = [self._item_tag(*key) for key, op in writes.items() if op.value is None and key in known]
        if gone:
            forget_by_tags(self._memory, gone)
        stored = [(op, known.get(key)) for key, op in writes.items() if op.value is not None]
        self._writer.write(self._record(op, before) for op, before in stored)

    def _record(self, op: PutOp, before: dict[str, Any] | None) -> dict[str, Any]:
        now = datetime.now(timezone.utc)
        value = dict(op.value or {})
        tag = self._item_tag(op.namespace, op.key)
        prefixes = [op.namespace[:length] for length in range(len(op.namespace) + 1)]
        body = {
            "namespace": list(op.namespace),
            "key": op.key,
            "value": value,
            "created_at": before["body"]["created_at"] if before else now.isoformat(),
            "updated_at": now.isoformat(),
            "ttl": op.ttl,
        }
        return record(
            tag,
            kind="fact",
            scope="semantic",
            tags=[tag, *(self._tag(prefix) for prefix in prefixes)],
            body=body,
            content=self._text(value, op.index),
            created=now,
            expires=None if op.ttl is None else now + timedelta(minutes=op.ttl),
            metadata={"value": {k: v for k, v in value.items() if _filterable(k, v)}},
        )

    def _text(self, value: dict[str, Any], index: Literal[False] | list[str] | None) -> str:
        """The part of a value that is searched."""
        if index is False:
            return ""
        paths = self._fields if index is None else index
        if paths is None:
            return "\n".join(_texts(value))
        return "\n".join(text for path in paths for text in get_text_at_path(value, tokenize_path(path)))


def _item(found: dict[str, Any]) -> dict[str, Any]:
    body = found["body"]
    return {
        "namespace": tuple(body["namespace"]),
        "key": body["key"],
        "value": body["value"],
        "created_at": datetime.fromisoformat(body["created_at"]),
        "updated_at": datetime.fromisoformat(body["updated_at"]),
    }


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            for text in _texts(inner):
                yield f"{name}: {text}"
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)
    elif value is not None:
        yield str(value)


def _filterable(name: str, value: Any) -> bool:
    """Whether the server can compare it."""
    plain = isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) <= FILTER_TEXT)
    return plain and "." not in name and not name.startswith("$") and len(name) <= FILTER_TEXT


def _server_filter(wanted: dict[str, Any] | None) -> dict[str, Any] | None:
    """The part of a condition that the server can check: equal texts and truth values.

    Numbers are left to `_matches`: Python and JSON compare 1, 1.0 and true differently.
    """
    condition: dict[str, Any] = {}
    for name, value in (wanted or {}).items():
        plain = value["$eq"] if isinstance(value, dict) and list(value) == ["$eq"] else value
        if isinstance(plain, str) and _filterable(name, plain):
            condition[f"value.{name}"] = plain
    return condition or None


def _matches(found: Any, wanted: dict[str, Any] | None) -> bool:
    value = found["body"]["value"]
    return all(_compare(value.get(name), condition) for name, condition in (wanted or {}).items())


def _compare(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        if any(str(name).startswith("$") for name in wanted):
            return all(_operator(value, name, other) for name, other in wanted.items())
        return isinstance(value, dict) and all(_compare(value.get(k), v) for k, v in wanted.items())
    if isinstance(wanted, (list, tuple)):
        same = isinstance(value, (list, tuple)) and len(value) == len(wanted)
        return same and all(_compare(v, w) for v, w in zip(value, wanted))
    return bool(value == wanted)


def _operator(value: Any, name: str, other: Any) -> bool:
    if name == "$eq":
        return bool(value == other)
    if name == "$ne":
        return bool(value != other)
    if name not in ("$gt", "$gte", "$lt", "$lte"):
        raise ValueError(f"Unsupported operator: {name}")
    try:
        left, right = float(value), float(other)
    except (TypeError, ValueError):
        return False
    return {"$gt": left > right, "$gte": left >= right, "$lt": left < right, "$lte": left <= right}[name]


def _fits(condition: MatchCondition, namespace: Namespace) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :] if path else ()
    return all(wanted in ("*", label) for wanted, label in zip(path, part))


def _fixed_prefix(conditions: Sequence[MatchCondition]) -> Namespace:
    """The longest beginning that all matching namespaces share."""
    longest: Namespace = ()
    for condition in conditions:
        if condition.match_type == "prefix":
            path = tuple(condition.path)
            fixed = path[: path.index("*")] if "*" in path else path
            longest = max(longest, fixed, key=len)
    return longest


class MnemonSaver(BaseCheckpointSaver[int]):
    """LangGraph's checkpoints on Mnemon, with all optional methods.

    Each checkpoint and each pending write is a record with the serialised state. It is not
    searched, and not screened for secrets. `name` separates several savers of one memory.
    """

    def __init__(
        self, memory: Mnemon, *, name: str = "langgraph", serde: SerializerProtocol | None = None
    ) -> None:
        super().__init__(serde=serde)
        self._memory = memory
        self._writer = Writer(memory)
        self._name = name

    # Tags: all checkpoints; those of a thread, with their writes; those of a namespace of a thread;
    # those of a run; the writes of a checkpoint.

    def _all(self) -> str:
        return f"lgc-{digest(self._name)}"

    def _thread(self, thread: str) -> str:
        return f"lgt-{digest(self._name, thread)}"

    def _namespace(self, thread: str, namespace: str) -> str:
        return f"lgn-{digest(self._name, thread, namespace)}"

    def _run(self, run: str) -> str:
        return f"lgr-{digest(self._name, run)}"

    def _writes(self, thread: str, namespace: str, checkpoint: str) -> str:
        return f"lgw-{digest(self._name, thread, namespace, checkpoint)}"

    def _checkpoint(self, thread: str, namespace: str, checkpoint: str) -> str:
        """The id of a checkpoint."""
        return f"lgp-{digest(self._name, thread, namespace, checkpoint)}"

    def _pack(self, value: Any) -> list[str]:
        kind, data = self.serde.dumps_typed(value)
        return [kind, base64.b64encode(data).decode()]

    def _unpack(self, packed: list[str]) -> Any:
        return self.serde.loads_typed((packed[0], base64.b64decode(packed[1])))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        thread, namespace, parent = _place(config)
        merged: dict[str, Any] = dict(get_serializable_checkpoint_metadata(config, metadata))
        body = {
            "thread": thread,
            "namespace": namespace,
            "id": checkpoint["id"],
            "parent": parent,
            "checkpoint": self._pack(checkpoint),
            "metadata": self._pack(merged),
            "run": merged.get("run_id"),
        }
        self._writer.write([self._checkpoint_record(body)])
        return _config(thread, namespace, checkpoint["id"])

    def _checkpoint_record(self, body: dict[str, Any]) -> dict[str, Any]:
        thread, namespace = body["thread"], body["namespace"]
        tags = [self._all(), self._thread(thread), self._namespace(thread, namespace)]
        if body["run"]:
            tags.append(self._run(str(body["run"])))
        return record(
            self._checkpoint(thread, namespace, body["id"]),
            kind="state",
            scope="state",
            tags=tags,
            body=body,
            created=_time_of(body["id"]),
        )

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        thread, namespace, checkpoint = _place(config)
        kept: list[dict[str, Any]] = []
        replaced: list[dict[str, Any]] = []
        for position, (channel, value) in enumerate(writes):
            index = WRITES_IDX_MAP.get(channel, position)
            body = {
                "thread": thread,
                "namespace": namespace,
                "checkpoint": checkpoint,
                "task": task_id,
                "path": task_path,
                "index": index,
                "channel": channel,
                "value": self._pack(value),
            }
            # A task that runs again does not change its writes; its errors and interrupts are new.
            (replaced if channel in WRITES_IDX_MAP else kept).append(self._write_record(body))
        self._writer.write(kept, "skip")
        self._writer.write(replaced)

    def _write_record(self, body: dict[str, Any]) -> dict[str, Any]:
        tag = self._writes(body["thread"], body["namespace"], body["checkpoint"] or "")
        return record(
            f"lgx-{digest(tag, body['task'], str(body['index']))}",
            kind="state",
            scope="state",
            tags=[tag, self._thread(body["thread"])],
            body=body,
        )

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        thread, namespace, checkpoint = _place(config)
        if checkpoint:
            found = find(self._memory, self._checkpoint(thread, namespace, checkpoint))
        else:
            tag = self._namespace(thread, namespace)
            newest = self._memory.list(tags=[tag], limit=SAME_MOMENT)["records"]
            found = next(_newest_first(dict(one) for one in newest), None)
        return None if found is None else next(self._tuples([found]))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        chosen = islice(self._matching(config, filter or {}, before), limit)
        while group := list(islice(chosen, 20)):
            yield from self._tuples(group)

    def _matching(
        self, config: RunnableConfig | None, filter: dict[str, Any], before: RunnableConfig | None
    ) -> Iterator[dict[str, Any]]:
        asked = config["configurable"] if config else {}
        if not asked:
            tag = self._all()
        elif asked.get("checkpoint_ns") is None:
            tag = self._thread(str(asked["thread_id"]))
        else:
            tag = self._namespace(str(asked["thread_id"]), asked["checkpoint_ns"])
        end = get_checkpoint_id(before) if before else None
        records = (dict(one) for one in self._memory.list_all(tags=[tag], limit=100) if "id" in one["body"])  # type: ignore[operator]
        for found in _newest_first(records):
            body = found["body"]
            if asked.get("checkpoint_id") not in (None, body["id"]) or (end and body["id"] >= end):
                continue
            if filter:
                metadata = self._unpack(body["metadata"])
                if any(metadata.get(name) != value for name, value in filter.items()):
                    continue
            yield found

    def _tuples(self, found: list[dict[str, Any]]) -> Iterator[CheckpointTuple]:
        """Checkpoints with their pending writes, which are fetched together."""
        bodies = [one["body"] for one in found]
        tags = [self._writes(body["thread"], body["namespace"], body["id"]) for body in bodies]
        writes: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
        for one in find_by_tags(self._memory, tags):
            body = one["body"]
            writes.setdefault((body["thread"], body["namespace"], body["checkpoint"]), []).append(body)
        for body in bodies:
            thread, namespace = body["thread"], body["namespace"]
            mine = writes.get((thread, namespace, body["id"]), [])
            mine.sort(key=lambda one: writes_sort_key(one["path"], one["task"], one["index"]))
            yield CheckpointTuple(
                config=_config(thread, namespace, body["id"]),
                checkpoint=self._unpack(body["checkpoint"]),
                metadata=self._unpack(body["metadata"]),
                parent_config=_config(thread, namespace, body["parent"]) if body["parent"] else None,
                pending_writes=[(one["task"], one["channel"], self._unpack(one["value"])) for one in mine],
            )

    def delete_thread(self, thread_id: str) -> None:
        forget_by_tags(self._memory, [self._thread(str(thread_id))])

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        runs = [self._run(str(run)) for run in run_ids]
        self._delete(list(find_by_tags(self._memory, runs)))

    def _delete(self, checkpoints: Sequence[dict[str, Any]]) -> None:
        """Delete checkpoints with their writes; the writes first, so that none stays alone."""
        bodies = [one["body"] for one in checkpoints]
        forget_by_tags(self._memory, [self._writes(b["thread"], b["namespace"], b["id"]) for b in bodies])
        if checkpoints:
            self._memory.forget(ids=[one["id"] for one in checkpoints])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        copies: list[dict[str, Any]] = []
        for one in find_by_tags(self._memory, [self._thread(str(source_thread_id))]):
            body = {**one["body"], "thread": str(target_thread_id)}
            copies.append(self._checkpoint_record(body) if "id" in body else self._write_record(body))
        self._writer.write(copies)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"{strategy!r} is not a strategy: use keep_latest or delete")
        for thread in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread)
                continue
            found = [one for one in find_by_tags(self._memory, [self._thread(str(thread))]) if "id" in one["body"]]
            kept = self._needed(found)
            self._delete([one for one in found if one["id"] not in kept])

    def _needed(self, checkpoints: Sequence[dict[str, Any]]) -> set[str]:
        """The newest checkpoint of each namespace, with the ancestors that hold its delta channels."""
        by_place = {(one["body"]["namespace"], one["body"]["id"]): one for one in checkpoints}
        newest: dict[str, dict[str, Any]] = {}
        for one in checkpoints:
            body = one["body"]
            if body["namespace"] not in newest or body["id"] > newest[body["namespace"]]["body"]["id"]:
                newest[body["namespace"]] = one
        needed: set[str] = set()
        for namespace, start in newest.items():
            current: dict[str, Any] | None = start
            missing = set(self._unpack(start["body"]["metadata"]).get("counters_since_delta_snapshot") or ())
            while current is not None:
                needed.add(current["id"])
                missing -= set(self._unpack(current["body"]["checkpoint"])["channel_values"])
                current = by_place.get((namespace, current["body"]["parent"])) if missing else None
        return needed

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        tuples = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await asyncio.to_thread(next, tuples, None)) is not None:
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))


def _place(config: RunnableConfig) -> tuple[str, str, str | None]:
    asked = config["configurable"]
    return str(asked["thread_id"]), asked.get("checkpoint_ns") or "", get_checkpoint_id(config)


def _config(thread: str, namespace: str, checkpoint: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint}}


def _newest_first(records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Checkpoints by their ids, given by time: those of one millisecond may be in any order."""
    moment: list[dict[str, Any]] = []
    for one in records:
        if moment and one["created"] != moment[0]["created"]:
            yield from sorted(moment, key=lambda r: r["body"]["id"], reverse=True)
            moment = []
        moment.append(one)
    yield from sorted(moment, key=lambda r: r["body"]["id"], reverse=True)


def _time_of(checkpoint: str) -> datetime:
    """The time in the id of a checkpoint, so that their order is that of their ids."""
    try:
        number = uuid.UUID(checkpoint)
    except ValueError:
        number = uuid.UUID(int=0)
    if number.version != 6:
        return datetime.now(timezone.utc)
    ticks = (number.int >> 80) << 12 | (number.int >> 64) & 0xFFF
    return datetime(1582, 10, 15, tzinfo=timezone.utc) + timedelta(microseconds=ticks // 10)
