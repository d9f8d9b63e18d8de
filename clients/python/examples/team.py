"""A team of agents that hand work to each other: python team.py

The files of the team are Markdown below `.microai` of the working folder, for people and agents alike.
"""

from __future__ import annotations

from pathlib import Path

from mnemon import Mnemon

TEAM = "shop"


def main() -> None:
    Path(".microai").mkdir(exist_ok=True)
    Path("mnemon.toml").write_text('agents = ".microai"\n')
    with Mnemon("team.db", config="mnemon.toml") as memory:
        memory.team_new(team=TEAM, lead="planner", members=["coder", "tester"])
        memory.team_handoff(
            TEAM,
            from_="planner",
            to="coder",
            task="Build the basket",
            context="Guests have no account",
            deliverable="A page with a basket",
        )
        memory.team_accept(TEAM, member="coder")
        memory.team_decide(TEAM, title="Baskets live in cookies", decision="Use a cookie", reasons=["Guests have no account"])
        memory.team_complete(TEAM, member="coder", result="basket.html works")
        memory.team_handoff(
            TEAM,
            from_="coder",
            to="tester",
            task="Test the basket",
            context="See basket.html",
            deliverable="A list of faults",
        )
        for handoff in memory.team_status(TEAM)["handoffs"]:
            print(f"{handoff['to']}: {handoff['task']} ({handoff['status']})")


if __name__ == "__main__":
    main()
