#!/usr/bin/env python3
"""Writes the generated parts of the clients from docs/openapi.json.

    python3 clients/generate.py            write them
    python3 clients/generate.py --check    fail if a file differs from what would be written

Generated: the types and the table of operations of both clients, the methods of the Python client,
and its sync code, which is the async code without `async` and `await`.
"""

from __future__ import annotations

import json
import keyword
import re
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator

HERE = Path(__file__).resolve().parent
CONTRACT = HERE.parent / "docs" / "openapi.json"
TYPESCRIPT = HERE / "typescript" / "src"
PYTHON = HERE / "python" / "python" / "mnemon"

# Operations whose id is not the name of a command get a name like those that are.
RENAMED = {
    "conversations_session_compressions_preview": "chat_compress_preview",
    "conversations_session_snapshots_delete": "chat_snapshot_delete",
    "conversations_session_window": "chat_window",
    "documents": "documents_add",
    "healthz": "health",
    "learn_dry_run": "learn_preview",
    "readyz": "ready",
    "records_delete": "delete",
}

# Their answers or bodies are streams: the clients have methods of their own for them.
STREAMS = {"changes", "export", "import"}

# Writes that have the same result when they are repeated, though they take no key.
REPEATABLE = {"import", "documents_add", "session_save"}

# Lists that come in pages, the newest first: the field of the items, the parameter that continues,
# and whether the items of a page are in the other order.
PAGES = {
    "list": ("records", "after", False),
    "note_list": ("notes", "after", False),
    "history": ("changes", "before", False),
    "chat_tail": ("messages", "before", True),
    "chat_list": ("conversations", "skip", False),
}

# Names that would hide one of the language.
TYPE_NAMES = {
    "event": "CompressionEvent",
    "key": "ApiKey",
    "page": "RecordPage",
    "read": "StepMemory",
    "record": "MemoryRecord",
    "records": "RecordsById",
}

# The class of an error, by the code in a problem.
ERRORS = {
    "invalid": "InvalidError",
    "incomplete": "InvalidError",
    "method-not-allowed": "InvalidError",
    "unsupported-media-type": "InvalidError",
    "unauthorized": "UnauthorizedError",
    "denied": "DeniedError",
    "wrong-host": "DeniedError",
    "wrong-origin": "DeniedError",
    "not-found": "NotFoundError",
    "conflict": "ConflictError",
    "too-large": "TooLargeError",
    "too-often": "TooOftenError",
    "timeout": "TimeoutError",
    "busy": "BusyError",
    "unavailable": "UnavailableError",
    "unsupported": "UnsupportedError",
    "full": "FullError",
    "internal": "InternalError",
    "corrupt": "InternalError",
    "too-new": "InternalError",
    "foreign": "InternalError",
}

Schema = dict[str, Any]


@dataclass
class Parameter:
    name: str
    schema: Schema
    required: bool
    place: str  # path, query or body

    @property
    def description(self) -> str:
        return self.schema.get("description", "")

    @property
    def python_name(self) -> str:
        return self.name + "_" if keyword.iskeyword(self.name) else self.name


@dataclass
class Operation:
    name: str
    method: str
    path: str
    summary: str
    retry: str  # safe, keyed or once
    answer: Schema | None
    streams_progress: bool
    parameters: list[Parameter] = field(default_factory=list)

    @property
    def path_parameters(self) -> list[Parameter]:
        return [p for p in self.parameters if p.place == "path"]

    @property
    def fields(self) -> list[Parameter]:
        rest = [p for p in self.parameters if p.place != "path"]
        return sorted(rest, key=lambda p: (not p.required, p.name))


