"""Anthropic: the memory tool (`memory_20250818`) over Mnemon.

>>> from mnemon import Mnemon
>>> from mnemon.anthropic import MnemonMemoryTool
>>> memory = Mnemon(URL)
>>> tool = MnemonMemoryTool(memory, user="an-doc")
>>> tool.to_dict()
{'type': 'memory_20250818', 'name': 'memory'}
>>> tool.call({"command": "create", "path": "/memories/tea.md", "file_text": "Ann drinks green tea"})
'File created successfully at: /memories/tea.md'
>>> print(tool.call({"command": "view", "path": "/memories/tea.md"}))
Here's the content of /memories/tea.md with line numbers:
     1	Ann drinks green tea
>>> memory.close()

Pass it to `client.beta.messages.run_tools(…, tools=[tool])`, or call it with the input of each tool use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

from . import Mnemon
from ._memory_files import MemoryFileError, MemoryFiles


class MnemonMemoryTool(BetaAbstractMemoryTool):
    """Files of an assistant, whose texts are found by every search of the memory.

    `user` owns the files; `name` separates several tools of one user.
    """

    def __init__(self, memory: Mnemon, *, user: str | None = None, name: str = "memory", cache_control: Any = None) -> None:
        super().__init__(cache_control=cache_control)
        self._files = MemoryFiles(memory, name, user)

    def execute(self, command: Any) -> str:
        return _answer(self._files, command)

    def view(self, command: Any) -> str:
        return self.execute(command)

    def create(self, command: Any) -> str:
        return self.execute(command)

    def str_replace(self, command: Any) -> str:
        return self.execute(command)

    def insert(self, command: Any) -> str:
        return self.execute(command)

    def delete(self, command: Any) -> str:
        return self.execute(command)

    def rename(self, command: Any) -> str:
        return self.execute(command)

    def clear_all_memory(self) -> str:
        return self._files.clear()


class AsyncMnemonMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for the async client; its calls run in threads."""

    def __init__(self, memory: Mnemon, *, user: str | None = None, name: str = "memory", cache_control: Any = None) -> None:
        super().__init__(cache_control=cache_control)
        self._files = MemoryFiles(memory, name, user)

    async def execute(self, command: Any) -> str:
        return await asyncio.to_thread(_answer, self._files, command)

    async def view(self, command: Any) -> str:
        return await self.execute(command)

    async def create(self, command: Any) -> str:
        return await self.execute(command)

    async def str_replace(self, command: Any) -> str:
        return await self.execute(command)

    async def insert(self, command: Any) -> str:
        return await self.execute(command)

    async def delete(self, command: Any) -> str:
        return await self.execute(command)

    async def rename(self, command: Any) -> str:
        return await self.execute(command)

    async def clear_all_memory(self) -> str:
        return await asyncio.to_thread(self._files.clear)


def _insert(files: MemoryFiles, command: Any) -> str:
    # Some callers use the name of the replacement's field.
    text = getattr(command, "insert_text", None)
    return files.insert(command.path, command.insert_line, command.new_str if text is None else text)


COMMANDS: dict[str, Callable[[MemoryFiles, Any], str]] = {
    "view": lambda files, command: files.view(command.path, getattr(command, "view_range", None)),
    "create": lambda files, command: files.create(command.path, command.file_text),
    "str_replace": lambda files, command: files.str_replace(command.path, command.old_str, command.new_str or ""),
    "insert": _insert,
    "delete": lambda files, command: files.delete(command.path),
    "rename": lambda files, command: files.rename(command.old_path, command.new_path),
}


def _answer(files: MemoryFiles, command: Any) -> str:
    name = str(getattr(command, "command", None))
    run = COMMANDS.get(name)
    if run is None:
        raise ToolError(f"`{name}` is not a command of the memory tool: use one of {', '.join(COMMANDS)}.")
    try:
        return run(files, command)
    except AttributeError as error:
        raise ToolError(f"The command `{name}` lacks its field `{error.name}`.") from error
    except MemoryFileError as error:
        raise ToolError(str(error)) from error
