"""A LangGraph agent whose threads and knowledge are in one file: python langgraph_agent.py memory.db THREAD TEXT

The checkpointer lets a thread go on after a restart; the store is for what all threads share.
"""

from __future__ import annotations

import sys
import uuid
from typing import Any

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore

from mnemon import Mnemon
from mnemon.langgraph import MnemonSaver, MnemonStore


def work(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
    """Stands for a call of your model."""
    text = str(state["messages"][-1].content)
    if text.startswith("remember "):
        store.put(("facts",), uuid.uuid4().hex, {"text": text.removeprefix("remember ")})
        return {"messages": [("assistant", "Remembered.")]}
    known = store.search(("facts",), query=text, limit=1)
    fact = known[0].value["text"] if known else "nothing"
    return {"messages": [("assistant", f"message {len(state['messages'])}; I know: {fact}")]}


def main(path: str, thread: str, text: str) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("work", work)
    graph.add_edge(START, "work")
    with Mnemon(path) as memory:
        app = graph.compile(checkpointer=MnemonSaver(memory), store=MnemonStore(memory))
        result = app.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": thread}})
    print(result["messages"][-1].content)


if __name__ == "__main__":
    main(*sys.argv[1:4])
