"""A function in Python as the embedder of a store."""

from __future__ import annotations

import _thread
import asyncio
import logging
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mnemon import AsyncMnemon, InvalidError, Mnemon, MnemonError

# The dimensions are drinks, animals and the rest.
WORDS = {"oolong": 0, "beverage": 0, "terrier": 1, "pet": 1}


def embed(texts: list[str]) -> list[list[float]]:
    vectors: list[list[float]] = []
    for text in texts:
        vector = [0.0, 0.0, 0.1]
        for word in text.lower().split():
            vector[WORDS.get(word, 2)] += 1.0
        vectors.append(vector)
    return vectors


def first(memory: Any, query: str) -> str:
    found = memory.search(query, recipe="meaning")
    assert not found.get("notices"), found
    return found["hits"][0]["record"]["content"]


class Array:
    """What NumPy and PyTorch return: an array with the method `tolist`."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def tolist(self) -> Any:
        return self._values


@pytest.mark.parametrize(
    "function",
    [embed, lambda texts: Array(embed(texts)), lambda texts: [Array(one) for one in embed(texts)], lambda texts: tuple(map(tuple, embed(texts)))],
    ids=["lists", "array", "arrays", "tuples"],
)
def test_records_are_found_by_the_vectors_of_a_function(tmp_path: Path, form: Any, function: Any) -> None:
    memory = form(tmp_path / "m.db", embed=function, embed_model="toy")
    memory.add("Bo likes oolong")
    memory.add("Bo has a terrier")
    assert first(memory, "beverage") == "Bo likes oolong"
    assert first(memory, "pet") == "Bo has a terrier"
    memory.close()


def test_a_text_without_a_meaning_gets_no_vector(tmp_path: Path) -> None:
    def some(texts: list[str]) -> list[Any]:
        return [None if "blank" in text else vector for text, vector in zip(texts, embed(texts))]

    with Mnemon(tmp_path / "m.db", embed=some, embed_model="toy", dimensions=3) as memory:
        assert "notices" not in memory.add("a blank page")
        assert memory.search("page")["hits"]


def test_a_store_opens_without_a_call_if_the_dimensions_are_known(tmp_path: Path) -> None:
    calls: list[list[str]] = []

    def counted(texts: list[str]) -> list[list[float]]:
        calls.append(texts)
        return embed(texts)

    with Mnemon(tmp_path / "m.db", embed=counted, embed_model="toy", dimensions=3) as memory:
        assert calls == []
        memory.add("Bo likes oolong")
    assert calls == [["Bo likes oolong"]]


def test_a_model_keeps_its_vectors_and_another_needs_new_ones(tmp_path: Path) -> None:
    with Mnemon(tmp_path / "m.db", embed=embed, embed_model="toy") as memory:
        memory.add("Bo likes oolong")
    with Mnemon(tmp_path / "m.db", embed=embed, embed_model="toy") as memory:
        assert memory.reembed()["embedded"] == 0
    with Mnemon(tmp_path / "m.db", embed=embed, embed_model="other") as memory:
        answer = memory.reembed()
        assert (answer["embedded"], answer["embedder"]) == (1, "function:other")


def fails(texts: list[str]) -> list[list[float]]:
    raise RuntimeError("the model is gone")


WRONG: dict[str, tuple[Callable[[list[str]], Any], str]] = {
    "exception": (fails, "the model is gone"),
    "too few": (lambda texts: [], "0 vectors for 1 texts"),
    "dimensions": (lambda texts: [[1.0] for _ in texts], "1 dimensions where 3 were expected"),
    "not finite": (lambda texts: [[float("nan")] * 3 for _ in texts], "not finite"),
    "not numbers": (lambda texts: [["a", "b", "c"] for _ in texts], "TypeError"),
    "nothing": (lambda texts: None, "TypeError"),
    "exit": (lambda texts: exit(3), "SystemExit"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_function_that_fails_loses_no_record(tmp_path: Path, form: Any, name: str) -> None:
    function, problem = WRONG[name]
    memory = form(tmp_path / "m.db", embed=function, embed_model="toy", dimensions=3)
    assert problem in memory.add("Bo likes oolong")["notices"][0]
    found = memory.search("oolong")
    assert problem in found["notices"][0] and len(found["hits"]) == 1
    with pytest.raises(MnemonError, match=problem) as error:
        memory.reembed()
    assert error.value.code == "unavailable"
    memory.close()
    with Mnemon(tmp_path / "m.db", embed=embed, embed_model="toy") as memory:
        assert memory.reembed()["embedded"] == 1
        assert first(memory, "beverage") == "Bo likes oolong"


def test_an_exception_is_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "mnemon"):
        with Mnemon(tmp_path / "m.db", embed=fails, embed_model="toy", dimensions=3) as memory:
            memory.add("Bo likes oolong")
    assert "in fails" in caplog.text and "the model is gone" in caplog.text


async def later(texts: list[str]) -> list[list[float]]:
    return embed(texts)


def test_a_wrong_function_is_refused_when_the_store_is_opened(tmp_path: Path, form: Any) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"embed": fails, "embed_model": "toy"}, "embed: failed for the text 'dimension': the model is gone"),
        ({"embed": later, "embed_model": "toy"}, "it is a coroutine function"),
        ({"embed": lambda texts: [[]], "embed_model": "toy"}, "dimensions: 0 is not between 1 and 8192"),
        ({"embed": embed, "embed_model": "toy", "dimensions": 8193}, "dimensions: 8193 is not between 1 and 8192"),
        ({"embed": embed, "embed_model": "a\nb"}, "embed_model: must be the name of the model"),
        ({"embed": embed}, "embed_model: is missing"),
        ({"dimensions": 3}, "embed: is missing"),
    ]
    for arguments, problem in wrong:
        with pytest.raises(InvalidError, match=problem):
            form(tmp_path / "m.db", **arguments)
    with pytest.raises(InvalidError, match="embed: is for a store in this process"):
        form("http://127.0.0.1:1", embed=embed, embed_model="toy")


def test_an_interrupt_in_the_function_reaches_the_caller(tmp_path: Path) -> None:
    def interrupted(texts: list[str]) -> list[list[float]]:
        _thread.interrupt_main()
        time.sleep(0)
        return embed(texts)

    # A process that was started in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with Mnemon(tmp_path / "m.db", embed=interrupted, embed_model="toy", dimensions=3) as memory:
            with pytest.raises(KeyboardInterrupt):
                memory.add("Bo likes oolong")
                # The interrupt may come after the call, before its result is used.
                time.sleep(0)
    finally:
        signal.signal(signal.SIGINT, before)


def test_threads_share_a_function_and_others_go_on(tmp_path: Path) -> None:
    entered, leave = threading.Event(), threading.Event()

    def waits(texts: list[str]) -> list[list[float]]:
        if texts == ["slow"]:
            entered.set()
            assert leave.wait(30)
        return embed(texts)

    with Mnemon(tmp_path / "m.db", embed=waits, embed_model="toy", dimensions=3) as memory:
        slow = threading.Thread(target=memory.add, args=("slow",))
        slow.start()
        assert entered.wait(30)
        others = [threading.Thread(target=memory.add, args=(f"number {number}",)) for number in range(8)]
        for thread in others:
            thread.start()
        for thread in others:
            thread.join()
        assert len(memory.list()["records"]) == 8
        leave.set()
        slow.join()
        assert len(memory.list()["records"]) == 9


async def test_a_slow_function_does_not_block_the_event_loop(tmp_path: Path) -> None:
    entered, leave = threading.Event(), threading.Event()

    def waits(texts: list[str]) -> list[list[float]]:
        entered.set()
        assert leave.wait(30)
        return embed(texts)

    async with AsyncMnemon(tmp_path / "m.db", embed=waits, embed_model="toy", dimensions=3) as memory:
        adding = asyncio.create_task(memory.add("Bo likes oolong"))
        while not entered.is_set():
            await asyncio.sleep(0.001)
        # The loop runs while the function waits.
        leave.set()
        assert "notices" not in await adding


def test_a_store_that_is_not_closed_ends_with_its_process(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from mnemon import Mnemon\n"
        "memory = Mnemon(sys.argv[1], embed=lambda texts: [[1.0, 2.0] for _ in texts], embed_model='toy')\n"
        "memory.add('Bo likes oolong'); print('added')"
    )
    run = subprocess.run([sys.executable, "-c", code, tmp_path / "m.db"], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (0, "added\n", "")
    with Mnemon(tmp_path / "m.db") as memory:
        assert len(memory.list()["records"]) == 1
