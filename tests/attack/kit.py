"""Parts of the attacks: a folder with the program in it, its servers, and what an attack found."""

import contextlib
import http.client
import json
import os
import pathlib
import queue
import random
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time

# Ends a hang; nothing that works takes nearly as long, not even on a loaded machine.
PATIENCE = 180
STORES = ("sqlite", "jsonl")


class Skipped(Exception):
    """The attack cannot be made here; the message says why."""


class Row:
    """One line of the table: a fault, how often it was tried, and what came of it."""

    def __init__(self, fault, seed, seconds, program):
        self.fault = fault
        self.random = random.Random(f"{seed} {fault}")
        self.ends = time.monotonic() + seconds
        self.program = program
        self.tried, self.acknowledged = 0, 0
        # Acknowledged and not there; there or shown where it must not be; panicked or hung.
        self.lost, self.leaked, self.broken = [], [], []
        self.notes = []
        self.lock = threading.Lock()

    def rounds(self, most):
        """Numbers below `most`, for as long as there is time; at least one."""
        for number in range(most):
            if number and time.monotonic() > self.ends:
                return
            self.tried += 1
            yield number

    def acked(self, count=1):
        with self.lock:
            self.acknowledged += count

    def expect_there(self, tokens, text, where):
        """Every acknowledged token is in the text."""
        self.lost += [f"{token} is not in {where}" for token in tokens if token not in text]

    def expect_absent(self, token, text, where):
        if token in text:
            self.leaked.append(f"{token} is in {where}")

    def broke(self, what):
        with self.lock:
            self.broken.append(what)

    def is_good(self):
        return not (self.lost or self.leaked or self.broken)

    def token(self):
        """A word that is nowhere else, and looks like no secret."""
        return "tok" + "".join(self.random.choice("bcdfghjklmnpqrstvwxz") for _ in range(12))

    @contextlib.contextmanager
    def home(self, store="sqlite", **more):
        with tempfile.TemporaryDirectory(prefix="mnemon-attack-") as folder:
            yield Home(self, pathlib.Path(folder), store, **more)


