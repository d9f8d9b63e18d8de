"""The history of Pydantic AI with real agents and scripted models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mnemon import Mnemon

pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent, BinaryContent  # noqa: E402
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart  # noqa: E402
from pydantic_ai.models.function import AgentInfo, FunctionModel  # noqa: E402

from mnemon.pydantic_ai import MnemonHistory  # noqa: E402

LONG = "a long text, " * 5000


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Calls the tool once for each question, and then says how many messages it was shown."""
    last = messages[-1].parts[-1]
    if last.part_kind == "user-prompt" and info.function_tools:
        return ModelResponse(parts=[ToolCallPart("look_up", {"name": "ann"})])
    return ModelResponse(parts=[TextPart(f"{len(messages)} messages")])


def agent() -> Agent[None, str]:
    made = Agent(FunctionModel(scripted))

    @made.tool_plain
    def look_up(name: str) -> str:
        return f"{name} drinks tea. {LONG}"

    return made


async def test_an_agent_remembers_after_a_restart(tmp_path: Path) -> None:
    for expected in ["3 messages", "7 messages"]:
        with Mnemon(tmp_path / "m.db") as memory:
            history = MnemonHistory(memory, "talk/1", user="ann")
            result = await agent().run("What does Ann drink?", message_history=await history.amessages())
            assert result.output == expected
            await history.aadd(result.new_messages())
            assert await history.amessages() == result.all_messages()


def test_messages_read_back_as_written(tmp_path: Path) -> None:
    with Mnemon(tmp_path / "m.db") as memory:
        history = MnemonHistory(memory, "s")
        assert history.messages() == []
        prompt: list[Any] = ["What is it?", BinaryContent(b"\x89PNG\x00", media_type="image/png")]
        result = agent().run_sync(prompt)
        history.add(result.all_messages())
        # As Pydantic AI itself reads them back: an image is of another class then.
        expected = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(result.all_messages()))
        assert history.messages() == expected
        assert memory.search("drinks tea")["hits"]
        # A part of a conversation begins with a question.
        assert history.messages(limit=4) == expected
        assert history.messages(limit=2) == []
        history.clear()
        assert history.messages() == []


def test_messages_of_other_programs_are_shown(tmp_path: Path) -> None:
    with Mnemon(tmp_path / "m.db") as memory:
        memory.chat_append("s", "I drink tea")
        memory.chat_append("s", "Noted", role="assistant")
        found = MnemonHistory(memory, "s").messages()
        assert [message.kind for message in found] == ["request", "response"]
        assert agent().run_sync("And now?", message_history=found).output == "5 messages"