class Contract:
    """The operations of docs/openapi.json, and the schemas of their answers."""

    def __init__(self, document: Schema) -> None:
        self.document = document
        self.schemas: dict[str, Schema] = document["components"]["schemas"]
        self.operations = sorted(self._operations(), key=lambda o: o.name)
        self.reachable = self._reachable()

    def _operations(self) -> Iterator[Operation]:
        for path, methods in self.document["paths"].items():
            for method, op in methods.items():
                yield self._operation(path, method, op)

    def _operation(self, path: str, method: str, op: Schema) -> Operation:
        name = RENAMED.get(op["operationId"], op["operationId"])
        headers = {p["name"] for p in op.get("parameters", []) if p["in"] == "header"}
        retry = "once"
        if method == "get" or op.get("x-right") == "read" or name in REPEATABLE:
            retry = "safe"
        elif "Idempotency-Key" in headers:
            retry = "keyed"
        content = op["responses"]["200"].get("content", {})
        operation = Operation(
            name=name,
            method=method.upper(),
            path=path,
            summary=op.get("summary", ""),
            retry=retry,
            answer=content.get("application/json", {}).get("schema"),
            streams_progress="text/event-stream" in content and "application/json" in content,
        )
        for p in op.get("parameters", []):
            if p["in"] in ("path", "query"):
                operation.parameters.append(
                    Parameter(p["name"], p["schema"], bool(p.get("required")), p["in"])
                )
        body = op.get("requestBody", {}).get("content", {}).get("application/json", {})
        schema = body.get("schema", {})
        for key, value in schema.get("properties", {}).items():
            operation.parameters.append(
                Parameter(key, value, key in schema.get("required", []), "body")
            )
        return operation

    def resolve(self, ref: str) -> Schema:
        found: Any = self.document
        for part in ref.removeprefix("#/").split("/"):
            found = found[part]
        return found

    def _reachable(self) -> list[str]:
        seen: set[str] = set()
        waiting: list[Any] = [o.answer for o in self.operations]
        waiting += [self.schemas["change"], {"$ref": "#/components/schemas/change"}]
        waiting += [{"$ref": "#/components/schemas/problem"}]
        while waiting:
            schema = waiting.pop()
            if isinstance(schema, list):
                waiting.extend(schema)
            elif isinstance(schema, dict):
                name = model_of(schema)
                if name is None:
                    waiting.extend(schema.values())
                elif name not in seen:
                    seen.add(name)
                    waiting.append(self.schemas[name])
        return sorted(seen)


def model_of(schema: Schema) -> str | None:
    """The name of the schema that a reference names as a whole."""
    parts = schema.get("$ref", "").removeprefix("#/components/schemas/").split("/")
    return parts[0] if "$ref" in schema and len(parts) == 1 else None


def type_name(schema_name: str) -> str:
    return TYPE_NAMES.get(schema_name) or "".join(p.capitalize() for p in schema_name.split("_"))


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def sentence(text: str) -> str:
    """A description as the clients print it: links lead to files of the repository."""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text).replace("*/", "* /").strip()
    return text if not text or text.endswith((".", "]", ")", ":")) else text + "."


# TypeScript

# Fields that also take a value of the language, which the client turns into the text of the API.
WIDER_IN_TYPESCRIPT = {
    "filter": "{ [key: string]: unknown }",
    "created": "Date",
    "expires": "Date",
    "since": "Date",
    "until": "Date",
}


