"""Anthropic: the memory tool (`memory_20250818`) over Mnemon.

>>> from mnemon import Mnemon
>>> from mnemon.anthropic import MnemonMemoryTool
>>> memory = Mnemon(URL)
>>> tool = MnemonMemoryTool(memory, user="an-doc")
>>> tool.to_dict()
{'type': 'memory_20250818', 'name': 'memory'}
>>> tool.call({"command": "create", "path": "/memories/tea.md", "file_text": "Ann drinks green tea"})
'File created successfully at: /memories/tea.md'
>>> tool.call({"command": "view", "path": "/memories/tea.md"}).splitlines()
["Here's the content of /memories/tea.md with line numbers:", '     1\\tAnn drinks green tea']
>>> memory.close()

Pass it to `client.beta.messages.run_tools(…, tools=[tool])`, or call it with the input of each tool use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import signature
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


COMMANDS: dict[str, Callable[..., str]] = {
    "view": lambda files, path, view_range=None: files.view(path, view_range),
    "create": lambda files, path, file_text: files.create(path, file_text),
    "str_replace": lambda files, path, old_str, new_str="": files.str_replace(path, old_str, new_str),
    "insert": lambda files, path, insert_line, insert_text: files.insert(path, insert_line, insert_text),
    "delete": lambda files, path: files.delete(path),
    "rename": lambda files, old_path, new_path: files.rename(old_path, new_path),
}


def _answer(files: MemoryFiles, command: Any) -> str:
    given = {name: value for name, value in command.to_dict(mode="python").items() if value is not None}
    name = str(given.pop("command", None))
    run = COMMANDS.get(name)
    if run is None:
        raise ToolError(f"`{name}` is not a command of the memory tool: use one of {', '.join(COMMANDS)}.")
    if name == "insert" and "new_str" in given:
        # Some callers use the name of the replacement's field.
        given.setdefault("insert_text", given.pop("new_str"))
    fields = list(signature(run).parameters.values())[1:]
    missing = [field.name for field in fields if field.default is field.empty and field.name not in given]
    if missing:
        raise ToolError(f"The command `{name}` needs the field `{missing[0]}`.")
    try:
        return run(files, **{field.name: given[field.name] for field in fields if field.name in given})
    except MemoryFileError as error:
        raise ToolError(str(error)) from error
