"""Search and durable writes in one process: Mnemon, LangGraph's SqliteStore, Chroma and mem0 (infer=False).

    python compare.py                10,000 records
    python compare.py 100000         another number
    python compare.py 10000 mnemon   only some of them

All get the same texts and the same vectors: a hash of the words with 256 dimensions. Mnemon asks for them
over HTTP, from a server in this process, which its figures include; the others call the function. Packages
that are not installed are left out (langgraph-checkpoint-sqlite, chromadb, mem0ai). Build the wheel with
`--release`: figures of a debug build mean nothing.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import math
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DIMENSIONS = 256
SINGLE_WRITES = 200
QUERIES = 200
BATCH = 500

Search = Callable[[str], Any]
Write = Callable[[list[str]], Any]


def embed(text: str) -> list[float]:
    vector = [0.0] * DIMENSIONS
    for word in text.split():
        hashed = hashlib.blake2b(word.encode(), digest_size=4).digest()
        vector[hashed[0]] += 1.0 if hashed[1] & 1 else -1.0
    length = math.sqrt(sum(one * one for one in vector)) or 1.0
    return [one / length for one in vector]


def texts(count: int, seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    words = [f"word{number}" for number in range(5000)]
    for _ in range(count):
        yield " ".join(chance.choices(words, k=12))


class Embeddings(http.server.BaseHTTPRequestHandler):
    """The endpoint /embeddings of OpenAI."""

    protocol_version = "HTTP/1.1"
    # Head and body in one packet: the second of two would wait for the answer to the first.
    wbufsize = 1 << 20

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        inputs = [asked] if isinstance(asked, str) else asked
        data = [{"object": "embedding", "index": n, "embedding": embed(one)} for n, one in enumerate(inputs)]
        body = json.dumps({"object": "list", "model": "bench", "data": data}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def mnemon(folder: Path) -> tuple[Write, Search]:
    from mnemon import Mnemon
    from mnemon._records import Writer, digest, record

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Embeddings)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = folder / "mnemon.toml"
    config.write_text(f'embedder = "openai:bench@http://127.0.0.1:{server.server_port}"\n')
    memory = Mnemon(folder / "m.db", config=config)
    writer = Writer(memory)

    def write(batch: list[str]) -> None:
        if len(batch) == 1:
            memory.add(batch[0], kind="fact")
        else:
            writer.write(record(f"b-{digest(one)}", kind="fact", scope="semantic", tags=[], body=None, content=one) for one in batch)

    return write, lambda query: memory.search(query, limit=10)


def langgraph(folder: Path) -> tuple[Write, Search]:
    import sqlite3

    from langgraph.store.base import PutOp
    from langgraph.store.sqlite import SqliteStore

    connection = sqlite3.connect(folder / "l.db", check_same_thread=False, isolation_level=None)
    index: Any = {"dims": DIMENSIONS, "embed": lambda given: [embed(one) for one in given], "fields": ["text"]}
    store = SqliteStore(connection, index=index)
    store.setup()

    def write(batch: list[str]) -> None:
        store.batch([PutOp(("bench",), hashlib.md5(one.encode()).hexdigest(), {"text": one}) for one in batch])

    return write, lambda query: store.search(("bench",), query=query, limit=10)


def chroma(folder: Path) -> tuple[Write, Search]:
    import chromadb

    collection = chromadb.PersistentClient(str(folder)).create_collection("bench", embedding_function=None)

    def write(batch: list[str]) -> None:
        ids = [hashlib.md5(one.encode()).hexdigest() for one in batch]
        collection.add(ids=ids, documents=batch, embeddings=[embed(one) for one in batch])

    return write, lambda query: collection.query(query_embeddings=[embed(query)], n_results=10)


def mem0(folder: Path) -> tuple[Write, Search]:
    os.environ.setdefault("OPENAI_API_KEY", "unused")
    os.environ.setdefault("MEM0_TELEMETRY", "False")
    from mem0 import Memory

    path = str(folder / "qdrant")
    store = {"provider": "qdrant", "config": {"path": path, "on_disk": True, "embedding_model_dims": DIMENSIONS}}
    memory = Memory.from_config({"vector_store": store, "history_db_path": str(folder / "history.db")})
    memory.embedding_model.embed = lambda text, *rest: embed(text)

    def write(batch: list[str]) -> None:
        for one in batch:
            memory.add(one, user_id="bench", infer=False)

    return write, lambda query: memory.search(query, filters={"user_id": "bench"})


CANDIDATES = {"mnemon": mnemon, "langgraph": langgraph, "chroma": chroma, "mem0": mem0}


def measure(name: str, count: int) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            write, search = CANDIDATES[name](Path(folder))
        except ImportError as error:
            print(f"{name:10} not installed: {error.name}")
            return
        given = list(texts(count, seed=1))
        single, rest = given[:SINGLE_WRITES], given[SINGLE_WRITES:]
        began = time.perf_counter()
        for one in single:
            write([one])
        each = (time.perf_counter() - began) / len(single)
        began = time.perf_counter()
        for start in range(0, len(rest), BATCH):
            write(rest[start : start + BATCH])
        filled = time.perf_counter() - began
        queries = [" ".join(one.split()[:4]) for one in random.Random(2).choices(given, k=QUERIES)]
        search(queries[0])
        times = []
        for query in queries:
            began = time.perf_counter()
            search(query)
            times.append(time.perf_counter() - began)
        p50 = statistics.median(times) * 1000
        rate = len(rest) / filled if filled else 0
        print(f"{name:10} search p50 {p50:8.2f} ms   single durable write {each * 1000:8.2f} ms   filling {rate:8.0f} records/s")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(f"{count} records, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    for name in sys.argv[2:] or CANDIDATES:
        measure(name, count)


if __name__ == "__main__":
    main()