class TypeScript:
    def __init__(self, contract: Contract) -> None:
        self.contract = contract

    def type_of(self, schema: Schema, indent: str = "") -> str:
        if "$ref" in schema:
            name = model_of(schema)
            return type_name(name) if name else self.type_of(self.contract.resolve(schema["$ref"]), indent)
        if "anyOf" in schema:
            return " | ".join(self.type_of(s, indent) for s in schema["anyOf"])
        if "enum" in schema:
            return " | ".join(json.dumps(v) for v in schema["enum"])
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return " | ".join(self.type_of({**schema, "type": kind}, indent) for kind in kinds)
        if kinds == "array":
            item = self.type_of(schema.get("items", {}), indent)
            return f"Array<{item}>"
        if kinds == "object":
            return self.object_of(schema, indent)
        return {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}.get(
            kinds, "unknown"
        )

    def object_of(self, schema: Schema, indent: str) -> str:
        properties = schema.get("properties")
        if not properties:
            extra = schema.get("additionalProperties")
            inner = self.type_of(extra, indent) if isinstance(extra, dict) else "unknown"
            return f"{{ [key: string]: {inner} }}"
        required = schema.get("required", [])
        return "{\n" + self.members(
            [(k, v, k in required) for k, v in sorted(properties.items())], indent + "  "
        ) + indent + "}"

    def members(self, members: list[tuple[str, Schema, bool]], indent: str, sent: bool = False) -> str:
        lines = []
        for name, schema, required in members:
            described = schema
            while "description" not in described and "$ref" in described and not model_of(described):
                described = self.contract.resolve(described["$ref"])
            text = sentence(described.get("description", ""))
            if text:
                lines.append(f"{indent}/** {text} */\n")
            kind = self.type_of(schema, indent)
            if sent and name in WIDER_IN_TYPESCRIPT and kind == "string":
                kind += " | " + WIDER_IN_TYPESCRIPT[name]
            lines.append(f"{indent}{name}{'' if required else '?'}: {kind};\n")
        return "".join(lines)

    def types(self) -> str:
        out = ["// Generated by clients/generate.py from docs/openapi.json. Do not edit.\n"]
        out.append('import type { CallOptions } from "./index.d.ts";\n')
        for name in self.contract.reachable:
            schema = self.contract.schemas[name]
            text = sentence(schema.get("description", ""))
            if text:
                out.append(f"\n/** {text} */")
            out.append(f"\nexport interface {type_name(name)} {self.object_of(schema, '')}\n")
        for op in self.contract.operations:
            if op.fields and op.name not in {"import"}:
                members = [(p.name, p.schema, p.required) for p in op.fields]
                out.append(f"\n/** Fields of `{camel(op.name)}`. */")
                out.append(f"\nexport interface {fields_name(op)} {{\n{self.members(members, '  ', sent=True)}}}\n")
        out.append("\n/** The methods of the client that are one request each. */")
        out.append("\nexport interface Operations {\n")
        for op in self.contract.operations:
            if op.name not in STREAMS:
                out.append(f"  /** {sentence(op.summary)} */\n  {self.signature(op)};\n")
        for name, (items, _, backwards) in PAGES.items():
            op = next(o for o in self.contract.operations if o.name == name)
            assert op.answer
            item = f'{self.type_of(op.answer)}["{items}"][number]'
            arguments = [f"{p.name}: string" for p in op.path_parameters]
            arguments += [f"fields?: {fields_name(op)}", "options?: CallOptions"]
            order = " The newest come first." if backwards else ""
            out.append(f"  /** All items of `{camel(name)}`, fetched a page at a time.{order} */\n")
            out.append(f"  {camel(name)}All({', '.join(arguments)}): AsyncIterableIterator<{item}>;\n")
        out.append("}\n")
        return "".join(out)

    def signature(self, op: Operation) -> str:
        arguments = [f"{p.name}: string" for p in op.path_parameters]
        if op.fields:
            optional = "" if any(p.required for p in op.fields) else "?"
            arguments.append(f"fields{optional}: {fields_name(op)}")
        arguments.append("options?: CallOptions")
        answer = self.type_of(op.answer, "  ") if op.answer else "string"
        return f"{camel(op.name)}({', '.join(arguments)}): Promise<{answer}>"

    def operations(self) -> str:
        out = ["// Generated by clients/generate.py from docs/openapi.json. Do not edit.\n\n"]
        out.append("/** @type {Readonly<{ [name: string]: import(\"./request.js\").Operation }>} */\n")
        out.append("export const OPERATIONS = {\n")
        for op in self.contract.operations:
            values = {
                "method": op.method,
                "path": op.path,
                "parameters": [p.name for p in op.path_parameters],
                "takesFields": bool(op.fields),
                "retry": op.retry,
                "json": op.answer is not None,
                "progress": op.streams_progress,
            }
            inner = ", ".join(f"{k}: {json.dumps(v)}" for k, v in values.items())
            out.append(f"  {camel(op.name)}: {{ {inner} }},\n")
        out.append("};\n\n")
        out.append("/** @type {Readonly<{ [name: string]: { items: string, cursor: string, backwards: boolean } }>} */\n")
        out.append("export const PAGES = {\n")
        for name, (items, cursor, backwards) in PAGES.items():
            row = f"items: {json.dumps(items)}, cursor: {json.dumps(cursor)}, backwards: {json.dumps(backwards)}"
            out.append(f"  {camel(name)}: {{ {row} }},\n")
        out.append("};\n\n/** @type {Readonly<{ [code: string]: string }>} */\nexport const ERROR_CLASSES = {\n")
        for code, name in ERRORS.items():
            out.append(f"  {json.dumps(code)}: {json.dumps(name)},\n")
        out.append("};\n")
        return "".join(out)


