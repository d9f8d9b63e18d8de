"""The HTTP server: foreign hosts and pages, slow clients, floods of sessions, bodies that are none."""

import json
import resource
import socket
import time

from kit import HttpServer

FOREIGN_HOSTS = (
    "evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example@127.0.0.1",
    "127.0.0.1@evil.example", "evil.com@127.0.0.1:1", "0.0.0.0", "[::ffff:8.8.8.8]", "127.0.0.1:80:80", "local host",
    "127.0.0.1/evil", "127.0.0.1#evil", "127.0.0.1?x", "xn--localhost", "localhost\u200b", "169.254.169.254", "",
    "127.0.0.1,evil.example", "http://127.0.0.1",
)
FOREIGN_ORIGINS = (
    "https://evil.example", "http://evil.example", "http://127.0.0.1.evil.example", "http://localhost.evil.example",
    "http://evil.example:8750", "file://", "http://localhost@evil.example", "chrome-extension://abc", "http://[::2]",
    "javascript:alert(1)", "https://127.0.0.1%2eevil.example",
)

HALF_HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
HALF_BODY = (b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
             b"Accept: application/json, text/event-stream\r\nContent-Length: 1000\r\n\r\n{")


def foreign(row):
    """Host and Origin headers of others, simple requests of web pages, other methods and paths"""
    with row.home() as home, HttpServer(home) as server:
        for _ in row.rounds(3):
            for header, values in (("Host", FOREIGN_HOSTS), ("Origin", FOREIGN_ORIGINS)):
                for value in values:
                    row.tried += 1
                    status, _, _ = server.greet({header: value.encode("utf-8", "replace").decode("latin-1")}, patience=20)
                    if status == 200:
                        row.leaked.append(f"{header}: {value} is served")
            for headers in ({"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"},
                            {"Content-Type": "multipart/form-data"}):
                row.tried += 1
                if server.greet(headers)[0] == 200:
                    row.leaked.append(f"a simple request with {headers} is served")
            for method, path in (("GET", "/"), ("PUT", "/mcp"), ("POST", "/mcp/../x"), ("POST", "//mcp"),
                                 ("TRACE", "/mcp"), ("GET", "/../../etc/passwd"), ("POST", "/" + "a" * 60_000)):
                row.tried += 1
                if server.post("{}", path=path, method=method, patience=20)[0] == 200:
                    row.leaked.append(f"{method} {path[:40]} is served")
            if server.greet()[0] != 200:
                row.broke("the server does not answer its own machine")


def keys(row):
    """wrong keys; the right one is in no log"""
    with row.home() as home:
        key = "K3y" + row.token() * 2
        home.env["MNEMON_API_KEY"] = key
        with HttpServer(home) as server:
            for _ in row.rounds(3):
                for value in ("", "Bearer", "Bearer ", f"bearer  {key}x", f"Bearer {key[:-1]}", f"Basic {key}", key.upper(),
                              f"Bearer {key}\x00", f"Bearer {key.swapcase()}", f"Token {key}", f"Bearer {key}, Bearer x"):
                    row.tried += 1
                    try:
                        status = server.greet({"Authorization": value})[0]
                    except ValueError:
                        continue
                    if status == 200:
                        row.leaked.append(f"{value.replace(key, 'KEY')!r} is served")
                if server.greet({"Authorization": f"Bearer {key}"})[0] != 200:
                    row.broke("the right key is refused")
            row.expect_absent(key, "".join(server.said), "the server's output")


def bodies(row):
    """malformed bodies, wrong lengths, 65 MiB"""
    with row.home() as home, HttpServer(home) as server:
        deep = "[" * 100_000
        texts = ("", "null", "[]", "{", "\x00", deep, '{"jsonrpc":"2.0"}', '{"jsonrpc":"2.0","id":1,"method":5}',
                 '{"a":' * 50_000, json.dumps({"jsonrpc": "2.0", "id": 1e308, "method": "x" * 1_000_000}),
                 "\ud800".encode("utf-8", "surrogatepass"), b"\xff\xfe", b"x" * (65 << 20))
        for _ in row.rounds(3):
            for text in texts:
                row.tried += 1
                server.post(text)
            for head in ("Content-Length: 99999999999", "Content-Length: -1", "Transfer-Encoding: chunked\r\nContent-Length: 5",
                         "Content-Length: 5\r\nContent-Length: 6"):
                row.tried += 1
                with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
                    raw.sendall(f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}\r\n\r\nhello".encode())
            if server.greet()[0] != 200:
                row.broke("the server does not answer after a malformed body")


def slow_clients(row):
    """half-open connections beyond the server's file limit; another client is still served"""
    for _ in row.rounds(2):
        with row.home() as home, HttpServer(home, limits={resource.RLIMIT_NOFILE: 200}) as server:
            opened = []
            for number in range(320):
                row.tried += 1
                try:
                    raw = socket.create_connection(("127.0.0.1", server.port), timeout=2)
                    raw.sendall(HALF_HEAD if number % 2 else HALF_BODY)
                    opened.append(raw)
                except OSError:
                    break
            began, served = time.monotonic(), False
            while not served and time.monotonic() - began < 90:
                served = server.greet(patience=5)[0] == 200
            row.notes.append(f"{len(opened)} half-open, served after {time.monotonic() - began:.0f} s" if served
                             else f"not served within 90 s beside {len(opened)} half-open connections")
            if not served:
                row.broke("slow clients keep others out")
            for raw in opened:
                raw.close()


def sessions(row):
    """flood of sessions without end"""
    with row.home() as home, HttpServer(home) as server:
        server.greet()
        before = server.resident_mb()
        for _ in row.rounds(5000):
            if server.greet()[0] == 0:
                break
        after = server.resident_mb()
        row.notes.append(f"{before} to {after} MB")
        if after - before > 128:
            row.broke(f"{row.tried} sessions take {after - before} MB")
        began, served = time.monotonic(), False
        while not served and time.monotonic() - began < 60:
            served = server.session(patience=10) is not None
        if not served:
            row.broke("nobody else gets a session within 60 s")


ATTACKS = (foreign, keys, bodies, slow_clients, sessions)
