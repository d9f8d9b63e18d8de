"""LangGraph's PostgresStore with the texts and vectors of `mnemon-bench postgres`.

Arguments: the URL of an empty database and a file with lines of {"text", "vector"}; the last 100
lines are queries. Prints a line per figure. Needs langgraph-checkpoint-postgres and psycopg[binary,pool].
"""

import json
import sys
import threading
import time

from langgraph.store.base import PutOp
from langgraph.store.postgres import PostgresStore

BATCH = 1000
SECONDS = 4.0


def read(path):
    with open(path) as lines:
        return [json.loads(line) for line in lines]


def ingest(store, items):
    start = time.perf_counter()
    for at in range(0, len(items), BATCH):
        part = items[at : at + BATCH]
        store.batch(
            [PutOp(("bench",), f"n{at + i}", {"text": item["text"]}) for i, item in enumerate(part)]
        )
    return len(items) / (time.perf_counter() - start)


def searches(store, queries):
    times = []
    for query in queries:
        start = time.perf_counter()
        store.search(("bench",), query=query["text"], limit=10)
        times.append(time.perf_counter() - start)
    times.sort()
    return times[len(times) // 2] * 1e3, times[int(len(times) * 0.99) - 1] * 1e3


def writes(store, items, writers):
    counts, end = [0] * writers, time.perf_counter() + SECONDS

    def work(number):
        at = number * 31
        while time.perf_counter() < end:
            text = items[at % len(items)]["text"]
            store.put(("writes", str(writers)), f"{number}-{at}", {"text": text})
            counts[number] += 1
            at += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / SECONDS


def main(url, path):
    items = read(path)
    queries, items = items[-100:], items[:-100]
    vectors = {item["text"]: item["vector"] for item in items + queries}
    index = {
        "dims": len(items[0]["vector"]),
        "embed": lambda texts: [vectors[text] for text in texts],
        "fields": ["text"],
    }
    pool = {"min_size": 2, "max_size": 16}
    with PostgresStore.from_conn_string(url, pool_config=pool, index=index) as store:
        store.setup()
        print(f"ingest with vectors, records/s\t{ingest(store, items):.0f}")
        searches(store, queries[:10])
        half, most = searches(store, queries)
        print(f"search by meaning, p50, ms\t{half:.2f}")
        print(f"search by meaning, p99, ms\t{most:.2f}")
        for writers in (1, 8, 64):
            rate = writes(store, items[:2000], writers)
            print(f"single durable writes per second, {writers} writers\t{rate:.0f}")


main(sys.argv[1], sys.argv[2])