class Ran:
    """What a finished command left behind."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.text = out + err

    @property
    def ok(self):
        return self.code == 0


class Home:
    """A folder of its own with a store in it, and an environment that is the same everywhere."""

    def __init__(self, row, folder, store="sqlite", url=None):
        self.row, self.folder, self.store = row, folder, store
        self.file = folder / "m.db" if store == "sqlite" else folder / "log"
        self.env = {
            "HOME": str(folder / "home"),
            "PATH": os.environ.get("PATH", ""),
            "MNEMON_STORE": url or f"{store}:{self.file}",
            "NO_COLOR": "1",
            "USER": "attack",
        }
        (folder / "home").mkdir(exist_ok=True)
        # Seconds that a small command takes on this machine, once that is known.
        self.usual = None
        # Every server that was started, dead or alive.
        self.servers = []

    def start(self, *args, stdin=subprocess.DEVNULL, env=None, limits=None, **more):
        def lower():
            for name, value in (limits or {}).items():
                resource.setrlimit(name, (value, value))

        process = subprocess.Popen(
            [self.row.program, *args], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**self.env, **(env or {})}, cwd=self.folder,
            preexec_fn=lower if limits else None, **more)
        if "mcp" in args:
            self.servers.append(process)
        return process

    def run(self, *args, stdin="", patience=PATIENCE, may_abort=False, **more):
        """Runs a command to its end; a panic, an abort or a hang goes into the row."""
        process = self.start(*args, stdin=subprocess.PIPE, **more)
        data = stdin if isinstance(stdin, bytes) else stdin.encode("utf-8", "surrogatepass")
        return self.end(process, args, data, patience, may_abort)

    def end(self, process, args, data=None, patience=PATIENCE, may_abort=False):
        try:
            out, err = process.communicate(data, timeout=patience)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.row.broke(f"hung: {shown(args)}")
        ran = Ran(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))
        crashed = {-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL}
        is_crash = ran.code in crashed and not may_abort
        if ran.code == 101 or "panicked at" in ran.err or is_crash:
            self.row.broke(f"{shown(args)} ended with {ran.code}: {ran.err.strip()[-200:]}")
        return ran

    def run_and_kill(self, *args, stdin="", after=2, **more):
        """Kills the command at a random moment, up to so many times what a small one takes here;
        says whether it was done before."""
        if self.usual is None:
            began = time.monotonic()
            self.run("stats")
            self.usual = time.monotonic() - began
        process = self.start(*args, stdin=subprocess.PIPE, **more)
        timer = threading.Timer(self.row.random.uniform(0, after * self.usual), process.kill)
        timer.start()
        try:
            ran = self.end(process, args, stdin.encode())
        finally:
            timer.cancel()
        if ran.ok:
            self.row.acked()
        return ran.ok

    def exported(self, *args):
        return self.run("export", *args).out

    def bytes_with(self, token):
        """The files of this folder that hold the token in their bytes."""
        token = token.encode()
        found = []
        for path in sorted(self.folder.rglob("*")):
            with contextlib.suppress(OSError):
                if path.is_file() and not path.is_symlink() and token in path.read_bytes():
                    found.append(str(path.relative_to(self.folder)))
        return found

    def check_healthy(self):
        ran = self.run("doctor")
        if not ran.ok:
            self.row.notes.append(f"doctor: {ran.text.strip().splitlines()[0][:100]}")

    def fill(self, count, **fields):
        """Notes r0, r1, …, each with a token; says which token has which id."""
        tokens = {f"r{n}": self.row.token() for n in range(count)}
        lines = [json.dumps({"id": id, "content": f"note {token} about tea", **fields})
                 for id, token in tokens.items()]
        ran = self.run("add", "--jsonl", stdin="\n".join(lines))
        if not ran.ok:
            raise RuntimeError(f"the store could not be filled: {ran.text}")
        return tokens


def shown(args):
    return " ".join(str(arg) for arg in args)[:120]


class Server:
    """An MCP server over standard input and output."""

    def __init__(self, home, *args, **more):
        self.home, self.args = home, ("mcp", *args)
        self.process = home.start(*self.args, stdin=subprocess.PIPE, **more)
        self.answers, self.next = {}, 0
        self.arrived = threading.Condition()
        self.ended = False
        threading.Thread(target=self._read, daemon=True).start()
        self.errors = queue.Queue()
        threading.Thread(target=self._read_errors, daemon=True).start()
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                "clientInfo": {"name": "attack", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _read(self):
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):
                answer = json.loads(line)
                with self.arrived:
                    if isinstance(answer, dict):
                        self.answers[answer.get("id")] = answer
                    self.arrived.notify_all()
        with self.arrived:
            self.ended = True
            self.arrived.notify_all()

    def _read_errors(self):
        for line in self.process.stderr:
            if b"panicked at" in line:
                self.home.row.broke(f"a server: {line.decode(errors='replace').strip()}")

    def send(self, message):
        self.send_line(json.dumps(message).encode())

    def send_line(self, line):
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.write(line + b"\n")
            self.process.stdin.flush()

    def ask(self, method, params=None):
        """The result; None when the server is gone or answers with an error."""
        self.next += 1
        asked = f"a{self.next}"
        self.send({"jsonrpc": "2.0", "id": asked, "method": method, "params": params or {}})
        with self.arrived:
            done = self.arrived.wait_for(lambda: asked in self.answers or self.ended, PATIENCE)
            if not done:
                self.home.row.broke(f"a server did not answer {method}")
            return self.answers.pop(asked, {}).get("result")

    def call(self, tool, **arguments):
        """The text of the answer, if the tool did what it should."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result is None or result.get("isError"):
            return None
        return json.dumps(result, ensure_ascii=False)

    def add(self, token):
        """Whether a note with this token was acknowledged."""
        done = self.call("memory_add", content=f"note {token} about tea", namespace="long-term")
        if done is not None:
            self.home.row.acked()
        return done is not None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def leave(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            code = self.process.wait(PATIENCE)
            if code in (101, -signal.SIGABRT, -signal.SIGSEGV):
                self.home.row.broke(f"a server ended with {code}")
        except subprocess.TimeoutExpired:
            self.kill()
            self.home.row.broke("a server did not end with its input")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.leave()


class HttpServer:
    """An MCP server over HTTP on this machine."""

    def __init__(self, home, *args, **more):
        self.home = home
        self.process = home.start("mcp", "--http", "127.0.0.1:0", *args, **more)
        self.said = []
        for line in self.process.stderr:
            self.said.append(line.decode(errors="replace"))
            found = re.search(r"http://127\.0\.0\.1:(\d+)", self.said[-1])
            if found:
                self.port = int(found[1])
                break
        else:
            raise RuntimeError(f"the server did not begin: {''.join(self.said)}")
        threading.Thread(target=self._read_errors, daemon=True).start()

    def _read_errors(self):
        for line in self.process.stderr:
            self.said.append(line.decode(errors="replace"))
            if "panicked at" in self.said[-1]:
                self.home.row.broke(f"the HTTP server: {self.said[-1].strip()}")

    def post(self, message, headers=None, path="/mcp", method="POST", patience=PATIENCE):
        """Status, headers and body; status 0 when there was no answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience)
        body = message if isinstance(message, (bytes, str)) else json.dumps(message)
        usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        try:
            connection.request(method, path, body, {**usual, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException):
            return 0, {}, ""
        finally:
            connection.close()

    def greet(self, headers=None, patience=PATIENCE):
        return self.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "attack", "version": "1"}}}, headers, patience=patience)

    def session(self, patience=PATIENCE):
        """The headers of a session of its own; None when there is none to be had."""
        status, headers, _ = self.greet(patience=patience)
        if status != 200:
            return None
        id = {name.lower(): value for name, value in headers.items()}.get("mcp-session-id")
        own = {"Mcp-Session-Id": id} if id else {}
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, own, patience=patience)
        return own

    def add(self, token, session, patience=PATIENCE):
        status, _, body = self.post({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "memory_add",
            "arguments": {"content": f"note {token} about tea", "namespace": "long-term"}}},
            session, patience=patience)
        done = status == 200 and '"isError":false' in body.replace(" ", "")
        if done:
            self.home.row.acked()
        return done

    def resident_mb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmRSS"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def preload(folder):
    """The library that fails system calls and moves the clock, built on the spot."""
    compiler = shutil.which("cc")
    if compiler is None or not os.path.exists("/proc"):
        raise Skipped("needs Linux and a C compiler")
    library = pathlib.Path(folder) / "faults.so"
    source = pathlib.Path(__file__).parent / "faults.c"
    built = subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"],
                           capture_output=True, check=False)
    if built.returncode:
        raise Skipped("the library that fails system calls cannot be built here")
    return str(library)


@contextlib.contextmanager
def small_disk(kilobytes):
    """A file system of this size that nobody else uses. Only root can make one."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        raise Skipped("needs root, to mount a file system of its own")
    with tempfile.TemporaryDirectory(prefix="mnemon-attack-disk-") as folder:
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder],
                              capture_output=True, check=False)
        if made.returncode:
            raise Skipped("a file system cannot be mounted here")
        try:
            yield pathlib.Path(folder)
        finally:
            subprocess.run(["umount", "-l", folder], check=False)


def remount(folder, options):
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)
