"""Processes that are killed: acknowledged writes are there, and nothing is half there."""

import json
import shutil
import threading
import time

from kit import STORES, HttpServer, Server, Skipped

# Commands that are killed. Each is given a token, and says where it must be once it was
# acknowledged: among the exported records, in the loaded session, or in a file below the folder.
KILLED = {
    "add": lambda t: (["add", "--id", t, f"note {t}"], "", "export"),
    "note add": lambda t: (["note", "add", "--namespace", "long-term", f"note {t}"], "", "export"),
    "chat append": lambda t: (
        ["chat", "append", "s1", "--msg-threshold", "6", "--last-keep", "2", f"said {t}"], "", "export"),
    "chat append --files": lambda t: (
        ["chat", "append", "s2", "--files", ".", f"said {t}"], "", ".airsspec/contexts/agent/s2.jsonl"),
    "session save": lambda t: (["session", "save", f"s-{t}"], json.dumps({"part": {"t": t}}), "session load"),
    "session save --folder": lambda t: (
        ["session", "save", f"s-{t}", "--folder", "sessions"], json.dumps({"part": {"t": t}}),
        f"sessions/s-{t}.json"),
    "write": lambda t: (
        ["write", "--user", "ann", "--session", "s3", "--scope", "experience", "--data", "-"],
        json.dumps({"tool": "build", "task_type": "deploy", "trace_id": t, "output": t}), "export"),
    "agent decide": lambda t: (
        ["agent", "decide", "--create", "coder", t, "--decision", f"it is {t}"], "",
        ".microai/agents/coder/memory/decisions.md"),
    "agent end": lambda t: (
        ["agent", "end", "--create", "coder", "--data", "-"],
        json.dumps({"learnings": [{"title": t, "pattern": "p", "why": "w"}], "context": {"notes": [t]}}),
        ".microai/agents/coder/memory/learnings.md"),
}

# Work that changes nothing which may be lost; it is killed in between.
BESIDE = (["upkeep"], ["reembed"], ["learn", "run"], ["note", "cleanup"])


def kill_commands(row):
    """kill -9 of commands: add, notes, chats, sessions, steps, agent files, with upkeep, reembed and learn between"""
    names = list(KILLED)
    for number in row.rounds(20):
        with row.home(STORES[number % 2]) as home:
            home.fill(200)
            expected = []
            for turn in range(len(names) * 2):
                token = row.token()
                name = names[turn % len(names)]
                args, stdin, where = KILLED[name](token)
                if home.run_and_kill(*args, stdin=stdin):
                    expected.append((name, token, where))
                if turn % 5 == 4:
                    home.run_and_kill(*row.random.choice(BESIDE))
                row.tried += 1
            exported = home.exported()
            for name, token, where in expected:
                path = home.folder / where
                if where == "session load":
                    text = home.run("session", "load", f"s-{token}").out
                else:
                    text = exported if where == "export" else path.read_text() if path.exists() else ""
                row.expect_there([token], text, f"{where} after `{name}` ({home.store})")
            home.check_healthy()


def kill_batches(row):
    """kill -9 of batches: add --jsonl, import, forget, undo, eviction by a cap"""
    for number in row.rounds(40):
        with row.home(STORES[number % 2]) as home:
            home.fill(300)
            name = row.token()
            tokens = [f"{name}-{n:03}" for n in range(200)]
            drafts = "\n".join(json.dumps({"id": t, "content": f"note {t}."}) for t in tokens)
            done = home.run_and_kill("add", "--jsonl", stdin=drafts, after=6)
            check_whole(row, home, tokens, done)
            if not home.run("add", "--jsonl", "--key", name, stdin=drafts.replace(name, name + "k")).ok:
                row.lost.append("a batch could not be written after a kill")
            done = home.run_and_kill("forget", *[f"{t.replace(name, name + 'k')}" for t in tokens], "--yes", after=4)
            there = home.exported().count(f"note {name}k-")
            if there not in (0, 200) or (done and there):
                row.lost.append(f"{there} of 200 forgotten records are there ({home.store})")
            home.run_and_kill("undo", after=4)
            there = home.exported().count(f"note {name}k-")
            if there not in (0, 200):
                row.lost.append(f"an undo brought back {there} of 200 ({home.store})")
            kill_import(row, home)
            home.check_healthy()


