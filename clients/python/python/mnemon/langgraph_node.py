"""LangGraph: a node that reads the memory before it runs, and logs its step afterwards.

>>> from langgraph.graph import START, MessagesState, StateGraph
>>> from mnemon import Mnemon
>>> from mnemon.langgraph_node import with_memory
>>> memory = Mnemon(URL)
>>> _ = memory.add("Ann drinks green tea", user="ln-doc", kind="fact")
>>> def answer(state, known):
...     return {"messages": [("assistant", known["semantic"]["docs"][0]["content"])]}
>>> graph = StateGraph(MessagesState)
>>> _ = graph.add_node("answer", with_memory(memory, answer, node="answer", agent="waiter"))
>>> _ = graph.add_edge(START, "answer")
>>> config = {"configurable": {"thread_id": "ln-doc", "user_id": "ln-doc"}}
>>> graph.compile().invoke({"messages": ["What does Ann drink?"]}, config)["messages"][-1].content
'Ann drinks green tea'
>>> memory.close()
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.runnables import RunnableConfig, RunnableLambda

from .errors import MnemonError

if TYPE_CHECKING:
    from . import Mnemon

log = logging.getLogger("mnemon")

MemoryScope = Literal["dialog", "state", "semantic", "procedural", "profile", "experience"]

# Longer errors are cut; the log of steps is not a place for traces.
ERROR_LENGTH = 1000


def with_memory(
    memory: Mnemon,
    function: Callable[[Any, dict[str, Any]], Any],
    *,
    node: str,
    agent: str,
    flow: str | None = None,
    scopes: Sequence[MemoryScope] | None = None,
    task_type: str | None = None,
    query: Callable[[Any], str | None] | None = None,
) -> RunnableLambda[Any, Any]:
    """Make a node of a function that takes the state and the memory it needs.

    The memory is a dictionary with the payload of each scope, as `Mnemon.read` returns it. User and
    session are `user_id` and `thread_id` of the configuration. `query` takes the state and returns the
    question; by default, it is the text of the last message. The function may be async.

    The steps of one run of a graph belong together if the configuration has a `run_id`.
    A step is logged with its duration, also if it fails or is cancelled. A step that cannot be logged
    is a warning, as the work of the node must not be lost.
    """
    asks = query or last_text
    about = {"node": node, "agent": agent, "flow": flow, "task_type": task_type}

    def read(state: Any, config: RunnableConfig) -> dict[str, Any]:
        who = _who(config)
        items = memory.read(asks(state), scope=scopes, **who, **about)["items"]
        return {str(item["scope"]): item.get("payload") for item in items}

    def finish(config: RunnableConfig, began: float, error: BaseException | None) -> None:
        run_id = config.get("run_id") or config.get("configurable", {}).get("run_id") or uuid.uuid4()
        _log_step(memory, {**about, **_who(config), "trace_id": str(run_id)}, began, error)

    def run(state: Any, config: RunnableConfig) -> Any:
        known = read(state, config)
        began = time.monotonic()
        try:
            result = function(state, known)
        except BaseException as error:
            finish(config, began, error)
            raise
        finish(config, began, None)
        return result

    async def arun(state: Any, config: RunnableConfig) -> Any:
        known = await asyncio.to_thread(read, state, config)
        began = time.monotonic()
        try:
            result = await _called(function, state, known)
        except BaseException as error:
            # Not in a thread: a task that was cancelled must not wait for one.
            finish(config, began, error)
            raise
        await asyncio.to_thread(finish, config, began, None)
        return result

    if inspect.iscoroutinefunction(function):
        return RunnableLambda(_refuse_sync, afunc=arun, name=node)
    return RunnableLambda(run, afunc=arun, name=node)


def last_text(state: Any) -> str | None:
    """The text of the last message of a state."""
    messages = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
    if not messages:
        return None
    content = getattr(messages[-1], "content", messages[-1])
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if isinstance(part, dict) and part.get("type") == "text")


async def _called(function: Callable[..., Any], state: Any, known: dict[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function):
        result: Awaitable[Any] = function(state, known)
        return await result
    return await asyncio.to_thread(function, state, known)


def _refuse_sync(state: Any) -> Any:
    raise TypeError("this node is async: use ainvoke")


def _who(config: RunnableConfig) -> dict[str, str]:
    given = config.get("configurable", {})
    missing = [name for name in ("user_id", "thread_id") if not given.get(name)]
    if missing:
        raise ValueError(f"{' and '.join(missing)} is missing in config['configurable']")
    return {"user": str(given["user_id"]), "session": str(given["thread_id"])}


def _log_step(memory: Mnemon, about: dict[str, Any], began: float, error: BaseException | None) -> None:
    took = int((time.monotonic() - began) * 1000)
    text = None if error is None else f"{type(error).__name__}: {error}"[:ERROR_LENGTH]
    try:
        memory.experience_log(tool=about["node"], latency_ms=took, error=text, **about)
    except MnemonError as failed:
        log.warning("the step of the node %s was not logged: %s", about["node"], failed)
