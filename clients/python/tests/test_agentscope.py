"""The memories of AgentScope with a real agent and a scripted model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mnemon import Mnemon

pytest.importorskip("agentscope")

from agentscope.agent import ReActAgent  # noqa: E402
from agentscope.formatter import OpenAIChatFormatter  # noqa: E402
from agentscope.memory import InMemoryMemory, MemoryBase  # noqa: E402
from agentscope.message import Msg, TextBlock, ToolUseBlock  # noqa: E402
from agentscope.model import ChatModelBase, ChatResponse  # noqa: E402
from agentscope.token import CharTokenCounter  # noqa: E402

from mnemon.agentscope import MnemonLongTermMemory, MnemonMemory  # noqa: E402


@pytest.fixture
def client(tmp_path: Path) -> Any:
    with Mnemon(tmp_path / "memory.db") as memory:
        yield memory


async def scenario(memory: MemoryBase) -> list[Any]:
    """The same calls for every memory; returns all that was answered."""
    messages = [Msg("ann", f"message {number}", "user") for number in range(4)]
    for number, message in enumerate(messages):
        message.id = f"id-{number}"
    seen: list[Any] = []

    async def look() -> None:
        for named in [{}, {"mark": "hint"}, {"exclude_mark": "hint"}, {"mark": "old", "exclude_mark": "hint"}]:
            seen.append([(m.id, m.content) for m in await memory.get_memory(prepend_summary=False, **named)])
        seen.append([m.content for m in await memory.get_memory()])
        seen.append(await memory.size())

    await memory.add(None)
    await memory.add(messages[:2])
    await memory.add(messages[2], marks="hint")
    await memory.add(messages[3], marks=["hint", "old"])
    await memory.add(messages[:3])
    await look()
    seen.append(await memory.update_messages_mark("old", msg_ids=["id-0", "id-3"]))
    seen.append(await memory.update_messages_mark("new", old_mark="hint"))
    seen.append(await memory.update_messages_mark(None, old_mark="old", msg_ids=["id-0"]))
    await memory.update_compressed_summary("a summary")
    await look()
    seen.append(await memory.delete_by_mark("old"))
    seen.append(await memory.delete(["id-1", "nosuch"]))
    await look()
    for wrong in (lambda: memory.add(messages, marks=1), lambda: memory.get_memory(mark=2)):  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            await wrong()  # type: ignore[no-untyped-call]
    await memory.clear()
    seen.append(await memory.size())
    return seen


async def test_it_answers_as_the_memory_of_agentscope(client: Mnemon) -> None:
    assert await scenario(MnemonMemory(client, "s")) == await scenario(InMemoryMemory())


async def test_state_moves_between_memories(client: Mnemon) -> None:
    one, two, three = InMemoryMemory(), MnemonMemory(client, "a"), MnemonMemory(client, "b", user="bo")
    await one.add([Msg("ann", "tea", "user"), Msg("bot", [TextBlock(type="text", text="yes")], "assistant")], marks="m")
    await one.update_compressed_summary("short")
    two.load_state_dict(one.state_dict())
    three.load_state_dict(two.state_dict())
    assert three.state_dict() == one.state_dict()
    with pytest.raises(KeyError):
        two.load_state_dict({})


class Scripted(ChatModelBase):
    """Calls the tools of the script, and then answers with the number of messages it was shown."""

    def __init__(self, calls: list[tuple[str, dict[str, Any]]]) -> None:
        super().__init__("scripted", stream=False)
        self.calls = calls
        self.prompts: list[str] = []
        self.tools: list[str] = []

    async def __call__(self, messages: Any, tools: Any = None, structured_model: Any = None, **rest: Any) -> ChatResponse:
        self.prompts.append(str(messages))
        self.tools = [tool["function"]["name"] for tool in tools or []]
        if structured_model is not None:
            fields = dict.fromkeys(structured_model.model_fields, "the tea was compressed")
            return ChatResponse(content=[], metadata=fields)
        if self.calls:
            name, given = self.calls.pop(0)
            return ChatResponse(content=[ToolUseBlock(type="tool_use", id=f"call-{len(self.calls)}", name=name, input=given)])
        return ChatResponse(content=[TextBlock(type="text", text=f"answer {len(self.prompts)}")])


def agent(model: Scripted, **named: Any) -> ReActAgent:
    made = ReActAgent(name="waiter", sys_prompt="Be kind.", model=model, formatter=OpenAIChatFormatter(), **named)
    made.set_console_output_enabled(False)
    return made


async def say(to: ReActAgent, text: str) -> str:
    return (await to(Msg("ann", text, "user"))).get_text_content() or ""


async def test_an_agent_goes_on_after_a_restart(tmp_path: Path) -> None:
    for turn in range(2):
        with Mnemon(tmp_path / "m.db") as memory:
            model = Scripted([])
            await say(agent(model, memory=MnemonMemory(memory, "talk", user="ann")), f"question {turn}")
            assert ("question 0" in model.prompts[0]) and ("answer 1" in model.prompts[0]) == (turn == 1)


async def test_compression_of_agentscope(client: Mnemon) -> None:
    memory = MnemonMemory(client, "long", user="ann")
    config = ReActAgent.CompressionConfig(
        enable=True, agent_token_counter=CharTokenCounter(), trigger_threshold=400, keep_recent=2
    )
    model = Scripted([])
    waiter = agent(model, memory=memory, compression_config=config)
    for turn in range(6):
        await say(waiter, f"question {turn}: " + "words " * 30)
    assert "the tea was compressed" in model.prompts[-1] and "question 0" not in model.prompts[-1]
    # They left the prompt, but not the memory; and the next process goes on with the summary.
    assert await memory.size() == 12
    again = MnemonMemory(client, "long", user="ann")
    shown = await again.get_memory(exclude_mark="compressed")
    assert "the tea was compressed" in str(shown[0].content) and len(shown) < 12
    assert client.search("question 0", user="ann", session="long")["hits"]


Check = Callable[[Scripted, Mnemon], None]


@pytest.mark.parametrize("mode", ["static_control", "agent_control", "both"])
async def test_modes_of_long_term_memory(client: Mnemon, mode: str) -> None:
    known = MnemonLongTermMemory(client, user="ann")
    client.add("Ann has a cat named Mia", user="ann", kind="fact")
    client.add("Bo has a dog", user="bo", kind="fact")
    calls = [
        ("record_to_memory", {"thinking": "a taste", "content": ["Ann drinks oolong tea", " "]}),
        ("retrieve_from_memory", {"keywords": ["cat", "dog"]}),
    ]
    model = Scripted(calls if mode != "static_control" else [])
    waiter = agent(model, long_term_memory=known, long_term_memory_mode=mode)
    await say(waiter, "Which cat does Ann have?")
    by_framework = mode != "agent_control"
    assert ("named Mia" in model.prompts[0]) == by_framework
    assert ("record_to_memory" in model.tools) == (mode != "static_control")
    stored = [record["content"] for record in client.list_all(user="ann", own=True)]
    assert ("ann: Which cat does Ann have?" in stored) == by_framework
    assert any("oolong" in one for one in stored) == (mode != "static_control")
    if mode != "static_control":
        assert "Recorded 1 of 2" in model.prompts[1] and "named Mia" in model.prompts[2]
        assert "dog" not in model.prompts[2].replace("'dog'", "").replace('"dog"', "")
    # Recalled text is not recorded as new text, and a message is recorded once.
    await say(waiter, "And its name?")
    stored = [record["content"] for record in client.list_all(user="ann", own=True)]
    assert not any("<long_term_memory>" in one for one in stored)
    assert len(set(stored)) == len(stored)


async def test_nothing_known(client: Mnemon) -> None:
    known = MnemonLongTermMemory(client, user="ann")
    assert await known.retrieve(None) == "" and await known.retrieve(Msg("ann", "tea?", "user")) == ""
    assert "Nothing" in str((await known.retrieve_from_memory(["tea"])).content)
    assert "empty" in str((await known.record_to_memory("", [])).content)
    assert await known.record([None, Msg("s", "rules", "system")]) == 0
