"""Attacks the built program and prints what was lost, leaked or broken, as a Markdown table.

    python3 tests/attack MNEMON [MINUTES] [--seed N] [--only WORD] [--write FILE] [--list]

Traffic goes to 127.0.0.1 only, and files to temporary folders. Every attack has its share of the
time and a bound on its rounds. The seed decides what is drawn; when a process is killed also
depends on the machine. Exits with 1 if anything acknowledged was lost, anything leaked, or the
program panicked or hung.
"""

import argparse
import pathlib
import sys
import time

import crashes
import disks
import inputs
import network
import privacy
from kit import Row, Skipped

ROOT = pathlib.Path(__file__).resolve().parents[2]
ATTACKS = (*crashes.ATTACKS, *disks.ATTACKS, *privacy.ATTACKS, *network.ATTACKS, *inputs.ATTACKS)
BEGIN, END = "<!-- begin: written by ./scripts/attack -->", "<!-- end -->"


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/attack", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help=argparse.SUPPRESS)
    parser.add_argument("minutes", nargs="?", type=float, default=15, help="how long at the most, about [15]")
    parser.add_argument("--seed", type=int, default=13, help="another seed draws other attacks [13]")
    parser.add_argument("--only", default="", help="only attacks with this word in their name")
    parser.add_argument("--write", type=pathlib.Path, help="put the table into this page, between its marks")
    parser.add_argument("--list", action="store_true", help="name the attacks and stop")
    return parser.parse_args()


def attack(function, seed, seconds, program):
    row = Row(function.__doc__, seed, seconds, program)
    row.root = ROOT
    began = time.monotonic()
    try:
        function(row)
        row.skipped = None
    except Skipped as why:
        row.skipped = str(why)
    name = function.__name__
    verdict = f"skipped: {row.skipped}" if row.skipped else "held" if row.is_good() else "FAILED"
    print(f"{name}: {row.tried} tried, {row.acknowledged} acknowledged, "
          f"{time.monotonic() - began:.0f} s: {verdict}", file=sys.stderr, flush=True)
    for what, found in (("lost", row.lost), ("leaked", row.leaked), ("broken", row.broken)):
        for one in found[:5]:
            print(f"    {what}: {one[:300]}", file=sys.stderr, flush=True)
    return row


def table(rows):
    lines = ["| fault | tried | acknowledged | lost | leaked | panicked or hung | notes |",
             "|---|---:|---:|---:|---:|---:|---|"]
    for row in rows:
        if row.skipped:
            lines.append(f"| {row.fault} | – | – | – | – | – | skipped: {row.skipped} |")
            continue
        notes = "; ".join(dict.fromkeys(row.notes))[:300].replace("|", "\\|").replace("\n", " ")
        count = lambda found: f"**{len(found)}**" if found else "0"
        lines.append(f"| {row.fault} | {row.tried:,} | {row.acknowledged:,} | {count(row.lost)} | "
                     f"{count(row.leaked)} | {count(row.broken)} | {notes} |")
    return "\n".join(lines)


def write(page, text):
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        sys.exit(f"{page} lacks the lines `{BEGIN}` and `{END}`")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def main():
    chosen = arguments()
    attacks = [one for one in ATTACKS if chosen.only in one.__name__]
    if chosen.list:
        for one in attacks:
            print(f"{one.__name__}: {one.__doc__}")
        return 0
    program = str(pathlib.Path(chosen.program).resolve())
    began, rows = time.monotonic(), []
    for done, one in enumerate(attacks):
        # Time that an attack did not need goes to those after it.
        left = chosen.minutes * 60 - (time.monotonic() - began)
        rows.append(attack(one, chosen.seed, max(left / (len(attacks) - done), 1), program))
    minutes = (time.monotonic() - began) / 60
    text = f"Seed {chosen.seed}, {minutes:.0f} minutes.\n\n{table(rows)}"
    print(text)
    if chosen.write:
        write(chosen.write, text)
    bad = [row for row in rows if not row.is_good()]
    print(f"\n{len(rows) - len(bad)} held, {len(bad)} failed", file=sys.stderr)
    return 1 if bad else 0


sys.exit(main())