def fields_name(op: Operation) -> str:
    return type_name(op.name) + "Fields" if op.name not in TYPE_NAMES else camel(op.name).capitalize() + "Fields"


# Python

PYTHON_ERRORS = {"TimeoutError": "TimedOutError"}
PYTHON_NAMES = {"import": "import_"}
# Fields that are given by their place.
POSITIONAL = ("content", "query")
WIDER_IN_PYTHON = {
    "filter": "str | Mapping[str, Any]",
    "created": "str | datetime",
    "expires": "str | datetime",
    "since": "str | datetime",
    "until": "str | datetime",
    "ttl": "str | timedelta",
    "source": "str | os.PathLike[str]",
}
HEADER = '"""Generated by clients/generate.py from docs/openapi.json. Do not edit."""\n\n'
PROGRESS = "Callable[[dict[str, Any]], object]"


class Python:
    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.classes: list[str] = []

    def type_of(self, schema: Schema, name: str, sent: bool = False) -> str:
        """The type; objects within become classes called `name`."""
        if "$ref" in schema:
            model = model_of(schema)
            if model:
                return type_name(model)
            return self.type_of(self.contract.resolve(schema["$ref"]), name, sent)
        if "anyOf" in schema:
            return " | ".join(self.type_of(s, name, sent) for s in schema["anyOf"])
        if "enum" in schema:
            return f"Literal[{', '.join(json.dumps(v) for v in schema['enum'])}]"
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return " | ".join(self.type_of({**schema, "type": kind}, name, sent) for kind in kinds)
        if kinds == "array":
            item = self.type_of(schema.get("items", {}), name + "Item", sent)
            return f"{'Sequence' if sent else 'list'}[{item}]"
        if kinds == "object":
            if schema.get("properties"):
                self.typed_dict(name, schema)
                return f"models.{name}" if sent else name
            extra = schema.get("additionalProperties")
            inner = self.type_of(extra, name) if isinstance(extra, dict) else "Any"
            return f"{'Mapping' if sent else 'dict'}[str, {inner}]"
        if schema.get("format") == "date-time":
            return "datetime"
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}.get(kinds, "Any")

    def typed_dict(self, name: str, schema: Schema) -> None:
        required = schema.get("required", [])
        members = []
        for key, value in sorted(schema["properties"].items()):
            kind = self.type_of(value, name + "".join(p.capitalize() for p in key.split("_")))
            members.append((key, kind if key in required else f"NotRequired[{kind}]", self.described(value)))
        text = sentence(schema.get("description", "")) or f"Part of an answer."
        if any(keyword.iskeyword(key) or not key.isidentifier() for key, _, _ in members):
            lines = [f'{name} = TypedDict(\n    "{name}",\n    {{\n']
            lines += [f"        {json.dumps(key)}: {json.dumps(kind)},\n" for key, kind, _ in members]
            self.classes.append("".join(lines) + "    },\n)\n")
            return
        lines = [f"class {name}(TypedDict):\n", docstring(text, "    "), "\n"]
        for key, kind, told in members:
            lines.append(f"    {key}: {kind}\n")
            if told:
                lines.append(docstring(told, "    "))
        self.classes.append("".join(lines))

    def described(self, schema: Schema) -> str:
        while "description" not in schema and "$ref" in schema and not model_of(schema):
            schema = self.contract.resolve(schema["$ref"])
        return sentence(schema.get("description", ""))

    def answer_of(self, op: Operation) -> str:
        if op.answer is None:
            return "str"
        kind = self.type_of(op.answer, type_name(op.name) + "Answer")
        return re.sub(r"^(?!dict)(\w+)$", r"models.\1", kind)

    def argument(self, p: Parameter, op: Operation) -> str:
        kind = self.type_of(p.schema, type_name(op.name) + "".join(x.capitalize() for x in p.name.split("_")), sent=True)
        if kind == "str" and p.name in WIDER_IN_PYTHON:
            kind = WIDER_IN_PYTHON[p.name]
        return f"{p.python_name}: {kind}" if p.required else f"{p.python_name}: {kind} | None = None"

    def method(
        self, op: Operation, form: str, name: str, cursor: str = "", items: str = "", backwards: bool = False
    ) -> str:
        placed = op.path_parameters + [p for p in op.fields if p.name in POSITIONAL]
        named = [p for p in op.fields if p.name not in POSITIONAL and p.name != cursor]
        arguments = ["self", *(self.argument(p, op) for p in placed), "*"]
        arguments += [self.argument(p, op) for p in named]
        shows_progress = form == "call" and op.streams_progress
        if shows_progress:
            arguments.append(f"progress: {PROGRESS} | None = None")
        arguments.append("timeout: float | None = None")
        for p in op.parameters:
            assert p.name not in ("timeout", "self", "request") and (p.name != "progress" or not shows_progress), p.name
        out = []
        if form == "call":
            out.append(f"    async def {name}(\n")
            answer = self.answer_of(op)
        else:
            out.append(f"    def {name}(\n")
            item = {"changes": "Change", "export": "MemoryRecord", **self.page_items()}[op.name]
            answer = f"AsyncIterator[models.{item}]"
        out += [f"        {a},\n" for a in arguments]
        out.append(f"    ) -> {answer}:\n")
        told = sentence(op.summary) if not items else f"All items of `{op.name}`, fetched a page at a time.{' The newest come first.' if backwards else ''}"
        notes = [(p.python_name, sentence(p.description)) for p in placed + named]
        if shows_progress:
            notes.append(("progress", "Called while it runs, with `done` and, if it is known, `total`."))
        limit = "Seconds of silence after which the feed is opened again." if op.name == "changes" else "Limit of one attempt in seconds."
        notes.append(("timeout", limit))
        out.append(method_docstring(told, notes))
        values = placed + named
        if values:
            out.append("        request: dict[str, Any] = {\n")
            out += [f'            "{p.name}": {p.python_name},\n' for p in values]
            out.append("        }\n")
        fields = "request" if values else "{}"
        if form == "call":
            extra = ", progress=progress" if shows_progress else ""
            out.append(f'        return await self._call("{op.name}", {fields}, timeout{extra})\n')
        elif form == "pages":
            order = ", backwards=True" if backwards else ""
            out.append(f'        return self._pages("{op.name}", {fields}, "{items}", "{cursor}", timeout{order})\n')
        else:
            out.append(f'        return self._stream("{op.name}", {fields}, timeout)\n')
        return "".join(out)

    def page_items(self) -> dict[str, str]:
        found = {}
        for name, (items, _, _) in PAGES.items():
            op = next(o for o in self.contract.operations if o.name == name)
            assert op.answer
            answer = self.contract.resolve(op.answer["$ref"])["properties"][items]
            model = type_name(model_of(op.answer) or "")
            item = self.type_of(answer, model + items.capitalize())
            found[name] = item.removeprefix("list[").removesuffix("]")
        return found

    def operations(self) -> str:
        methods = []
        for op in self.contract.operations:
            if op.name == "import":
                continue
            methods.append(self.method(op, "stream" if op.name in STREAMS else "call", PYTHON_NAMES.get(op.name, op.name)))
            if op.name in PAGES:
                items, cursor, backwards = PAGES[op.name]
                methods.append(self.method(op, "pages", op.name + "_all", cursor, items, backwards))
        head = HEADER + textwrap.dedent(
            """\
            from __future__ import annotations

            TYPE_CHECKING = False
            if TYPE_CHECKING:
                import os
                from collections.abc import AsyncIterator, Callable, Mapping, Sequence
                from datetime import datetime, timedelta
                from typing import Any, Literal

                from .. import models


            class AsyncOperations:
                \"""The methods that are one operation each.\"""

                async def _call(
                    self,
                    operation: str,
                    fields: dict[str, Any],
                    timeout: float | None,
                    *,
                    progress: Callable[[dict[str, Any]], object] | None = None,
                ) -> Any:
                    raise NotImplementedError

                def _pages(
                    self,
                    operation: str,
                    fields: dict[str, Any],
                    items: str,
                    cursor: str,
                    timeout: float | None,
                    *,
                    backwards: bool = False,
                ) -> AsyncIterator[Any]:
                    raise NotImplementedError

                def _stream(self, operation: str, fields: dict[str, Any], timeout: float | None) -> AsyncIterator[Any]:
                    raise NotImplementedError

            """
        )
        return head + "\n".join(methods)

    def models(self) -> str:
        self.classes = []
        for name in self.contract.reachable:
            self.typed_dict(type_name(name), self.contract.schemas[name])
        for op in self.contract.operations:
            self.answer_of(op)
            for p in op.parameters:
                self.argument(p, op)
        unique = list(dict.fromkeys(self.classes))
        head = '"""Types of the answers.\n\nGenerated by clients/generate.py from docs/openapi.json. Do not edit.\n"""\n\n'
        head += "from __future__ import annotations\n\nfrom datetime import datetime\n"
        head += "from typing import TYPE_CHECKING, Any, Literal, TypedDict\n\n"
        head += "if TYPE_CHECKING:\n    from typing_extensions import NotRequired\n\n\n"
        return head + "\n\n".join(unique)

    def dates(self) -> dict[str, Any]:
        """For each model the fields that are times, or contain models with times."""
        plans: dict[str, Any] = {}
        for name in self.contract.reachable:
            plan = self.plan(self.contract.schemas[name])
            if plan:
                plans[name] = plan
        # Models that only lead to models without times are dropped, until nothing changes.
        while True:
            kept = {n: q for n, q in ((n, prune(p, plans)) for n, p in plans.items()) if q}
            if kept == plans:
                return plans
            plans = kept

    def plan(self, schema: Schema) -> Any:
        if "$ref" in schema:
            return model_of(schema) or self.plan(self.contract.resolve(schema["$ref"]))
        for option in schema.get("anyOf", []):
            if option.get("type") != "null":
                return self.plan(option)
        if schema.get("format") == "date-time":
            return True
        if schema.get("type") == "array":
            return self.plan(schema.get("items", {}))
        found = {k: self.plan(v) for k, v in schema.get("properties", {}).items()}
        return {k: v for k, v in found.items() if v} or None

    def table(self) -> str:
        out = [HEADER, "from __future__ import annotations\n\nfrom typing import Any\n\n"]
        out.append("# Method, path, parameters in the path, how it may be repeated, model of the answer, progress.\n")
        out.append("OPERATIONS: dict[str, tuple[str, str, tuple[str, ...], str, str, bool]] = {\n")
        for op in self.contract.operations:
            names = tuple(p.name for p in op.path_parameters)
            answer = (model_of(op.answer) or "object") if op.answer is not None else ""
            if op.name == "import":
                answer = "imported"
            row = (op.method, op.path, names, op.retry, answer, op.streams_progress)
            out.append(f'    "{op.name}": {python_literal(row)},\n')
        out.append("}\n\n# Fields that are times (True), and those that lead to some.\nDATES: dict[str, dict[str, Any]] = {\n")
        for name, plan in self.dates().items():
            out.append(f'    "{name}": {python_literal(plan)},\n')
        out.append("}\n\n# The class of an exception, by the code in a problem.\nERROR_CLASSES: dict[str, str] = {\n")
        for code, name in ERRORS.items():
            out.append(f'    "{code}": "{PYTHON_ERRORS.get(name, name)}",\n')
        out.append("}\n")
        return "".join(out)