def kill_import(row, home):
    file = home.folder / "all.jsonl"
    if not home.run("export", str(file)).ok:
        return row.lost.append("an export failed")
    into = {"MNEMON_STORE": f"{home.store}:{home.folder / 'second'}"}
    home.run_and_kill("import", str(file), env=into, after=6)
    if not home.run("import", str(file), env=into).ok:
        return row.lost.append("an import could not be run again")
    if home.run("export", env=into).out.count("\n") != file.read_text().count("\n"):
        row.lost.append("an import that was run again is not complete")


def check_whole(row, home, tokens, done):
    exported = home.exported()
    there = sum(f"note {token}." in exported for token in tokens)
    if there not in (0, len(tokens)):
        row.lost.append(f"{there} of {len(tokens)} records of a batch are there ({home.store})")
    elif done and not there:
        row.lost.append(f"a batch is not there ({home.store})")


def kill_eviction(row):
    """kill -9 of notes that evict others; the cap holds"""
    for number in row.rounds(10):
        with row.home(STORES[number % 2]) as home:
            home.env["MNEMON_LONG_TERM_MAX_ENTRIES"] = "20"
            acked = []
            for _ in range(30):
                token = row.token()
                if home.run_and_kill("note", "add", "--namespace", "long-term", f"note {token}"):
                    acked.append(token)
                row.tried += 1
            exported = home.exported()
            if exported.count("\n") > 20:
                row.lost.append("more notes than the cap allows")
            row.expect_there(acked[-5:], exported, f"the newest notes ({home.store})")


def kill_servers(row):
    """kill -9 of some of 4 MCP servers while the others, upkeep and doctor go on"""
    for number in row.rounds(12):
        with row.home(STORES[number % 2]) as home:
            home.fill(50)
            acked, stop = [], threading.Event()

            def work(seed):
                while not stop.is_set():
                    server = Server(home)
                    for n in range(1_000_000):
                        if stop.is_set():
                            return server.leave()
                        token = f"tok{seed}x{time.monotonic_ns()}x{n}"
                        if not server.add(token):
                            break
                        acked.append(token)
                    server.kill()

            clients = [threading.Thread(target=work, args=(n,)) for n in range(4)]
            for client in clients:
                client.start()
            for _ in range(6):
                time.sleep(row.random.uniform(0.05, 0.5))
                alive = [process for process in home.servers if process.poll() is None]
                if alive:
                    row.random.choice(alive).kill()
                    row.tried += 1
                home.run(*row.random.choice((["upkeep"], ["doctor"], ["search", "tea"])))
            stop.set()
            for client in clients:
                client.join()
            row.expect_there(acked, home.exported(), f"the {home.store} store")
            home.check_healthy()


def kill_http(row):
    """kill -9 of an HTTP server with 4 clients"""
    for number in row.rounds(10):
        with row.home(STORES[number % 2]) as home:
            acked = []
            for _ in range(3):
                with HttpServer(home) as server:
                    def work(seed):
                        session = server.session(patience=10)
                        for n in range(1_000_000):
                            token = f"tok{seed}x{time.monotonic_ns()}x{n}"
                            if session is None or not server.add(token, session, patience=10):
                                return
                            acked.append(token)

                    clients = [threading.Thread(target=work, args=(n,)) for n in range(4)]
                    for client in clients:
                        client.start()
                    time.sleep(row.random.uniform(0.2, 0.8))
                    server.process.kill()
                    row.tried += 1
                for client in clients:
                    client.join()
            row.expect_there(acked, home.exported(), f"the {home.store} store")


def kill_retried(row):
    """kill -9, then a retry with the same idempotency key"""
    with row.home("sqlite") as one, row.home("jsonl") as two:
        for number in row.rounds(80):
            home = (one, two)[number % 2]
            token = row.token()
            add = ("add", "--key", token, f"note {token}")
            home.run_and_kill(*add)
            if not home.run(*add).ok:
                row.lost.append("a retry was refused")
            there = home.exported().count(token)
            if there != 1:
                row.lost.append(f"{there} records after a retry ({home.store})")


