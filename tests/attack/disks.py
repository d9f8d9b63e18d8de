"""The files under the process: removed, replaced, damaged, full, read-only; and the clock."""

import contextlib
import json
import resource
import shutil
import signal
import threading
import time

from kit import STORES, Home, Server, preload, remount, small_disk

EIO, ENOSPC = 5, 28


def files_removed(row):
    """store removed, replaced or restored under a live MCP server"""
    ways = ("remove the file", "remove the folder", "replace the file", "restore a copy")
    for number in row.rounds(16):
        store, way = STORES[number % 2], ways[number // 2 % len(ways)]
        with row.home(store) as home:
            place = home.folder / "store"
            place.mkdir()
            home.file = place / ("m.db" if store == "sqlite" else "log")
            home.env["MNEMON_STORE"] = f"{store}:{home.file}"
            home.fill(20)
            copy = home.folder / "copy"
            shutil.copytree(place, copy)
            with Server(home) as server:
                server.add(row.token())
                for path in list(place.iterdir()) if way != "remove the folder" else [place]:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                if way in ("replace the file", "restore a copy"):
                    source = copy if way == "restore a copy" else fresh(home, store)
                    shutil.copytree(source, place, dirs_exist_ok=True)
                acked = [token for token in (row.token() for _ in range(3)) if server.add(token)]
            row.expect_there(acked, home.exported(), f"the {store} store after: {way}")


def fresh(home, store):
    """Another store of the same kind, in a folder of its own."""
    folder = home.folder / "other"
    file = folder / home.file.name
    folder.mkdir()
    home.run("add", "something else", env={"MNEMON_STORE": f"{store}:{file}"})
    return folder


def lock_deleted(row):
    """lock file deleted under 4 writers (jsonl)"""
    for _ in row.rounds(6):
        with row.home("jsonl") as home:
            home.fill(5)
            acked, stop = [], threading.Event()

            def work(seed):
                with Server(home) as server:
                    while not stop.is_set():
                        token = f"tok{seed}x{time.monotonic_ns()}"
                        if server.add(token):
                            acked.append(token)

            writers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
            for writer in writers:
                writer.start()
            ends = time.monotonic() + 4
            while time.monotonic() < ends:
                for lock in home.folder.rglob("*.lock"):
                    lock.unlink(missing_ok=True)
                    row.tried += 1
                time.sleep(row.random.uniform(0, 0.004))
            stop.set()
            for writer in writers:
                writer.join()
            row.expect_there(acked, home.exported(), "the jsonl store")


def calls_failing(row):
    """EIO and ENOSPC in write, fsync, ftruncate, rename and read, once and from then on"""
    with row.home("sqlite") as one, row.home("jsonl") as two:
        library = preload(one.folder)
        tokens = {home: list(home.fill(50).values()) for home in (one, two)}
        for number in row.rounds(300):
            home = (one, two)[number % 2]
            env = {
                "LD_PRELOAD": library,
                "FAULT_CALL": row.random.choice(("write", "write", "sync", "truncate", "rename", "read")),
                "FAULT_ERRNO": str(row.random.choice((EIO, ENOSPC))),
                "FAULT_AFTER": str(row.random.randrange(12)),
            }
            if row.random.random() < 0.5:
                env["FAULT_ONCE"] = "1"
            token = row.token()
            command = row.random.choice((
                ["add", f"note {token}"], ["note", "add", "--namespace", "long-term", f"note {token}"],
                ["upkeep"], ["chat", "append", "s1", f"said {token}"]))
            if home.run(*command, env=env).ok and command != ["upkeep"]:
                row.acked()
                tokens[home].append(token)
        for home, acked in tokens.items():
            row.expect_there(acked, home.exported(), f"the {home.store} store")
            home.check_healthy()


def disk_full(row):
    """full disk, then room again"""
    for number in row.rounds(12):
        with small_disk(row.random.choice((300, 600, 1500))) as folder:
            home = Home(row, folder, STORES[number % 2])
            acked, refused = [], 0
            for _ in range(400):
                token = row.token()
                if home.run("add", f"note {token} " + "x" * row.random.randrange(20_000)).ok:
                    row.acked()
                    acked.append(token)
                else:
                    refused += 1
                row.tried += 1
                if refused > 5:
                    break
            remount(folder, "size=64m")
            row.expect_there(acked, home.exported(), f"the {home.store} store")
            if not home.run("add", "there is room again").ok:
                row.broke(f"the {home.store} store takes nothing although there is room")


def disk_read_only(row):
    """read-only file system: everything can be read, nothing is said to be written"""
    for number in row.rounds(4):
        with small_disk(8000) as folder:
            home = Home(row, folder, STORES[number % 2])
            tokens = home.fill(50)
            remount(folder, "ro")
            for command in (["export"], ["get", "r1"], ["search", "tea"], ["list"], ["stats"], ["doctor"]):
                ran = home.run(*command)
                row.tried += 1
                if not ran.ok and command[0] != "doctor":
                    row.broke(f"`{command[0]}` of a read-only {home.store} store: {ran.err.splitlines()[0][:120]}")
                elif command[0] == "export":
                    row.expect_there(tokens.values(), ran.out, f"an export of {home.store}")
            if home.run("add", "more").ok:
                row.lost.append("a write to a read-only disk was acknowledged")
            remount(folder, "rw")


def limits_low(row):
    """ulimit -f, -n, -v, -s, -u"""
    kinds = (
        (resource.RLIMIT_FSIZE, (0, 1000, 40_000, 100_000)),
        (resource.RLIMIT_NOFILE, (4, 6, 8, 12, 20)),
        (resource.RLIMIT_AS, tuple(mib << 20 for mib in range(30, 130, 3))),
        (resource.RLIMIT_STACK, (64 << 10, 256 << 10)),
        (resource.RLIMIT_NPROC, (1,)),
    )
    with row.home("sqlite") as one, row.home("jsonl") as two:
        tokens = {home: list(home.fill(100).values()) for home in (one, two)}
        for number in row.rounds(100):
            home = (one, two)[number % 2]
            kind, values = kinds[number // 2 % len(kinds)]
            batch = [row.token() for _ in range(row.random.choice((1, 900)))]
            drafts = "\n".join(json.dumps({"content": f"note {token}"}) for token in batch)
            # The answer to too little memory is an abort, to too large a file a signal: no panic.
            ran = home.run("add", "--jsonl", stdin=drafts, limits={kind: row.random.choice(values)}, may_abort=True)
            if ran.ok:
                row.acked(len(batch))
                tokens[home] += batch
            if ran.code < 0:
                row.notes.append(f"some ended by {signal.Signals(-ran.code).name}")
        for home, acked in tokens.items():
            row.expect_there(acked, home.exported(), f"the {home.store} store")
            home.check_healthy()


def damage(path, random):
    """Flips, zeroes or cuts somewhere in the file."""
    data = bytearray(path.read_bytes())
    if not data:
        return
    at = random.randrange(len(data))
    how = random.choice(("flip", "flip", "zero", "cut"))
    if how == "flip":
        data[at] ^= 1 << random.randrange(8)
    elif how == "zero":
        end = min(at + random.randrange(1, 600), len(data))
        data[at:end] = bytes(end - at)
    else:
        del data[at:]
    path.write_bytes(data)


def records(exported):
    """Content by id, of the lines that are JSON."""
    found = {}
    for line in exported.splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            record = json.loads(line)
            found[record["id"]] = record["content"]
    return found


def check_noticed(row, home, before, what):
    """A record that is missing or different after damage must be told by export or doctor."""
    ran = home.run("export")
    home.run("search", "tea")
    doctor = home.run("doctor")
    wrong = sum(records(ran.out).get(id) != content for id, content in before.items())
    if wrong and ran.ok and not ran.err and doctor.ok:
        row.lost.append(f"{wrong} of {len(before)} records are wrong, and nothing tells ({what})")


def damaged_sqlite(row):
    """random damage of the SQLite file"""
    damaged_store(row, "sqlite", 60)


def damaged_jsonl(row):
    """random damage of the JSONL log"""
    damaged_store(row, "jsonl", 60)


def damaged_store(row, store, most):
    with row.home(store) as home:
        home.fill(150)
        before = records(home.exported())
        names = [path for path in home.folder.glob("m.db*" if store == "sqlite" else "log/**/*") if path.is_file()]
        main = max(names, key=lambda path: path.stat().st_size)
        whole = main.read_bytes()
        for _ in row.rounds(most):
            for path in home.folder.glob("m.db-*"):
                path.unlink()
            main.write_bytes(whole)
            damage(main, row.random)
            check_noticed(row, home, before, store)


def damaged_wal(row):
    """random damage of the WAL of a server that was killed"""
    for _ in row.rounds(25):
        with row.home() as home:
            server = Server(home)
            acked = [token for token in (row.token() for _ in range(20)) if server.add(token)]
            server.kill()
            wal = home.folder / "m.db-wal"
            if wal.exists() and wal.stat().st_size:
                damage(wal, row.random)
            missing = sum(token not in home.exported() for token in acked)
            if missing:
                row.notes.append("SQLite ends its WAL at the first damaged frame; later commits go, as it is designed")
            home.run("doctor")


def damaged_index(row):
    """random damage of the saved index: answers stay right"""
    with row.home() as home:
        # So many that the index is worth saving.
        tokens = home.fill(3000)
        for n in range(3):
            home.run("search", "tea")
            home.run("add", f"more {n}")
        files = [path for path in home.folder.glob("m.db*") if path.name not in ("m.db", "m.db-wal", "m.db-shm")]
        if not files:
            row.notes.append("no index was saved")
        for _ in row.rounds(30):
            for path in files:
                if path.exists():
                    damage(path, row.random)
            id = row.random.choice(list(tokens))
            found = home.run("search", tokens[id], "--json", "--recipe", "words")
            row.expect_there([tokens[id]], found.out, "the answer of a search")


def clock_moved(row):
    """clock jumps of -60 to +5000 years: nothing expires that has time left"""
    year = 31_556_952
    with contextlib.ExitStack() as stack:
        for number in row.rounds(22):
            home = stack.enter_context(row.home(STORES[number % 2]))
            library = preload(home.folder)
            home.run("add", "--id", "short", "--ttl", "30d", f"note {row.token()}")
            home.run("note", "add", f"short-term {row.token()}")
            tokens = home.fill(20)
            before = records(home.exported())
            years = row.random.choice((-60, -10, -1, 1, 5, 20, 100, 1000, 5000))
            env = {"LD_PRELOAD": library, "CLOCK_MOVED": str(years * year)}
            for command in (["add", "from another time"], ["search", "tea"], ["upkeep"], ["doctor"]):
                home.run(*command, env=env)
            after = records(home.exported())
            gone = [id for id in before if id not in after]
            row.lost += [f"{id} expired by a jump of {years} years ({home.store})" for id in gone]
            row.acked(len(tokens))
            stack.pop_all().close()


ATTACKS = (files_removed, lock_deleted, calls_failing, disk_full, disk_read_only, limits_low,
           damaged_sqlite, damaged_jsonl, damaged_wal, damaged_index, clock_moved)
