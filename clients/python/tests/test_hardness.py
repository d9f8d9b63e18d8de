"""A store in this process under processes, threads, kills, exceptions and the end of the interpreter."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from mnemon import AsyncMnemon, Mnemon

PROCESSES = 8
THREADS_EACH = 4
WRITES_EACH = 5

# Writes in threads and prints each record that was acknowledged.
WRITER = f"""
import os, sys, threading, mnemon
client = mnemon.Mnemon(sys.argv[1])
guard = threading.Lock()
def write(number):
    for count in range({WRITES_EACH}):
        text = f"{{os.getpid()}} {{number}} {{count}}"
        client.add(text)
        with guard:
            os.write(1, (text + "\\n").encode())
threads = [threading.Thread(target=write, args=(number,)) for number in range({THREADS_EACH})]
for thread in threads: thread.start()
for thread in threads: thread.join()
client.close()
"""

# Writes until it is stopped.
ENDLESS = """
import os, sys, threading, mnemon
client = mnemon.Mnemon(sys.argv[1])
def write():
    count = 0
    while True:
        count += 1
        client.add(f"note {count}")
        os.write(1, f"note {count}\\n".encode())
"""


def start(script: str, store: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, str(store)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def contents(store: Path) -> list[str]:
    with Mnemon(store) as client:
        return [record["content"] for record in client.list_all(limit=1000)]


def test_processes_and_threads_lose_nothing(tmp_path: Path) -> None:
    running = [start(WRITER, tmp_path / "m.db") for _ in range(PROCESSES)]
    acknowledged: list[str] = []
    for one in running:
        said, errors = one.communicate(timeout=300)
        assert one.returncode == 0 and errors == ""
        acknowledged += said.splitlines()
    assert len(acknowledged) == PROCESSES * THREADS_EACH * WRITES_EACH
    assert sorted(contents(tmp_path / "m.db")) == sorted(acknowledged)


def acknowledged_then(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout
    return [process.stdout.readline().strip() for _ in range(count)]


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    process = start(ENDLESS + "write()", tmp_path / "m.db")
    seen = acknowledged_then(process, 5)
    process.kill()
    rest, _ = process.communicate(timeout=60)
    seen += rest.splitlines()
    assert set(seen) <= set(contents(tmp_path / "m.db"))


def test_the_interpreter_ends_while_a_thread_writes(tmp_path: Path) -> None:
    script = ENDLESS + "threading.Thread(target=write, daemon=True).start()\nsys.stdin.readline()\n"
    command = [sys.executable, "-c", script, str(tmp_path / "m.db")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    seen = acknowledged_then(process, 3)
    # The end of its input lets the main thread return, in the middle of a write.
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    seen += rest.splitlines()
    stored = contents(tmp_path / "m.db")
    assert set(seen) <= set(stored) and len(set(stored)) == len(stored)


def test_asyncio_ends_with_tasks_that_still_write(tmp_path: Path) -> None:
    script = """
import asyncio, os, sys, mnemon
async def write(client, number):
    await client.add(f"note {number}")
    os.write(1, f"note {number}\\n".encode())
async def main():
    client = mnemon.AsyncMnemon(sys.argv[1])
    tasks = [asyncio.create_task(write(client, number)) for number in range(50)]
    await tasks[0]
asyncio.run(main())
"""
    process = start(script, tmp_path / "m.db")
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    stored = contents(tmp_path / "m.db")
    assert set(said.splitlines()) <= set(stored) and len(set(stored)) == len(stored)


def test_an_exception_in_a_callback_reaches_the_caller(tmp_path: Path) -> None:
    def stop(progress: dict[str, Any]) -> None:
        raise RuntimeError("stop here")

    # Progress is reported between commits of 32 documents, so one commit may report none.
    text = "some words here. " * 200
    documents: Any = [{"uri": f"{number}.md", "text": f"# Page {number}\n\n{text}"} for number in range(200)]
    with Mnemon(tmp_path / "m.db") as client:
        with pytest.raises(RuntimeError, match="stop here"):
            client.documents_add(documents=documents, progress=stop)
        # The store goes on.
        client.add("after")
        assert client.search("after", kind=["note"])["hits"]


def test_a_loop_that_is_left_early_frees_the_store(tmp_path: Path) -> None:
    with Mnemon(tmp_path / "m.db") as client:
        for number in range(20):
            client.add(f"note {number}")
        for _ in client.list_all(limit=2):
            break
        for _ in client.changes(after=0):
            break
        for _ in client.export():
            break
    assert len(contents(tmp_path / "m.db")) == 20


def test_closing_waits_for_writes_of_other_threads(tmp_path: Path) -> None:
    client = Mnemon(tmp_path / "m.db")
    acknowledged: list[str] = []
    began = threading.Event()

    def write() -> None:
        for number in range(1000):
            try:
                client.add(f"note {number}")
            except Exception:
                return
            acknowledged.append(f"note {number}")
            began.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert began.wait(60)
    client.close()
    thread.join(60)
    assert not thread.is_alive() and set(acknowledged) <= set(contents(tmp_path / "m.db"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_multiprocessing_needs_spawn_once_a_store_is_open(tmp_path: Path) -> None:
    script = """
import multiprocessing, os, sys, mnemon
client = mnemon.Mnemon(sys.argv[1])
client.add("parent")
def work(number):
    try:
        client.add(f"wrong {number}")
    except mnemon.UnsupportedError as error:
        assert "fork" in str(error)
    try:
        mnemon.Mnemon(sys.argv[1])
    except mnemon.UnsupportedError as error:
        assert "spawn" in str(error)
        return "refused"
with multiprocessing.get_context("fork").Pool(4) as pool:
    assert pool.map(work, range(8)) == ["refused"] * 8
client.add("parent again")
"""
    process = start(script, tmp_path / "m.db")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    expected = {"parent", "parent again"}
    assert set(contents(tmp_path / "m.db")) == expected


def test_a_timeout_of_asyncio_leaves_whole_writes(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncMnemon(tmp_path / "m.db") as client:
            for number in range(10):
                try:
                    await asyncio.wait_for(client.add(f"note {number}"), 0.0001)
                except asyncio.TimeoutError:
                    pass
            await client.add("last")

    asyncio.run(main())
    stored = contents(tmp_path / "m.db")
    assert "last" in stored and len(set(stored)) == len(stored)
