"""The adapters of other frameworks with the real packages."""

from __future__ import annotations

import doctest
import importlib
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from mnemon import Mnemon

LONG = "a long text, " * 5000


@pytest.fixture
def client(server: Any) -> Iterator[Mnemon]:
    with Mnemon(server.url) as memory:
        yield memory


# The modules with an example in their documentation, and the packages that they need.
EXAMPLES = {
    "agentscope": "agentscope",
    "anthropic": "anthropic",
    "langchain_agent": "langchain",
    "langgraph_node": "langgraph.graph",
    "llama_index": "llama_index.core",
    "openai_agents": "agents",
    "pydantic_ai": "pydantic_ai",
}


@pytest.mark.parametrize("module", EXAMPLES)
def test_the_example(start_server: Any, module: str) -> None:
    pytest.importorskip(EXAMPLES[module])
    adapter = importlib.import_module(f"mnemon.{module}")
    result = doctest.testmod(adapter, extraglobs={"URL": start_server().url})
    assert result.attempted > 0 and result.failed == 0


async def test_openai_items_read_back_as_written(client: Mnemon) -> None:
    pytest.importorskip("agents")
    from mnemon.openai_agents import MnemonSession

    session = MnemonSession(client, uuid.uuid4().hex)
    assert await session.get_items() == [] and await session.pop_item() is None
    items: list[Any] = [
        {"role": "user", "content": "6 times 7?"},
        {"type": "function_call", "call_id": "c1", "name": "times", "arguments": '{"a": 6}'},
        {"type": "function_call_output", "call_id": "c1", "output": LONG},
        {"role": "assistant", "type": "message", "content": [{"type": "output_text", "text": "42", "annotations": []}]},
    ]
    await session.add_items(items)
    assert await session.get_items() == items
    assert await session.get_items(limit=2) == items[-2:] and await session.get_items(limit=0) == []
    assert await session.pop_item() == items[-1]
    assert await session.get_items() == items[:-1]
    await session.clear_session()
    assert await session.get_items() == []


async def test_an_openai_agent_remembers(server: Any) -> None:
    agents = pytest.importorskip("agents")
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.usage import Usage
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    from mnemon.openai_agents import MnemonSession

    class Scripted(Model):
        """Answers with the number of items that it was shown."""

        async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **named: Any) -> ModelResponse:
            text = ResponseOutputText(text=f"{len(input)} items", type="output_text", annotations=[])
            message = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *arguments: Any, **named: Any) -> Any:
            raise NotImplementedError

    agents.set_tracing_disabled(True)
    name = uuid.uuid4().hex
    agent = agents.Agent(name="scripted", model=Scripted())
    for turn, expected in [("one", "1 items"), ("two", "3 items")]:
        # A new client each time, as after a restart.
        with Mnemon(server.url) as memory:
            result = await agents.Runner.run(agent, turn, session=MnemonSession(memory, name))
            assert result.final_output == expected


def test_the_chat_store_of_llama_index(client: Mnemon) -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core.llms import ChatMessage, MessageRole

    from mnemon.llama_index import MnemonChatStore

    store = MnemonChatStore(memory=client, user=uuid.uuid4().hex)
    messages = [
        ChatMessage(role="system", content="Be kind"),
        ChatMessage(role="user", content=LONG, additional_kwargs={"n": 1}),
        ChatMessage(role=MessageRole.ASSISTANT, content="fine"),
    ]
    assert store.get_messages("a/b") == [] and store.get_keys() == []
    store.set_messages("a/b", messages)
    assert store.get_messages("a/b") == messages and store.get_keys() == ["a/b"]
    store.add_message("a/b", ChatMessage(role="user", content="more"))
    assert store.delete_last_message("a/b") == ChatMessage(role="user", content="more")
    assert store.delete_message("a/b", 1) == messages[1] and store.delete_message("a/b", 9) is None
    assert store.get_messages("a/b") == [messages[0], messages[2]]
    store.set_messages("a/b", messages[:1])
    assert store.delete_messages("a/b") == messages[:1] and store.get_messages("a/b") == []
    assert store.delete_last_message("a/b") is None and store.delete_messages("a/b") is None
