"""Search and durable writes in one process: Mnemon, LangGraph's SqliteStore, Chroma and mem0 (infer=False).

    python compare.py                10,000 records
    python compare.py 100000         another number
    python compare.py 10000 mnemon   only some of them

It needs the packages of requirements.txt; those that are missing are left out. LangGraph's store also needs a
Python whose sqlite3 can load extensions, such as Debian's (one that pyenv builds by default cannot), or the
package pysqlite3-binary. Build the wheel of Mnemon with `--release`: figures of a debug build mean nothing.

All get the same texts, and all call the same function for their vectors: a hash of the words with 256
dimensions. Its time is part of every figure. Mnemon is measured twice: `mnemon` searches by words and vectors,
its default, and `meaning` by vectors only, like the others. `found` is the share of queries, each of them four
words of a record, whose ten hits contain that record. A system whose filling would take more than five minutes
is stopped, and its line says so.
"""

from __future__ import annotations

import hashlib
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

DIMENSIONS = 256
SINGLE_WRITES = 200
QUERIES = 200
BATCH = 500
FILL_SECONDS = 300.0
# After this time the rate of a system is known well enough to stop it.
FIRST_SECONDS = 10.0


class Candidate(NamedTuple):
    """A system: how it writes texts, and its searches, by name. A search returns the texts of its hits."""

    write: Callable[[list[str]], Any]
    searches: dict[str, Callable[[str], Iterable[str]]]


class NotUsable(Exception):
    """A system cannot be measured here."""


def embed(text: str) -> list[float]:
    vector = [0.0] * DIMENSIONS
    for word in text.split():
        hashed = hashlib.blake2b(word.encode(), digest_size=4).digest()
        vector[hashed[0]] += 1.0 if hashed[1] & 1 else -1.0
    length = math.sqrt(sum(one * one for one in vector)) or 1.0
    return [one / length for one in vector]


def embed_all(texts: list[str]) -> list[list[float]]:
    return [embed(text) for text in texts]


