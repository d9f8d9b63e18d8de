"""A server of the program in MNEMON_BIN, and the client in its forms."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mnemon import AsyncMnemon, Mnemon


class Server:
    """A process with a folder and a port of its own."""

    def __init__(self, *, key: str | None = None, listen: str = "127.0.0.1:0", home: Path | None = None) -> None:
        program = os.environ.get("MNEMON_BIN")
        if not program:
            pytest.exit("MNEMON_BIN must name the mnemon program", 2)
        self.home = home or Path(tempfile.mkdtemp(prefix="mnemon-py-"))
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        if key:
            environment["MNEMON_API_KEY"] = key
        self.process = subprocess.Popen(
            [os.path.abspath(program), "serve", "--listen", listen, "--log", "none"],
            cwd=self.home,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout
        for line in self.process.stdout:
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                self.url = found[0]
                break
        else:
            raise RuntimeError("the server did not start")

    def stop(self, keep: bool = False) -> None:
        self.process.terminate()
        self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()
        if not keep:
            shutil.rmtree(self.home, ignore_errors=True)


class Driven:
    """The async client behind the sync interface, so that one suite tests both."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._client = AsyncMnemon(*arguments, **named)
        self._loop = asyncio.new_event_loop()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def call(*arguments: Any, **named: Any) -> Any:
            result = method(*arguments, **named)
            if inspect.isasyncgen(result):
                return self._iterate(result)
            return self._loop.run_until_complete(result)

        return call

    def _iterate(self, generator: Any) -> Iterator[Any]:
        try:
            while True:
                try:
                    yield self._loop.run_until_complete(generator.__anext__())
                except StopAsyncIteration:
                    return
        finally:
            self._loop.run_until_complete(generator.aclose())

    def close(self) -> None:
        self._loop.run_until_complete(self._client.aclose())
        # Transports are closed in the next round of the loop.
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()


FORMS = {"sync": Mnemon, "async": Driven}


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.stop()


@pytest.fixture(params=sorted(FORMS))
def form(request: pytest.FixtureRequest) -> Any:
    """The class of a client."""
    return FORMS[request.param]


@pytest.fixture(params=["server", "sqlite", "postgres"])
def memory(request: pytest.FixtureRequest, form: Any, tmp_path: Path) -> Iterator[Any]:
    """A client of a server, and of stores in this process."""
    if request.param == "server":
        client = form(request.getfixturevalue("server").url)
    elif request.param == "sqlite":
        client = form(tmp_path / "memory.db")
    else:
        database = os.environ.get("TEST_DATABASE_URL")
        if not database:
            pytest.skip("TEST_DATABASE_URL names no PostgreSQL server")
        client = form(database, tenant=f"python-{uuid.uuid4().hex[:8]}")
    yield client
    client.close()


@pytest.fixture
def start_server() -> Iterator[Any]:
    """Starts further servers, which end with the test."""
    running: list[Server] = []

    def start(**named: Any) -> Server:
        running.append(Server(**named))
        return running[-1]

    yield start
    for one in running:
        if one.process.poll() is None:
            one.stop()
        shutil.rmtree(one.home, ignore_errors=True)