def prune(plan: Any, plans: dict[str, Any]) -> Any:
    if isinstance(plan, dict):
        return {k: q for k, q in ((k, prune(v, plans)) for k, v in plan.items()) if q} or None
    return plan if plan is True or plan in plans else None


def python_literal(value: Any) -> str:
    if isinstance(value, tuple):
        inner = ", ".join(python_literal(v) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{python_literal(k)}: {python_literal(v)}" for k, v in value.items()) + "}"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def docstring(text: str, indent: str) -> str:
    text = text.replace("\\", "\\\\")
    if len(indent) + len(text) + 6 <= 110:
        return f'{indent}"""{text}"""\n'
    lines = textwrap.wrap(text, 108 - len(indent))
    return f'{indent}"""' + f"\n{indent}".join(lines) + f'\n{indent}"""\n'


def method_docstring(text: str, notes: list[tuple[str, str]]) -> str:
    lines = [f'        """{text}\n', "\n        Args:\n"]
    for name, note in notes:
        wrapped = textwrap.wrap(f"{name}: {note}".replace("\\", "\\\\"), 92, subsequent_indent="    ")
        lines += [f"            {line}\n" for line in wrapped]
    return "".join(lines) + '        """\n'


# The sync code

SYNC = [
    (r"\basync def\b", "def"),
    (r"\basync for\b", "for"),
    (r"\basync with\b", "with"),
    (r"\bawait ", ""),
    (r"\bAsync([A-Z])", r"\1"),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"\baclose\b", "close"),
]


