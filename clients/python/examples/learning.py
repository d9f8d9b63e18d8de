"""An agent that learns from its failures: python learning.py

Each run logs its steps. `learn_run` compares runs that failed with runs that did not, with no model, and
finds the circumstances that made the difference.
"""

from __future__ import annotations

from mnemon import Mnemon

TASK = "deploy"


def deploy(memory: Mnemon, number: int, mode: str) -> None:
    """A tool that fails in one of its modes."""
    error = "the database is locked" if mode == "fast" else None
    memory.experience_log(
        task_type=TASK,
        tool="migrate",
        input={"mode": mode},
        goal="deploy the shop",
        error=error,
        outcome="failure" if error else "success",
        trace_id=f"run-{number}",
        agent="deployer",
    )


def main() -> None:
    with Mnemon("learning.db") as memory:
        for number in range(40):
            deploy(memory, number, "fast" if number % 2 else "slow")
        memory.learn_run()
        # What the next run is shown before it begins.
        for rule in memory.skill_search(task_type=TASK).get("rules", []):
            print(rule["rule"])


if __name__ == "__main__":
    main()
