"""Every example is run, as a user would run it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(folder: Path, name: str, *arguments: str, text: str = "") -> str:
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    done = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_has_a_test() -> None:
    source = Path(__file__).read_text()
    assert [one.stem for one in EXAMPLES.glob("*.py") if f'"{one.stem}"' not in source] == []


def test_the_chatbot_remembers_across_restarts(tmp_path: Path) -> None:
    assert run(tmp_path, "chatbot", "m.db", "ann", text="I drink oolong tea every morning.\n") == "Noted.\n"
    assert "oolong" in run(tmp_path, "chatbot", "m.db", "ann", text="What do I drink every morning?\n")
    assert "oolong" not in run(tmp_path, "chatbot", "m.db", "bo", text="What do I drink every morning?\n")


def test_the_langgraph_agent(tmp_path: Path) -> None:
    pytest.importorskip("langgraph.graph")
    assert run(tmp_path, "langgraph_agent", "m.db", "one", "remember the door is green") == "Remembered.\n"
    first = run(tmp_path, "langgraph_agent", "m.db", "two", "Which colour has the door?")
    assert first == "message 1; I know: the door is green\n"
    assert run(tmp_path, "langgraph_agent", "m.db", "two", "And the door now?").startswith("message 3;")


def test_the_team_hands_work_over(tmp_path: Path) -> None:
    said = run(tmp_path, "team")
    assert "tester: Test the basket" in said and "coder" not in said
    assert list(tmp_path.rglob("*.md"))


def test_rag_over_a_folder(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "tea.md").write_text("# Tea\n\nGreen tea is brewed at 80 degrees for two minutes.\n")
    (docs / "cars.txt").write_text("Brakes wear out.\n")
    for _ in range(2):
        said = run(tmp_path, "rag", "m.db", "docs", "How hot is green tea brewed?")
        assert said.splitlines()[0].startswith("docs/tea.md: ") and "80 degrees" in said
        assert said.count("80 degrees") == 1


def test_learning_from_failures(tmp_path: Path) -> None:
    said = run(tmp_path, "learning")
    assert "mode = fast" in said and "locked" in said


def test_switching_from_mem0(tmp_path: Path) -> None:
    memories = [
        {
            "id": "8f1c",
            "memory": "Ann drinks oolong tea",
            "user_id": "ann",
            "hash": "x",
            "metadata": {"lang": "en"},
            "categories": ["food"],
            "created_at": "2025-03-01T10:00:00.000000-07:00",
            "updated_at": None,
        },
        {"id": "9a2d", "memory": "The agent speaks Vietnamese", "agent_id": "helper", "metadata": None},
    ]
    (tmp_path / "oss.json").write_text(json.dumps({"results": memories}))
    (tmp_path / "platform.json").write_text(json.dumps(memories))
    run(tmp_path, "from_mem0", "oss.json", "m.db")
    run(tmp_path, "from_mem0", "platform.json", "m.db")
    from mnemon import Mnemon

    with Mnemon(tmp_path / "m.db") as memory:
        found = {record["content"]: record for record in memory.list_all()}
        assert len(found) == 2
        tea = found["Ann drinks oolong tea"]
        assert tea["owner"]["user"] == "ann" and tea["metadata"] == {"lang": "en"} and tea["created"].year == 2025
        assert memory.search("What tea does Ann drink?", user="ann")["hits"][0]["record"]["id"] == "mem0-8f1c"
