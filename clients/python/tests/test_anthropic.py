"""The memory tool of Anthropic, compared with the implementation in its own package."""

from __future__ import annotations

import asyncio
import re
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest

from mnemon import Mnemon

pytest.importorskip("anthropic")

from anthropic.lib.tools import ToolError  # noqa: E402
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool  # noqa: E402

from mnemon.anthropic import AsyncMnemonMemoryTool, MnemonMemoryTool  # noqa: E402

LINES = "one\ntwo\nthree\nfour\nfive\nsix\n"

SCRIPT: list[dict[str, Any]] = [
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": "/memories/a.md", "file_text": LINES},
    {"command": "create", "path": "/memories/a.md", "file_text": "again"},
    {"command": "create", "path": "/memories/deep/er/b.md", "file_text": "no newline"},
    {"command": "create", "path": "/memories/deep/er/far/c.md", "file_text": "hidden by depth"},
    {"command": "create", "path": "/memories/.hidden", "file_text": "x"},
    {"command": "create", "path": "/memories/empty", "file_text": ""},
    {"command": "create", "path": "/memories/blank", "file_text": " \n\n"},
    {"command": "view", "path": "/memories"},
    {"command": "view", "path": "/memories/deep"},
    {"command": "view", "path": "/memories/a.md"},
    {"command": "view", "path": "/memories/a.md", "view_range": [2, 3]},
    {"command": "view", "path": "/memories/a.md", "view_range": [5, -1]},
    {"command": "view", "path": "/memories/a.md", "view_range": [90, 91]},
    {"command": "view", "path": "/memories/empty"},
    {"command": "view", "path": "/memories/blank"},
    {"command": "view", "path": "/memories/nosuch"},
    {"command": "str_replace", "path": "/memories/a.md", "old_str": "four", "new_str": "4\n4.5"},
    {"command": "str_replace", "path": "/memories/a.md", "old_str": "nosuch", "new_str": "x"},
    {"command": "str_replace", "path": "/memories/a.md", "old_str": "e", "new_str": "x"},
    {"command": "str_replace", "path": "/memories/nosuch", "old_str": "e", "new_str": "x"},
    {"command": "str_replace", "path": "/memories/deep", "old_str": "e", "new_str": "x"},
    {"command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": "zero\n"},
    {"command": "insert", "path": "/memories/a.md", "insert_line": 8, "insert_text": "last"},
    {"command": "insert", "path": "/memories/a.md", "insert_line": 99, "insert_text": "x"},
    {"command": "insert", "path": "/memories/empty", "insert_line": 0, "insert_text": "not empty"},
    {"command": "insert", "path": "/memories/nosuch", "insert_line": 0, "insert_text": "x"},
    {"command": "view", "path": "/memories/a.md"},
    {"command": "view", "path": "/memories/empty"},
    {"command": "str_replace", "path": "/memories/empty", "old_str": "not empty\n", "new_str": ""},
    {"command": "view", "path": "/memories/empty"},
    {"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/deep/a.md"},
    {"command": "rename", "old_path": "/memories/empty", "new_path": "/memories/blank"},
    {"command": "rename", "old_path": "/memories/nosuch", "new_path": "/memories/x"},
    {"command": "rename", "old_path": "/memories/deep", "new_path": "/memories/moved/deep"},
    {"command": "rename", "old_path": "/memories", "new_path": "/memories/x"},
    {"command": "view", "path": "/memories/moved/deep"},
    {"command": "delete", "path": "/memories/blank"},
    {"command": "delete", "path": "/memories/blank"},
    {"command": "delete", "path": "/memories/moved"},
    {"command": "delete", "path": "/memories"},
    {"command": "view", "path": "/memories"},
    {"command": "view", "path": "/elsewhere"},
    {"command": "create", "path": "/memories/../outside", "file_text": "x"},
    {"command": "view", "path": "/memories/../../etc/passwd"},
]


@pytest.fixture
def client(tmp_path: Path) -> Any:
    with Mnemon(tmp_path / "memory.db") as memory:
        yield memory


def answer(tool: Any, command: dict[str, Any]) -> str:
    try:
        said = str(tool.call(command))
    except ToolError as error:
        said = f"error: {error}"
    # The size of a folder is that of its files here, and of its entry on a disk.
    return re.sub(r"(?m)^\S+\t(?=/memories\S*/$|/memories(/deep|/moved/deep)?$)", "SIZE\t", said)


def test_answers_are_those_of_the_official_tool(client: Mnemon, tmp_path: Path) -> None:
    official = BetaLocalFilesystemMemoryTool(str(tmp_path))
    ours = MnemonMemoryTool(client, user="ann")
    assert ours.to_dict() == official.to_dict()
    for command in SCRIPT:
        assert answer(ours, command) == answer(official, command), command
    assert ours.clear_all_memory() == official.clear_all_memory()


def test_files_are_there_for_the_next_process_and_for_search(tmp_path: Path) -> None:
    with Mnemon(tmp_path / "m.db") as memory:
        tool = MnemonMemoryTool(memory, user="ann")
        tool.call({"command": "create", "path": "/memories/tea.md", "file_text": "Ann drinks oolong"})
    with Mnemon(tmp_path / "m.db") as memory:
        assert "oolong" in MnemonMemoryTool(memory, user="ann").call({"command": "view", "path": "/memories/tea.md"})
        assert memory.search("oolong", user="ann")["hits"]
        # Files of other users are neither seen nor overwritten.
        other = MnemonMemoryTool(memory, user="bo")
        assert "tea.md" not in other.call({"command": "view", "path": "/memories"})
        other.call({"command": "create", "path": "/memories/tea.md", "file_text": "Bo drinks mate"})
        assert memory.search("mate", user="ann")["hits"] == []


def test_no_edit_is_lost(client: Mnemon) -> None:
    tool = MnemonMemoryTool(client)
    tool.call({"command": "create", "path": "/memories/list", "file_text": "begin\n"})

    def write(number: int) -> None:
        for count in range(5):
            tool.call({"command": "insert", "path": "/memories/list", "insert_line": 1, "insert_text": f"{number}-{count}"})

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(re.findall(r"\d-\d", tool.call({"command": "view", "path": "/memories/list"})))) == 20


def test_wrong_commands_have_clear_answers(client: Mnemon) -> None:
    tool = MnemonMemoryTool(client)
    for command, expected in [
        ({"command": "chmod", "path": "/memories/a"}, "not a command"),
        ({"command": "create", "path": "/memories/a"}, "file_text"),
        ({"command": "create", "path": "/memories/" + "a" * 2000, "file_text": "x"}, "too long"),
    ]:
        with pytest.raises(ToolError, match=expected):
            tool.call(command)
    tool.call({"command": "create", "path": "/memories/file", "file_text": "x"})
    with pytest.raises(ToolError, match="not a directory"):
        tool.call({"command": "create", "path": "/memories/file/below", "file_text": "x"})
    # LangChain's middleware uses another name for the text of an insertion.
    tool.call({"command": "insert", "path": "/memories/file", "insert_line": 0, "new_str": "first"})
    assert "first" in tool.call({"command": "view", "path": "/memories/file"})


def test_the_async_tool(client: Mnemon) -> None:
    async def main() -> str:
        tool = AsyncMnemonMemoryTool(client, user=uuid.uuid4().hex)
        await tool.call({"command": "create", "path": "/memories/a", "file_text": "tea"})
        seen = str(await tool.call({"command": "view", "path": "/memories/a"}))
        await tool.clear_all_memory()
        return seen

    assert asyncio.run(main()).endswith("     1\ttea")