def kill_purge(row):
    """kill -9 of a purge, then a retry: the bytes are gone"""
    for number in row.rounds(30):
        with row.home(STORES[number % 2]) as home:
            tokens = home.fill(100)
            home.run("search", "tea")
            id = row.random.choice(list(tokens))
            home.run_and_kill("forget", id, "--purge", "--yes")
            # Exit code 3: it is gone already.
            home.run("forget", id, "--purge", "--yes")
            for path in home.bytes_with(tokens[id]):
                row.leaked.append(f"purged content is in {path}")
            others = [token for other, token in tokens.items() if other != id]
            row.expect_there(others, home.exported(), f"the {home.store} store")


def kill_export(row):
    """kill -9 of an export to a file: the whole file or none"""
    with row.home() as home:
        home.fill(1000, metadata={"pad": "x" * 500})
        for _ in row.rounds(30):
            file = home.folder / "out.jsonl"
            file.unlink(missing_ok=True)
            home.run_and_kill("export", str(file), after=4)
            if file.exists() and file.read_text().count("\n") != 1000:
                row.lost.append("half an export")
        left = [path.name for path in home.folder.iterdir() if path.name.startswith(".tmp")]
        if left:
            row.notes.append(f"{len(left)} temporary files of killed exports stay until the next one")


def kill_migration(row):
    """kill -9 of a format migration; 10 openers at once"""
    fixtures = sorted((row.root / "crates/mnemon-adapters/tests/fixtures").glob("sqlite-v*.db"))
    if not fixtures:
        raise Skipped("there are no stores of older formats")
    for number in row.rounds(40):
        fixture = fixtures[number % len(fixtures)]
        with row.home() as home:
            shutil.copy(fixture, home.folder / "whole.db")
            env = {"MNEMON_STORE": f"sqlite:{home.folder / 'whole.db'}"}
            began = time.monotonic()
            whole = home.run("export", env=env).out
            # Measured here, since it must not open the store that is to be migrated.
            home.usual = time.monotonic() - began
            shutil.copy(fixture, home.file)
            for _ in range(3):
                home.run_and_kill("list")
            shutil.copy(fixture, home.folder / "many.db")
            many = {"MNEMON_STORE": f"sqlite:{home.folder / 'many.db'}"}
            openers = [home.start("list", env=many) for _ in range(10)]
            if any(not home.end(opener, ["list"]).ok for opener in openers):
                row.lost.append(f"an opener of {fixture.name} failed")
            if home.exported() != whole or home.run("export", env=many).out != whole:
                row.lost.append(f"{fixture.name} is not what it was")


def backup_under_load(row):
    """backup of a store in use, restored elsewhere"""
    with row.home() as home:
        if "unrecognized" in home.run("backup", "--help").err:
            raise Skipped("this build has no `mnemon backup`")
        for number in row.rounds(10):
            acked, stop = [], threading.Event()

            def work():
                with Server(home) as server:
                    while not stop.is_set():
                        token = f"tok{time.monotonic_ns()}"
                        if server.add(token):
                            acked.append(token)

            writers = [threading.Thread(target=work) for _ in range(3)]
            for writer in writers:
                writer.start()
            time.sleep(0.3)
            before = list(acked)
            file = home.folder / f"backup-{number}"
            done = home.run("backup", str(file))
            stop.set()
            for writer in writers:
                writer.join()
            into = {"MNEMON_STORE": f"sqlite:{home.folder / f'restored-{number}.db'}"}
            restored = home.run("restore", str(file), "--yes", env=into)
            if not (done.ok and restored.ok):
                row.lost.append(f"a backup failed: {(done.text + restored.text).strip()[:200]}")
                continue
            row.expect_there(before, home.run("export", env=into).out, "the restored store")


ATTACKS = (kill_commands, kill_batches, kill_eviction, kill_servers, kill_http, kill_retried,
           kill_purge, kill_export, kill_migration, backup_under_load)