def texts(count: int, seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    words = [f"word{number}" for number in range(5000)]
    for _ in range(count):
        yield " ".join(chance.choices(words, k=12))


def queries(given: list[str]) -> list[tuple[str, str]]:
    """Queries with the text that each should find."""
    return [(" ".join(one.split()[:4]), one) for one in random.Random(2).choices(given, k=QUERIES)]


def id_of(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def mnemon(folder: Path) -> Candidate:
    from mnemon import Mnemon

    memory = Mnemon(folder / "m.db", embed=embed_all, embed_model="bench", dimensions=DIMENSIONS)

    def search(query: str, **named: Any) -> list[str]:
        return [hit["record"]["content"] for hit in memory.search(query, limit=10, **named)["hits"]]

    searches = {"mnemon": search, "meaning": lambda query: search(query, recipe="meaning")}
    return Candidate(lambda batch: write_facts(memory, batch), searches)


def write_facts(memory: Any, batch: list[str]) -> None:
    from mnemon._records import record

    if len(batch) == 1:
        memory.add(batch[0], kind="fact")
    else:
        memory.import_(record(id_of(one), kind="fact", scope="semantic", tags=[], body=None, content=one) for one in batch)


def loadable_sqlite() -> Any:
    import sqlite3

    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    try:
        import pysqlite3  # pyright: ignore
    except ImportError:
        message = "needs a Python whose sqlite3 can load extensions, such as Debian's, or pysqlite3-binary"
        raise NotUsable(message) from None
    return pysqlite3  # pyright: ignore


def langgraph(folder: Path) -> Candidate:
    from langgraph.store.base import PutOp
    from langgraph.store.sqlite import SqliteStore

    connection = loadable_sqlite().connect(folder / "l.db", check_same_thread=False, isolation_level=None)
    store = SqliteStore(connection, index={"dims": DIMENSIONS, "embed": embed_all, "fields": ["text"]})
    store.setup()

    def write(batch: list[str]) -> None:
        store.batch([PutOp(("bench",), id_of(one), {"text": one}) for one in batch])

    def search(query: str) -> list[str]:
        return [hit.value["text"] for hit in store.search(("bench",), query=query, limit=10)]

    return Candidate(write, {"langgraph": search})


def chroma(folder: Path) -> Candidate:
    import chromadb

    collection = chromadb.PersistentClient(str(folder)).create_collection("bench", embedding_function=None)

    def write(batch: list[str]) -> None:
        collection.add(ids=[id_of(one) for one in batch], documents=batch, embeddings=embed_all(batch))

    def search(query: str) -> list[str]:
        return collection.query(query_embeddings=[embed(query)], n_results=10)["documents"][0]

    return Candidate(write, {"chroma": search})


def mem0(folder: Path) -> Candidate:
    os.environ.setdefault("OPENAI_API_KEY", "unused")
    os.environ.setdefault("MEM0_TELEMETRY", "False")
    os.environ.setdefault("MEM0_DIR", str(folder))
    from mem0 import Memory

    path = str(folder / "qdrant")
    store = {"provider": "qdrant", "config": {"path": path, "on_disk": True, "embedding_model_dims": DIMENSIONS}}
    memory = Memory.from_config({"vector_store": store, "history_db_path": str(folder / "history.db")})
    memory.embedding_model.embed = lambda text, *rest: embed(text)

    def write(batch: list[str]) -> None:
        for one in batch:
            memory.add(one, user_id="bench", infer=False)

    def search(query: str) -> list[str]:
        return [hit["memory"] for hit in memory.search(query, filters={"user_id": "bench"}, top_k=10)["results"]]

    return Candidate(write, {"mem0": search})


CANDIDATES = {"mnemon": mnemon, "langgraph": langgraph, "chroma": chroma, "mem0": mem0}


def fill(write: Callable[[list[str]], Any], given: list[str]) -> float:
    """Records per second."""
    began = time.perf_counter()
    for start in range(0, len(given), BATCH):
        write(given[start : start + BATCH])
        taken, done = time.perf_counter() - began, min(start + BATCH, len(given))
        needed = taken * len(given) / done
        if taken > FILL_SECONDS or taken > FIRST_SECONDS and needed > FILL_SECONDS:
            raise NotUsable(f"stopped after {done} records: filling would take {needed / 60:.0f} minutes ({done / taken:.0f} records/s)")
    return len(given) / (time.perf_counter() - began)


def timed(search: Callable[[str], Iterable[str]], given: list[str]) -> str:
    asked = queries(given)
    # Systems load their indexes when they are first asked.
    search(asked[0][0])
    times: list[float] = []
    found = 0
    for query, text in asked:
        began = time.perf_counter()
        hits = search(query)
        times.append(time.perf_counter() - began)
        found += text in hits
    p50, p99 = statistics.median(times), sorted(times)[len(times) * 99 // 100]
    return f"search p50 {p50 * 1000:8.2f} ms, p99 {p99 * 1000:8.2f} ms, found {found / len(asked):5.0%}"


def measure(name: str, given: list[str]) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            write, searches = CANDIDATES[name](Path(folder))
        except ImportError as error:
            print(f"{name:10} not installed: {error.name}")
            return
        except NotUsable as error:
            print(f"{name:10} {error}")
            return
        single, rest = given[:SINGLE_WRITES], given[SINGLE_WRITES:]
        writes: list[float] = []
        for one in single:
            began = time.perf_counter()
            write([one])
            writes.append(time.perf_counter() - began)
        print(f"{name:10} single durable write p50 {statistics.median(writes) * 1000:8.2f} ms", end="   ", flush=True)
        try:
            print(f"filling {fill(write, rest):8.0f} records/s", flush=True)
        except NotUsable as error:
            print(error)
            return
        for label, search in searches.items():
            print(f"{label:10} {timed(search, given)}", flush=True)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(f"{count} records, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    given = list(texts(count, seed=1))
    for name in sys.argv[2:] or CANDIDATES:
        measure(name, given)


if __name__ == "__main__":
    main()
