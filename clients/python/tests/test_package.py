"""The package: generated files, documentation, speed."""

from __future__ import annotations

import doctest
import os
import pickle
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import mnemon

ROOT = Path(__file__).parents[1]


def test_the_generated_files_are_up_to_date() -> None:
    script = ROOT.parent / "generate.py"
    run = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_the_examples_of_the_documentation(server: Any) -> None:
    result = doctest.testmod(mnemon, extraglobs={"URL": server.url})
    assert result.attempted > 0 and result.failed == 0


def test_the_quick_start_of_the_readme(tmp_path: Path) -> None:
    code = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]
    assert len(code.strip().splitlines()) <= 12
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "# Memory" in run.stdout and "green tea" in run.stdout


def test_the_import_is_quick(tmp_path: Path) -> None:
    code = "import time; t = time.process_time(); import mnemon; print(time.process_time() - t)"
    # With bytecode, as an installed package has it. Time of the processor, as the machine may be loaded.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    runs = [subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True) for _ in range(5)]
    assert min(float(run.stdout) for run in runs) < 0.050


def test_the_import_loads_no_other_modules() -> None:
    # Everything else takes longer than this package: `typing`, `json` and `logging` each import `re`, for example.
    allowed = ["__future__", "mnemon", "mnemon._sync", "mnemon._sync.client", "mnemon._sync.operations", "mnemon.errors"]
    code = "import os, sys; before = set(sys.modules); from mnemon import Mnemon, MnemonError; print(*sorted(set(sys.modules) - before))"
    # Without `site`, whose .pth files import modules that would be missed here.
    environment = {"PYTHONPATH": str(Path(mnemon.__file__).parents[1])}
    run = subprocess.run([sys.executable, "-S", "-c", code], env=environment, capture_output=True, text=True)
    assert run.stdout.split() == allowed, run.stdout + run.stderr


def test_a_program_that_does_not_ask_for_the_log_gets_none() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        code = "import mnemon, sys\ntry: mnemon.Mnemon(sys.argv[1], retries=1).health()\nexcept mnemon.ConnectionLostError: print('lost')"
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        run = subprocess.run([sys.executable, "-c", code, address], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("lost\n", "")


def test_errors_can_be_pickled() -> None:
    error = mnemon.NotFoundError("is not there", field="id", status=404)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is mnemon.NotFoundError and vars(again) == vars(error) and str(again) == str(error)


def test_a_request_costs_less_than_a_millisecond(server: Any) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with mnemon.Mnemon(server.url) as memory, socket.create_connection((host, int(port))) as raw:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain = f"GET /healthz HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()

        def ask() -> None:
            raw.sendall(plain)
            raw.recv(65536)

        overhead = quickest(memory.health) - quickest(ask)
    assert overhead < 0.001


def quickest(function: Any) -> float:
    times = []
    for _ in range(101):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    # Not the median: the machine may be loaded.
    return sorted(times)[10]
