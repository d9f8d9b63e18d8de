"""A store in this process: what is particular to it. The tests of the client use one, too."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from mnemon import AsyncMnemon, InvalidError, Mnemon, MnemonError, UnsupportedError


def test_what_was_stored_is_there_for_the_next_process(tmp_path: Path, form: Any) -> None:
    store = f"sqlite:{tmp_path}/memory.db"
    client = form(store)
    client.add("Ann prefers tea", user="ann")
    client.close()
    script = "import sys, mnemon; print(mnemon.Mnemon(sys.argv[1]).search('tea')['hits'][0]['record']['content'])"
    said = subprocess.run([sys.executable, "-c", script, store], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "Ann prefers tea"


def test_a_closed_store_is_refused(tmp_path: Path) -> None:
    client = Mnemon(tmp_path / "memory.db")
    client.close()
    with pytest.raises(InvalidError):
        client.search("tea")


def test_a_store_that_cannot_be_opened(tmp_path: Path, form: Any) -> None:
    (tmp_path / "other.db").write_text("this is not a database at all" * 100)
    with pytest.raises(MnemonError) as error:
        form(tmp_path / "other.db")
    assert "other.db" in str(error.value)
    with pytest.raises(InvalidError):
        form("mysql://ann@localhost/x")


def test_tenants_do_not_see_each_other(tmp_path: Path, form: Any) -> None:
    one, two = form(tmp_path / "m.db", tenant="one"), form(tmp_path / "m.db", tenant="two")
    one.add("a secret of one")
    assert two.search("secret")["hits"] == [] and two.list()["records"] == []
    assert len(one.list()["records"]) == 1
    one.close()
    two.close()


def test_threads_and_clients_share_a_file(tmp_path: Path) -> None:
    clients = [Mnemon(tmp_path / "m.db") for _ in range(4)]
    failed: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for count in range(10):
                clients[number % 4].add(f"note {number} {count}")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sum(1 for _ in clients[0].list_all(limit=1000)) == 320
    for client in clients:
        client.close()


def test_the_interpreter_runs_while_a_store_works(tmp_path: Path) -> None:
    async def main() -> int:
        async with AsyncMnemon(tmp_path / "m.db") as client:
            ticks = 0

            async def tick() -> None:
                nonlocal ticks
                while True:
                    await asyncio.sleep(0.001)
                    ticks += 1

            ticking = asyncio.create_task(tick())
            await asyncio.gather(*(client.add(f"note {number}") for number in range(50)))
            ticking.cancel()
            return ticks

    assert asyncio.run(main()) > 0


def test_a_cancelled_task_leaves_a_whole_write_or_none(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncMnemon(tmp_path / "m.db") as client:
            for number in range(20):
                writing = asyncio.create_task(client.add(f"note {number}"))
                await asyncio.sleep(0.0005 * number)
                writing.cancel()
                await asyncio.gather(writing, return_exceptions=True)
            await client.add("the last one")
            listed = (await client.list(limit=100))["records"]
            assert any(record["content"] == "the last one" for record in listed)
            assert len({record["content"] for record in listed}) == len(listed)

    asyncio.run(main())


def test_a_feed_of_changes_goes_on(tmp_path: Path) -> None:
    client, other = Mnemon(tmp_path / "m.db"), Mnemon(tmp_path / "m.db")
    client.add("first")
    feed = client.changes(after=0)
    assert next(feed)["after"]["content"] == "first"
    other.add("second")
    assert next(feed)["after"]["content"] == "second"
    feed.close()
    client.close()
    other.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_after_a_fork_the_store_is_refused_and_nothing_hangs(tmp_path: Path) -> None:
    client = Mnemon(tmp_path / "m.db")
    client.add("before")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            client.add("in the child")
        except UnsupportedError:
            client.close()
            try:
                Mnemon(tmp_path / "other.db")
            except UnsupportedError:
                code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [record["content"] for record in client.list()["records"]] == ["before"]
    client.close()


def test_the_interpreter_ends_although_nothing_was_closed(tmp_path: Path) -> None:
    script = (
        "import sys, threading, mnemon\n"
        "client = mnemon.Mnemon(sys.argv[1])\n"
        "client.add('kept')\n"
        "feed = client.changes(after=0)\n"
        "next(feed)\n"
        "threading.Thread(target=lambda: next(feed), daemon=True).start()\n"
    )
    run = subprocess.run([sys.executable, "-c", script, str(tmp_path / "m.db")], timeout=60)
    assert run.returncode == 0
    with Mnemon(tmp_path / "m.db") as client:
        assert len(client.list()["records"]) == 1


def test_the_package_has_the_program(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("mnemon")
    assert program.exists() or shutil.which("mnemon")
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    run = [str(program), "--store", f"sqlite:{tmp_path}/m.db"]
    subprocess.run([*run, "add", "Ann prefers tea"], env=environment, check=True, capture_output=True)
    said = subprocess.run([*run, "search", "tea"], env=environment, capture_output=True, text=True, check=True)
    assert "Ann prefers tea" in said.stdout
    assert subprocess.run([*run, "get", "nosuch"], env=environment, capture_output=True).returncode == 3
