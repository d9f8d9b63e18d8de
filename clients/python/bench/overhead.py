"""Cost of the Python package itself: its import, a search in this process, and a request to a server.

    python overhead.py           10,000 records
    python overhead.py 1000      another number

Build the wheel with `--release`: figures of a debug build mean nothing. Each line compares two figures that are
measured in turns, so that a load of the machine is part of both.

- import: `python -c "from mnemon import Mnemon"` and `python -c pass`; at most 50 ms more.
- in process: `Mnemon.search` and the time of the same operation in Rust; at most 1.5 times as much.
- server: `search` and `health` of the client and the same bytes on a socket; at most 1 ms more.
"""

from __future__ import annotations

import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compare import BATCH, queries, texts, write_facts

from mnemon import Mnemon, _form

RUNS = 20


def milliseconds(times: list[float]) -> float:
    return statistics.median(times) * 1000


def clock(function: Callable[[], Any]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def measure_import(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def run(code: str) -> float:
        return clock(lambda: subprocess.run([sys.executable, "-c", code], env=environment, check=True))

    run("from mnemon import Mnemon")
    bare, package = [], []
    for _ in range(RUNS):
        bare.append(run("pass"))
        package.append(run("from mnemon import Mnemon"))
    added = milliseconds(package) - milliseconds(bare)
    print(f"import     {milliseconds(package):7.1f} ms, bare interpreter {milliseconds(bare):7.1f} ms: {added:6.1f} ms more")


def measure_search(memory: Mnemon, asked: list[str]) -> None:
    store: Any = memory._transport._store  # pyright: ignore
    python, rust = [], []

    class Watched:
        """The store; it notes the time of each operation."""

        def request(self, *arguments: Any) -> Any:
            answer = store.request(*arguments)
            rust.append(answer.seconds)
            return answer

    memory._transport._store = Watched()  # pyright: ignore
    memory.search(asked[0])
    rust.clear()
    for query in asked:
        python.append(clock(lambda: memory.search(query)))
    memory._transport._store = store  # pyright: ignore
    ratio = milliseconds(python) / milliseconds(rust)
    print(f"in process {milliseconds(python):7.3f} ms, operation in Rust {milliseconds(rust):7.3f} ms: {ratio:6.2f} times")


class Raw:
    """One connection that sends requests as the client does, and only finds the end of the answers."""

    def __init__(self, memory: Mnemon) -> None:
        self._transport: Any = memory._transport  # pyright: ignore
        self._socket = socket.create_connection((self._transport._host, self._transport._port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def message(self, operation: str, fields: dict[str, Any]) -> bytes:
        request = _form.request_of(_form.operation(operation), fields)
        return self._transport._head(request, "application/json") + request.body

    def ask(self, message: bytes) -> None:
        self._socket.sendall(message)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._socket.recv(65536)
        length = re.search(rb"content-length: (\d+)", answer)
        assert answer.startswith(b"HTTP/1.1 200") and length, answer
        missing = answer.index(b"\r\n\r\n") + 4 + int(length[1]) - len(answer)
        while missing > 0:
            missing -= len(self._socket.recv(65536))


def measure_server(folder: Path, asked: list[str]) -> None:
    code = "import sys; from mnemon._program import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "serve", "--store", f"sqlite:{folder}/m.db", "--listen", "127.0.0.1:0", "--log", "none"]
    environment = {**os.environ, "HOME": str(folder)}
    server = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert server.stdout
        address = next((found[0] for line in server.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+", line))), None)
        assert address, "the server did not start"
        with Mnemon(address) as memory:
            raw = Raw(memory)
            calls = [("search", lambda query: memory.search(query), "query"), ("health", lambda _: memory.health(), "")]
            for name, call, field in calls:
                client, plain = [], []
                call(asked[0])
                for query in asked:
                    message = raw.message(name, {field: query} if field else {})
                    client.append(clock(lambda: call(query)))
                    plain.append(clock(lambda: raw.ask(message)))
                more = milliseconds(client) - milliseconds(plain)
                print(f"{name:10} {milliseconds(client):7.3f} ms, plain socket {milliseconds(plain):7.3f} ms: {more:6.3f} ms more")
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(f"{count} records, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    given = list(texts(count, seed=1))
    asked = [query for query, _ in queries(given)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure_import(folder)
        with Mnemon(folder / "m.db") as memory:
            for start in range(0, count, BATCH):
                write_facts(memory, given[start : start + BATCH])
            measure_search(memory, asked)
        measure_server(folder, asked)


if __name__ == "__main__":
    main()
