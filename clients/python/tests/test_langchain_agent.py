"""The middleware of LangChain, and the node of LangGraph, in real agents with scripted models."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest

from mnemon import Mnemon

pytest.importorskip("langchain")

from langchain.agents import create_agent  # noqa: E402
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel  # noqa: E402
from langchain_core.messages import AIMessage  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.graph import START, MessagesState, StateGraph  # noqa: E402

from mnemon.langchain_agent import MnemonMiddleware  # noqa: E402
from mnemon.langgraph_node import with_memory  # noqa: E402


class Model(GenericFakeChatModel):
    """Answers with its number, and keeps the prompts that it was shown."""

    prompts: list[Any] = []

    def _generate(self, messages: Any, *rest: Any, **named: Any) -> Any:
        self.prompts.append(messages)
        return super()._generate(messages, *rest, **named)

    def bind_tools(self, tools: Any, **named: Any) -> Any:
        return self


def model() -> Model:
    return Model(messages=iter(AIMessage(f"answer {number}") for number in range(100)), prompts=[])


@pytest.fixture
def client(tmp_path: Path) -> Any:
    with Mnemon(tmp_path / "memory.db") as memory:
        yield memory


def stored(memory: Mnemon, session: str) -> list[str]:
    messages = memory.chat_tail(session, user="ann", count=100)["messages"]
    return [message["content"][0]["text"] for message in messages]


def test_an_agent_knows_what_was_said_in_another_conversation(client: Mnemon) -> None:
    scripted = model()
    agent = create_agent(scripted, system_prompt="Be kind.", middleware=[MnemonMiddleware(client, user="ann")])
    agent.invoke({"messages": ["I drink oolong tea every morning."]}, {"configurable": {"thread_id": "one"}})
    agent.invoke({"messages": ["What do I drink every morning?"]}, {"configurable": {"thread_id": "two"}})
    first, second = (str(prompt[0].content) for prompt in scripted.prompts)
    assert "Be kind." in first and "oolong" not in first
    assert "Be kind." in second and "oolong" in second
    assert stored(client, "two") == ["What do I drink every morning?", "answer 1"]


def test_a_thread_is_stored_once(client: Mnemon) -> None:
    middleware = MnemonMiddleware(client, user="ann", budget=0)
    agent = create_agent(model(), middleware=[middleware], checkpointer=InMemorySaver())
    for turn in range(3):
        agent.invoke({"messages": [f"question {turn}"]}, {"configurable": {"thread_id": "t"}})
    assert stored(client, "t") == [f"{word} {turn}" for turn in range(3) for word in ("question", "answer")]


async def test_the_async_agent(client: Mnemon) -> None:
    agent = create_agent(model(), middleware=[MnemonMiddleware(client)])
    config: Any = {"configurable": {"thread_id": "a/b", "user_id": "ann"}}
    await agent.ainvoke({"messages": ["hello"]}, config)
    assert stored(client, "a%2Fb") == ["hello", "answer 0"]


def test_a_conversation_needs_a_name(client: Mnemon) -> None:
    agent = create_agent(model(), middleware=[MnemonMiddleware(client)])
    with pytest.raises(ValueError, match="thread_id"):
        agent.invoke({"messages": ["hello"]})
    silent = create_agent(model(), middleware=[MnemonMiddleware(client, store=False)])
    silent.invoke({"messages": ["hello"]})
    assert client.chat_list()["conversations"] == []


def graph_of(node: Any) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("work", node)
    graph.add_edge(START, "work")
    return graph.compile()


def config(name: str) -> Any:
    return {"configurable": {"thread_id": name, "user_id": name}}


async def test_a_node_gets_its_memory_and_logs_its_steps(client: Mnemon) -> None:
    user = uuid.uuid4().hex
    client.add("Ann drinks oolong", user=user, kind="fact")
    seen: list[Any] = []

    def work(state: Any, known: dict[str, Any]) -> Any:
        seen.append(known)
        if state["messages"][-1].content == "fail":
            raise RuntimeError("no water")
        return {"messages": ["done"]}

    async def awork(state: Any, known: dict[str, Any]) -> Any:
        return work(state, known)

    app = graph_of(with_memory(client, work, node="work", agent="waiter", task_type="serve"))
    app.invoke({"messages": ["What does Ann drink?"]}, config(user))
    assert "oolong" in str(seen[0]["semantic"]) and set(seen[0]) >= {"dialog", "semantic", "procedural"}
    with pytest.raises(RuntimeError):
        app.invoke({"messages": ["fail"]}, config(user))
    both = graph_of(with_memory(client, awork, node="work", agent="waiter", scopes=["semantic"]))
    await both.ainvoke({"messages": ["tea"]}, config(user))
    assert set(seen[2]) == {"semantic"}
    steps = [record for record in client.list_all(kind=["step"], user=user)]
    assert len(steps) == 3
    assert [step for step in steps if "no water" in str(step)]
    with pytest.raises(ValueError, match="user_id"):
        app.invoke({"messages": ["x"]}, {"configurable": {"thread_id": "t"}})


async def test_a_cancelled_node_logs_its_step(client: Mnemon) -> None:
    began = asyncio.Event()

    async def work(state: Any, known: dict[str, Any]) -> Any:
        began.set()
        await asyncio.Event().wait()

    app = graph_of(with_memory(client, work, node="work", agent="waiter"))
    running = asyncio.create_task(app.ainvoke({"messages": ["x"]}, config("ann")))
    await began.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    steps = list(client.list_all(kind=["step"], user="ann"))
    assert len(steps) == 1 and "Cancelled" in str(steps[0])
