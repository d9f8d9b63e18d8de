"""Switch from mem0: python from_mem0.py export.json memory.db

`export.json` is the answer of mem0's `get_all`, of the open-source package or of the platform:

    json.dump(client.get_all(user_id="ann"), open("export.json", "w"))

Ids are kept, so that a second run changes nothing. No key is needed.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from mnemon import Mnemon

# Whose memory it is, in the words of mem0 and of Mnemon.
OWNERS = {"user_id": "user", "agent_id": "agent", "run_id": "session"}


def record(memory: dict[str, Any]) -> dict[str, Any]:
    created = memory.get("created_at") or datetime.now(timezone.utc).isoformat()
    return {
        "v": 1,
        "id": f"mem0-{memory['id']}",
        "tenant": "default",
        "scope": "semantic",
        "kind": "fact",
        "namespace": "long-term",
        "content": memory["memory"],
        "tags": [str(category) for category in memory.get("categories") or []],
        "origin": "derived",
        "owner": {ours: memory[theirs] for theirs, ours in OWNERS.items() if memory.get(theirs)},
        "created": created,
        "updated": memory.get("updated_at") or created,
        "metadata": memory.get("metadata") or {},
    }


def main(export: str, path: str) -> None:
    found = json.loads(Path(export).read_text())
    memories = found["results"] if isinstance(found, dict) else found
    with Mnemon(path) as memory:
        answer = memory.import_([record(one) for one in memories], on_conflict="skip")
    print(json.dumps({name: answer.get(name) for name in ("added", "skipped", "replaced") if name in answer}))


if __name__ == "__main__":
    main(*sys.argv[1:3])
