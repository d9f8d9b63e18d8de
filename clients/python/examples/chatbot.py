"""A chatbot that remembers across restarts: python chatbot.py memory.db ann

It reads questions from the standard input. `answer` stands for your model: it gets the conversation and
the context that Mnemon made for the question.
"""

from __future__ import annotations

import sys
import uuid

from mnemon import Mnemon


def answer(question: str, context: str) -> str:
    """Replace it by a call of your model, with `context` as a part of the system prompt."""
    words = {word.strip("?.,!").lower() for word in question.split() if len(word) > 3}
    known = [line for line in context.splitlines() if words & set(line.lower().replace(".", "").split())]
    return f"I remember: {known[0].strip('- ')}" if known and question.endswith("?") else "Noted."


def main(path: str, user: str) -> None:
    session = f"chat-{uuid.uuid4().hex[:8]}"
    with Mnemon(path) as memory:
        for line in sys.stdin:
            question = line.strip()
            context = memory.context(question, user=user, session=session, budget=1000)["text"]
            reply = answer(question, context)
            print(reply)
            messages = [{"role": "user", "content": question}, {"role": "assistant", "content": reply}]
            memory.chat_append(session, message=messages, user=user)
            # What was said is known in all later conversations.
            memory.chat_record(session, user=user)


if __name__ == "__main__":
    main(*sys.argv[1:3])
