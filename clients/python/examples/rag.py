"""Answers from a folder of texts: python rag.py memory.db FOLDER QUESTION

Files that have not changed since the last run are not added again.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mnemon import Mnemon

ENDINGS = {".md", ".txt", ".rst", ".py"}


def main(path: str, folder: str, question: str) -> None:
    files = sorted(file for file in Path(folder).rglob("*") if file.suffix in ENDINGS and file.is_file())
    with Mnemon(path) as memory:
        documents = [{"uri": str(file), "text": file.read_text(errors="replace")} for file in files]
        if documents:
            memory.documents_add(documents=documents)
        # The passages for the prompt of your model; each names its file.
        for hit in memory.search(question, kind=["chunk"], limit=3)["hits"]:
            print(f"{hit['record']['source']}: {hit['record']['content']}")


if __name__ == "__main__":
    main(*sys.argv[1:4])
