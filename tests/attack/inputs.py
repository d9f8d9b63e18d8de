"""Whatever is written in: paths, bombs and noise. Nothing panics or hangs, and nothing leads outside."""

import json
import os
import resource

from kit import Server


def paths(row):
    """paths, names, session ids and addresses that lead outside; links, FIFO, NUL"""
    with row.home() as home:
        token = row.token()
        outside = home.folder / "outside"
        outside.mkdir()
        (outside / "secret.md").write_text(f"# Decisions\n\n## 2026-01-01: {token}\n\n{token}\n")
        (outside / "secret.json").write_text(json.dumps({"sessionId": "x", "components": {"p": {"t": token}}}))
        project = home.folder / "project"
        (project / ".microai/agents").mkdir(parents=True)
        (project / "link.md").symlink_to(outside / "secret.md")
        (project / "folder").symlink_to(outside)
        (project / ".microai/agents/linked").symlink_to(outside)
        os.mkfifo(project / "pipe.md")
        inner, home.folder = home.folder, project
        names = ("../outside/secret.md", f"{outside}/secret.md", "link.md", "folder/secret.md", "pipe.md", "./../outside/secret.md",
                 "a/../../outside/secret.md", "..\\outside\\secret.md", "%2e%2e/outside/secret.md", "/proc/self/environ", "/dev/zero",
                 ".", "", "..", "link.md/", "\u2025/outside/secret.md", "file:///etc/passwd", "secret.md\x00.txt", "~/.ssh/id")
        ids = ("../outside/secret", "..", ".", "/etc/passwd", "a/b", "a\\b", "con", "x\x00", "a" * 300, "folder/secret", "linked", "-x")
        with Server(home, "--tools", "all") as server:
            for _ in row.rounds(2):
                for name in names:
                    for tool, key in (("memory_add", "content_path"), ("memory_get", "id")):
                        row.tried += 1
                        row.expect_absent(token, server.call(tool, **{key: name}) or "", f"{tool} of {name!r}")
                    for uri in (f"mnemon://{name}", f"file://{name}", name):
                        row.tried += 1
                        row.expect_absent(token, json.dumps(server.ask("resources/read", {"uri": uri})), f"resource {uri!r}")
                for id in ids:
                    row.tried += 3
                    row.expect_absent(token, server.call("agent_activate", agent=id, task="x") or "", f"agent {id!r}")
                    server.call("agent_decide", agent=id, title="x", decision="written")
                    server.call("memory_context", query="tea", session=id)
                    if "\x00" not in id:
                        row.expect_absent(token, home.run("session", "load", "--folder", "sessions", "--", id).out, f"session {id!r}")
                        home.run("session", "save", "--folder", "sessions", "--", id, stdin='{"p": {"written": 1}}')
                        home.run("chat", "append", "--files", ".", "--", id, "written")
        row.expect_absent(token, home.exported(), "the store")
        changed = [path for path in outside.iterdir() if b"written" in path.read_bytes() or "secret" not in path.name]
        row.leaked += [f"{path.name} was written outside of the project" for path in changed]
        home.folder = inner


