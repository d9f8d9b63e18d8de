"""LangChain: middleware that gives an agent a memory.

>>> from langchain.agents import create_agent
>>> from langchain_core.language_models.fake_chat_models import FakeListChatModel
>>> from mnemon import Mnemon
>>> from mnemon.langchain_agent import MnemonMiddleware
>>> memory = Mnemon(URL)
>>> remembering = MnemonMiddleware(memory, user="la-doc")
>>> agent = create_agent(FakeListChatModel(responses=["Noted."]), middleware=[remembering])
>>> config = {"configurable": {"thread_id": "la-doc"}}
>>> _ = agent.invoke({"messages": ["I drink green tea every morning"]}, config)
>>> [message["role"] for message in memory.chat_tail("la-doc", user="la-doc")["messages"]]
['USER', 'ASSISTANT']
>>> memory.close()
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain_core.messages import BaseMessage, SystemMessage
from langgraph.config import get_config

from . import Mnemon
from .langchain import MnemonChatMessageHistory, _text


class MnemonMiddleware(AgentMiddleware[Any, Any, Any]):
    """What is known about the user is added to the system prompt, and the messages are stored.

    Before each call of the model, the context for the last question is added within `budget` tokens; 0
    adds none. When the agent has finished, the messages of the run that are not stored yet are added to
    the conversation and recorded to long-term memory; messages are recognised by their ids. The
    conversation is `session`, or `thread_id` of the configuration; the user is `user`, or `user_id`.
    """

    def __init__(
        self,
        memory: Mnemon,
        *,
        user: str | None = None,
        session: str | None = None,
        budget: int = 1000,
        store: bool = True,
    ) -> None:
        super().__init__()
        self._memory = memory
        self._user = user
        self._session = session
        self._budget = budget
        self._store = store

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        return handler(self._with_context(request, self._who()[0]))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        return await handler(await asyncio.to_thread(self._with_context, request, self._who()[0]))

    def after_agent(self, state: Any, runtime: Any) -> None:
        self._keep(state["messages"], *self._who())

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        await asyncio.to_thread(self._keep, state["messages"], *self._who())

    def _who(self) -> tuple[str | None, str | None]:
        given = get_config().get("configurable", {})
        return self._user or given.get("user_id"), self._session or given.get("thread_id")

    def _with_context(self, request: ModelRequest[Any], user: str | None) -> ModelRequest[Any]:
        asked = [message for message in request.messages if message.type == "human"]
        if not asked or self._budget <= 0:
            return request
        known = self._memory.context(_text(asked[-1]), user=user, budget=self._budget)["text"].strip()
        if not known:
            return request
        before = request.system_message
        content: Any = known
        if before is not None:
            blocks = [before.content] if isinstance(before.content, str) else before.content
            content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
            content.append({"type": "text", "text": known})
        return request.override(system_message=SystemMessage(content=content))

    def _keep(self, messages: list[BaseMessage], user: str | None, session: str | None) -> None:
        if not self._store:
            return
        if not session:
            raise ValueError("the conversation has no name: pass session=…, or thread_id in config['configurable']")
        history = MnemonChatMessageHistory(self._memory, session, user=user)
        known = {message.id for message in history.last(len(messages))}
        new = [message for message in messages if message.id not in known or message.id is None]
        if new:
            history.add_messages(new)
            self._memory.chat_record(history.conversation, user=user, mode="static")