def sync_of(text: str, source: str) -> str:
    for pattern, replacement in SYNC:
        text = re.sub(pattern, replacement, text)
    note = f"# Generated by clients/generate.py from mnemon/_async/{source}. Do not edit.\n"
    return note + text


def outputs() -> dict[Path, str]:
    contract = Contract(json.loads(CONTRACT.read_text()))
    typescript = TypeScript(contract)
    python = Python(contract)
    operations = python.operations()
    files = {
        TYPESCRIPT / "types.d.ts": typescript.types(),
        TYPESCRIPT / "operations.js": typescript.operations(),
        PYTHON / "_table.py": python.table(),
        PYTHON / "models.py": python.models(),
        PYTHON / "_async" / "operations.py": operations,
        PYTHON / "_sync" / "operations.py": sync_of(operations, "operations.py"),
    }
    for name in ("client.py", "http.py", "local.py"):
        source = (PYTHON / "_async" / name).read_text()
        files[PYTHON / "_sync" / name] = sync_of(source, name)
    return files


def main() -> int:
    check = sys.argv[1:] == ["--check"]
    stale = []
    for path, text in outputs().items():
        if check:
            if not path.exists() or path.read_text() != text:
                stale.append(str(path.relative_to(HERE)))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    if stale:
        print(f"not as generated: {', '.join(stale)}; run python3 clients/generate.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
