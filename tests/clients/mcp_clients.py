"""The official MCP clients list and call every tool and read every resource, over stdio and HTTP.

    mcp_clients.py MNEMON INSPECTOR

MNEMON is the program, INSPECTOR the inspector's command line. Every round has a folder of its own.
"""

import asyncio
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager

from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

MNEMON, INSPECTOR = (str(pathlib.Path(arg).resolve()) for arg in sys.argv[1:3])
CALLS = json.loads((pathlib.Path(__file__).parent / "calls.json").read_text())
# Ends as soon as the answer is there; machines may be slow.
PATIENCE = 600


class Project:
    """A project with a memory, an agent, a team and a conversation that was compressed."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MNEMON_")}
        self.env = {**kept, "HOME": self.folder.name}
        self.run("init")
        for member in ["ada", "linus"]:
            folder = self.path / ".microai/teams/core" / member
            folder.mkdir(parents=True)
            (folder / "agent.md").write_text(f"---\nname: {member}\n---\nYou are {member}.\n")
        self.run("agent", "new", "coder", "--description", "Writes the code")
        self.run("chat", "append", "long", "Read this. " * 700, "--user", "ann")
        self.run("chat", "append", "long", "I have read it.", "--user", "ann", "--role", "assistant")
        self.run("chat", "append", "long", "What did it say?", "--user", "ann")
        self.run("chat", "compress", "long", "--user", "ann", "--last-keep", "1")
        shown = json.loads(self.run("chat", "show", "long", "--user", "ann", "--json"))
        self.offload = next(seen["uuid"] for seen in shown["messages"] if seen.get("uuid"))

    def run(self, *args):
        command = [MNEMON, *args]
        done = subprocess.run(command, cwd=self.path, env=self.env, capture_output=True, text=True)
        assert done.returncode == 0, (args, done.stderr)
        return done.stdout

    @contextmanager
    def http(self):
        """A server over HTTP, and its address."""
        command = [MNEMON, "mcp", "--structured", "--tools", "all", "--http", "127.0.0.1:0"]
        server = subprocess.Popen(
            command, cwd=self.path, env=self.env, stderr=subprocess.PIPE, text=True
        )
        try:
            said = server.stderr.readline()
            yield said.split("serving at ")[1].strip()
        finally:
            server.kill()
            server.wait()

    def arguments(self, wanted, note):
        """The arguments with what is known only now."""
        known = {"$id": note, "$offload": self.offload}
        return {name: known.get(value, value) if isinstance(value, str) else value
                for name, value in wanted.items()}


@asynccontextmanager
async def old_session(streams):
    """A client that greets, and has a session where there is one."""
    async with streams as (read, write, *_):
        async with ClientSession(read, write) as session:
            greeted = await session.initialize()
            assert greeted.protocol_version == "2025-11-25", greeted
            yield session


async def use(project, session):
    """Everything there is, once."""
    tools = (await session.list_tools()).tools
    missing = {tool.name for tool in tools} ^ {name for name, _ in CALLS}
    assert not missing, f"not in calls.json, or not served: {missing}"
    for tool in tools:
        assert tool.description and tool.title, tool.name
        assert tool.input_schema["additionalProperties"] is False, tool.name
        # The client compares every structured content with it.
        assert tool.output_schema["type"] == "object", tool.name
    note = None
    for name, wanted in CALLS:
        result = await session.call_tool(name, project.arguments(wanted, note))
        assert not result.is_error, (name, result)
        assert result.content and result.content[0].text, (name, result)
        if name == "memory_add":
            note = result.structured_content["referenceId"]
        if name == "memory_search":
            assert result.structured_content["data"]["results"][0]["id"] == note, result
    wrong = await session.call_tool("memory_search", {"query": ""})
    assert wrong.is_error and "query" in wrong.content[0].text, wrong
    listed = (await session.list_resources()).resources
    assert len(listed) >= 3, listed
    for resource in listed:
        read = await session.read_resource(str(resource.uri))
        assert read.contents[0].text, resource
    templates = (await session.list_resource_templates()).resource_templates
    assert len(templates) == 3, templates
    for prompt in (await session.list_prompts()).prompts:
        given = {argument.name: "coder" for argument in prompt.arguments or []}
        got = await session.get_prompt(prompt.name, given)
        assert got.messages[0].content.text, prompt
    return len(tools), len(listed)


async def progress(session):
    told = []

    async def tell(done, total, message):
        told.append((done, total, message))

    await session.call_tool("memory_cleanup", {}, progress_callback=tell)
    assert told, "nobody told how far the cleanup was"


def by_stdio(project):
    return StdioServerParameters(
        command=MNEMON, args=["mcp", "--structured", "--tools", "all"], cwd=project.path, env=project.env
    )


async def python_clients():
    project = Project()
    async with old_session(stdio_client(by_stdio(project))) as session:
        print("python, stdio, 2025-11-25:", await use(project, session))
        await progress(session)
    project = Project()
    async with Client(by_stdio(project)) as client:
        assert client.protocol_version == "2026-07-28", client.protocol_version
        print("python, stdio, 2026-07-28:", await use(project, client))
    project = Project()
    with project.http() as url:
        async with old_session(streamable_http_client(url)) as session:
            print("python, http, 2025-11-25:", await use(project, session))
            await progress(session)
    project = Project()
    with project.http() as url:
        async with Client(url) as client:
            assert client.protocol_version == "2026-07-28", client.protocol_version
            print("python, http, 2026-07-28:", await use(project, client))


def inspect(project, target, *args):
    """One call of the inspector, which is a client of its own each time."""
    command = [INSPECTOR, "--cli", *target, *args]
    done = subprocess.run(
        command, cwd=project.path, env=project.env, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, (args, done.stdout, done.stderr)
    return json.loads(done.stdout)


def inspected_call(project, target, name, wanted, note):
    args = ["--method", "tools/call", "--tool-name", name]
    for key, value in project.arguments(wanted, note).items():
        text = value if isinstance(value, str) else json.dumps(value)
        args += ["--tool-arg", f"{key}={text}"]
    result = inspect(project, target, *args)
    assert not result.get("isError"), (name, result)
    assert result["content"][0]["text"], (name, result)
    return result


def use_inspector(project, target):
    tools = inspect(project, target, "--method", "tools/list")["tools"]
    assert {tool["name"] for tool in tools} == {name for name, _ in CALLS}
    (first, wanted), *rest = CALLS
    added = inspected_call(project, target, first, wanted, None)
    note = added["structuredContent"]["referenceId"]
    # What depends on what came before stays in order; what only reads goes side by side.
    reads = [call for call in rest if call[0] in
             ("memory_search", "memory_get", "memory_stats", "memory_context", "query_memory",
              "context_reload", "agent_list", "agent_activate", "team_activate")]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda call: inspected_call(project, target, *call, note), reads))
    for name, wanted in [call for call in rest if call not in reads]:
        inspected_call(project, target, name, wanted, note)
    resources = inspect(project, target, "--method", "resources/list")["resources"]
    for resource in resources:
        args = ["--method", "resources/read", "--uri", resource["uri"]]
        assert inspect(project, target, *args)["contents"][0]["text"]
    assert len(inspect(project, target, "--method", "prompts/list")["prompts"]) == 2
    return len(tools), len(resources)


def inspector():
    project = Project()
    print("inspector, stdio:", use_inspector(project, [MNEMON, "mcp", "--structured", "--tools", "all"]))
    project = Project()
    with project.http() as url:
        print("inspector, http:", use_inspector(project, [url, "--transport", "http"]))


asyncio.run(asyncio.wait_for(python_clients(), PATIENCE))
inspector()