def bombs(row):
    """nesting, huge numbers and filters, 2 MiB repeats, long lines, HTML and Markdown"""
    mib = 1 << 20
    repeats = ("a", " ", "\n", "(", "[", "<div>", "> ", "- ", "#", "`", "*_", "<!--", "|", "password: ", "\\n", "\u0301", "\U0001f469\u200d", "AKIA",
               "Bearer ", "../", "1", "=", "![](", "&amp;", "</")
    with row.home("sqlite") as one, row.home("jsonl") as two:
        for number in row.rounds(len(repeats)):
            home, piece = (one, two)[number % 2], repeats[number]
            text = piece * (2 * mib // len(piece.encode()))
            limits = {resource.RLIMIT_AS: 8 << 30}
            home.run("add", "-", stdin=text, limits=limits)
            (home.folder / "doc.md").write_text(text)
            (home.folder / "doc.html").write_text(text)
            home.run("ingest", "doc.md", "doc.html", limits=limits)
            home.run("agent", "decide", "--create", "coder", "x", "--decision", "-", stdin=text, limits=limits)
            home.run("add", "--jsonl", stdin=piece * 50_000, limits=limits)
            home.run("add", "--meta-json", "[" * 20_000, "x", limits=limits)
            home.run("search", "--filter", '{"$not":' * 5000 + "{}", "x", limits=limits)
            home.run("search", "-", stdin=piece * 50_000, limits=limits)
        for home in (one, two):
            home.run("search", "tea")
            home.check_healthy()


def mutated(random, data):
    """A few bytes changed, doubled, cut or replaced by something that parsers stumble over."""
    data = bytearray(data)
    odd = (b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"1e999", b"-9223372036854775809", b'"', b"{", b"]", b"\\u0000", b"\r", b"null",
           b"\xe2\x80\xae", b"[" * 300, b"99999999999999999999")
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(data) + 1)
        how = random.randrange(4)
        if how == 0 and at < len(data):
            data[at] = random.randrange(256)
        elif how == 1:
            data[at:at] = random.choice(odd)
        elif how == 2:
            del data[at:at + random.randrange(1, 30)]
        else:
            data[at:at] = data[at:at + random.randrange(1, 50)]
    return bytes(data)


def fuzz_mcp(row):
    """noise in MCP lines; the server keeps running"""
    calls = json.loads((row.root / "tests/clients/calls.json").read_text())
    with row.home() as home, Server(home, "--tools", "all") as server:
        for number in row.rounds(3000):
            name, arguments = row.random.choice(calls)
            line = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call",
                               "params": {"name": name, "arguments": arguments}})
            server.send_line(mutated(row.random, line.encode()).replace(b"\n", b" "))
            if number % 50 == 49 and server.ask("tools/list") is None:
                return row.broke("the server ended, or no longer answers")
        if server.ask("tools/list") is None:
            row.broke("the server ended, or no longer answers")
        home.check_healthy()


def fuzz_files(row):
    """noise in drafts, imports, JSONL stores, sessions, toml, Markdown and filters"""
    with row.home("sqlite") as one, row.home("jsonl") as two:
        for home in (one, two):
            home.fill(10)
        record = one.exported().splitlines()[0].encode()
        log = next(path for path in two.folder.rglob("*.jsonl"))
        whole = log.read_bytes()
        toml = b'[llm]\nurl = "http://127.0.0.1:9/v1"\nmodel = "m"\n[notes]\nroot = "."\n[safety]\nsecrets = "mask"\n'
        page = "# Log\n\n## 2026-01-01: A\n\n**Why**: `x`\n\n| a | b |\n|--|--|\n\n```\ncode\n```\n<div>\n---\n".encode()
        memory = one.folder / ".microai/agents/coder/memory"
        memory.mkdir(parents=True)
        change = row.random
        for number in row.rounds(600):
            kind = number % 7
            if kind == 0:
                one.run("add", "--jsonl", stdin=mutated(change, b'{"id": "x", "content": "tea", "tags": ["a"], "metadata": {"n": 1}}'))
            elif kind == 1:
                one.run("import", "-", "--on-conflict", "skip", stdin=mutated(change, record))
            elif kind == 2:
                log.write_bytes(mutated(change, whole))
                two.run(change.choice(("list", "doctor", "stats")))
                log.write_bytes(whole)
            elif kind == 3:
                one.run("session", "save", "s1", stdin=mutated(change, b'{"sessionId": "s1", "components": {"a": {"b": [1, 2]}}}'))
            elif kind == 4:
                (one.folder / "noise.toml").write_bytes(mutated(change, toml))
                one.run("--config", "noise.toml", "config")
            elif kind == 5:
                (memory / "decisions.md").write_bytes(mutated(change, page))
                one.run("agent", "decide", "--create", "coder", "x", "--decision", "tea")
                one.run("agent", "activate", "coder")
            else:
                text = mutated(change, b'{"lang": "en", "$or": [{"rating": {"$gte": 3}}, {"tag": {"$in": ["a"]}}]}')
                one.run("search", "tea", "--filter", text.replace(b"\0", b"").decode(errors="replace"))
        one.check_healthy()


ATTACKS = (paths, bombs, fuzz_mcp, fuzz_files)
