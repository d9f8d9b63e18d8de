"""The client against servers that are gone, slow, or answer garbage."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mnemon import (
    BusyError,
    ConnectionLostError,
    InternalError,
    ProtocolError,
    TimedOutError,
    TooOftenError,
)

HITS = {"hits": [], "recipe": "hybrid"}


class Scripted:
    """A server whose answers are bytes that the test chooses; None closes the connection."""

    def __init__(self, answer: Callable[[int], bytes | None]) -> None:
        self.requests: list[bytes] = []
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while True:
                request = self._read(connection)
                if request is None:
                    return
                self.requests.append(request)
                answer = self._answer(len(self.requests))
                if answer is None:
                    return
                try:
                    connection.sendall(answer)
                except OSError:
                    return
                if b"\r\nConnection: close" in answer:
                    return

    @staticmethod
    def _read(connection: socket.socket) -> bytes | None:
        data = b""
        try:
            while b"\r\n\r\n" not in data:
                more = connection.recv(65536)
                if not more:
                    return None
                data += more
            head, _, body = data.partition(b"\r\n\r\n")
            length = next((int(h.split(b":")[1]) for h in head.split(b"\r\n") if h.startswith(b"Content-Length")), 0)
            while len(body) < length:
                body += connection.recv(65536)
        except OSError:
            return None
        return head + b"\r\n\r\n" + body

    def close(self) -> None:
        self._socket.close()
        for connection in self._open:
            connection.close()


def response(status: int, value: Any, media: str = "application/json", extra: str = "") -> bytes:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
    return head.encode() + body


def problem(status: int, code: str, extra: str = "") -> bytes:
    told = {"title": "x", "status": status, "code": code, "detail": "no"}
    return response(status, told, "application/problem+json", extra)


@pytest.fixture
def scripted(form: Any) -> Iterator[Callable[..., tuple[Any, Scripted]]]:
    opened: list[Any] = []

    def start(answer: Callable[[int], bytes | None], **named: Any) -> tuple[Any, Scripted]:
        server = Scripted(answer)
        client = form(server.url, **{"timeout": 10.0, **named})
        opened.extend((client, server))
        return client, server

    yield start
    for one in opened:
        one.close()


def test_a_server_that_is_gone(form: Any) -> None:
    client = form("http://127.0.0.1:1", retries=1)
    with pytest.raises(ConnectionLostError, match="127.0.0.1:1") as error:
        client.search("tea")
    assert isinstance(error.value, ConnectionError) and not error.value.sent
    client.close()


def test_a_server_that_does_not_answer(scripted: Any, caplog: pytest.LogCaptureFixture) -> None:
    client, _ = scripted(lambda count: b"", timeout=0.1, retries=1)
    with pytest.raises(TimedOutError) as error:
        client.search("tea")
    assert isinstance(error.value, TimeoutError)
    assert [r.getMessage().split(",")[0] for r in caplog.records if r.levelname == "WARNING"] == ["search failed (timeout)"]
    caplog.clear()
    with pytest.raises(TimedOutError):
        client.update("an-id", content="x")
    assert caplog.records == []


GARBAGE = [
    b"garbage\r\n\r\n",
    b"HTTP/1.1 abc\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcdef\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}",
    response(200, b"<html>", "text/html"),
    response(200, b'{"hits": ['),
    response(200, b"\xff\xfe\x00"),
    response(418, b"teapot", "text/plain"),
    response(500, b"[1]"),
    b"x" * 70_000,
]


@pytest.mark.parametrize("answer", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage(scripted: Any, answer: bytes) -> None:
    client, server = scripted(lambda count: answer)
    with pytest.raises(ProtocolError):
        client.search("tea")
    assert len(server.requests) == 1


def test_an_answer_that_is_cut(scripted: Any) -> None:
    cut = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{}"
    client, server = scripted(lambda count: cut if count == 1 else response(200, HITS))
    assert client.search("tea") == HITS
    client, server = scripted(lambda count: cut)
    with pytest.raises(ConnectionLostError):
        client.update("an-id", content="x")
    assert len(server.requests) == 1


def test_a_read_is_repeated_and_a_write_without_a_key_is_not(scripted: Any) -> None:
    client, server = scripted(lambda count: None if count == 1 else response(200, HITS))
    assert client.search("tea") == HITS
    assert len(server.requests) == 2
    client, server = scripted(lambda count: None)
    with pytest.raises(ConnectionLostError):
        client.update("an-id", content="x")
    assert len(server.requests) == 1


def test_a_write_with_a_key_is_repeated_with_the_same_key(scripted: Any) -> None:
    receipt = {"commit": 1, "items": []}
    client, server = scripted(lambda count: None if count < 3 else response(200, receipt))
    assert client.add("once") == receipt
    keys = {line for request in server.requests for line in request.split(b"\r\n") if line.startswith(b"Idempotency-Key")}
    assert len(server.requests) == 3 and len(keys) == 1


def test_a_connection_is_used_again_and_sends_at_once(scripted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    connected: list[socket.socket] = []
    connect = socket.socket.connect

    def watched(self: socket.socket, address: Any) -> None:
        connected.append(self)
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", watched)
    client, server = scripted(lambda count: response(200, HITS))
    for _ in range(3):
        client.search("tea")
    assert len(server.requests) == 3 and len(server._open) == 1 and connected
    for one in connected:
        # Without it, a request may wait 40 ms for the acknowledgement of an earlier one.
        assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_connection_that_the_server_closed_meanwhile_is_not_used(scripted: Any) -> None:
    closing = response(200, HITS, extra="Connection: close\r\n")
    client, server = scripted(lambda count: closing, retries=0)
    for _ in range(3):
        client.update("an-id", content="x")
    assert len(server.requests) == 3


def test_a_write_that_was_refused_as_busy_is_repeated(scripted: Any) -> None:
    client, server = scripted(lambda count: problem(503, "busy") if count < 3 else response(200, {}))
    client.update("an-id", content="x")
    assert len(server.requests) == 3
    client, server = scripted(lambda count: problem(503, "busy"), retries=1)
    with pytest.raises(BusyError):
        client.search("tea")
    assert len(server.requests) == 2


def test_a_long_retry_after_is_left_to_the_caller(scripted: Any) -> None:
    client, server = scripted(lambda count: problem(429, "too-often", "Retry-After: 3600\r\n"))
    with pytest.raises(TooOftenError) as error:
        client.search("tea")
    assert error.value.retry_after == 3600 and len(server.requests) == 1


def test_an_unknown_code_is_an_error_all_the_same(scripted: Any) -> None:
    client, _ = scripted(lambda count: problem(500, "corrupt"))
    with pytest.raises(InternalError):
        client.search("tea")
    client, _ = scripted(lambda count: problem(499, "brand-new"))
    with pytest.raises(Exception, match="no") as error:
        client.search("tea")
    assert error.value.code == "brand-new"  # type: ignore[attr-defined]


def test_an_export_that_was_cut_is_an_error(scripted: Any) -> None:
    cut = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nb\r\n{"id":"a"}\n\r\n5\r\n{"i'
    client, _ = scripted(lambda count: cut)
    seen = []
    with pytest.raises(ConnectionLostError):
        for record in client.export():
            seen.append(record["id"])
    assert seen == ["a"]


def test_a_feed_that_falls_silent_is_opened_after_the_last_change(scripted: Any) -> None:
    """Each answer is the change after the one that the client knows, and then silence."""
    asked: list[int] = []

    def answer(count: int) -> bytes:
        request = server.requests[count - 1]
        last = int(request.split(b"Last-Event-ID: ")[1].split(b"\r\n")[0])
        asked.append(last)
        event = f': here\n\nid: {last + 1}\nevent: change\ndata: {{"seq":{last + 1}}}\n\n'.encode()
        return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(event), event)

    client, server = scripted(answer)
    feed = client.changes(after=0, timeout=0.2)
    assert [next(feed)["seq"] for _ in range(3)] == [1, 2, 3]
    feed.close()
    assert set(asked) >= {0, 1, 2}


def test_a_write_whose_answer_was_lost_is_not_doubled(server: Any, form: Any) -> None:
    """A relay passes requests on to the real server, and cuts its first two answers."""
    host, port = server.url.removeprefix("http://").split(":")
    cuts = 0

    def pass_on(request: bytes) -> bytes:
        with socket.create_connection((host, int(port))) as real:
            real.sendall(request)
            return real.recv(1 << 20)

    relay: Scripted

    def answer(count: int) -> bytes | None:
        nonlocal cuts
        told = pass_on(relay.requests[count - 1])
        if cuts < 2:
            cuts += 1
            return None
        return told

    relay = Scripted(answer)
    client = form(relay.url)
    session = f"relay-{form.__name__}"
    assert len(client.chat_append(session, "said once")["items"]) == 1
    assert cuts == 2 and len(relay.requests) == 3
    direct = form(server.url)
    assert [m["content"][0]["text"] for m in direct.chat_tail(session)["messages"]] == ["said once"]
    for one in (client, direct, relay):
        one.close()
