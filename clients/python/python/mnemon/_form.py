"""Requests and answers as the API writes them: what every transport needs."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple, cast
from urllib.parse import quote, urlencode

from . import errors
from ._table import DATES, ERROR_CLASSES, OPERATIONS
from .errors import ConnectionLostError, InvalidError, MnemonError, ProtocolError, TimedOutError

# A wait that is longer is left to the caller, who may have something better to do.
LONGEST_WAIT = 10.0
FIRST_WAIT = 0.1


class Operation(NamedTuple):
    """A row of the table of operations."""

    method: str
    path: str
    path_parameters: tuple[str, ...]
    retry: str
    answer: str
    progress: bool


def operation(name: str) -> Operation:
    return Operation(*OPERATIONS[name])


class Request(NamedTuple):
    """A request without its connection."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


def request_of(op: Operation, fields: Mapping[str, Any], body: bytes | None = None) -> Request:
    """The request of an operation. A `body` goes along as it is, with the fields in the query."""
    given = {name: value for name, value in fields.items() if value is not None}
    headers: dict[str, str] = {}
    path = op.path
    for name in op.path_parameters:
        value = given.pop(name)
        if not isinstance(value, str) or not value:
            raise InvalidError("must be a text that is not empty", field=name)
        path = path.replace("{" + name + "}", quote(value, safe=""))
    if op.retry == "keyed":
        headers["Idempotency-Key"] = given.pop("key", None) or os.urandom(16).hex()
    if body is not None:
        headers["Content-Type"] = "application/x-ndjson"
        return Request(op.method, path + query_of(given), headers, body)
    if op.method in ("POST", "PATCH"):
        headers["Content-Type"] = "application/json"
        return Request(op.method, path, headers, to_json(prepared(given)))
    return Request(op.method, path + query_of(given), headers, b"")


def check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not value.isprintable():
            raise InvalidError("has a character that a header cannot have", field=name)


def prepared(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are set. A condition on metadata is JSON within the JSON."""
    ready = {name: value for name, value in fields.items() if value is not None}
    if "filter" in ready and not isinstance(ready["filter"], str):
        ready["filter"] = to_json(ready["filter"]).decode()
    return ready


def query_of(fields: Mapping[str, Any]) -> str:
    pairs: list[tuple[str, str]] = []
    for name, value in prepared(fields).items():
        many = cast("Iterable[Any]", value) if isinstance(value, (list, tuple, set, frozenset)) else (value,)
        for one in many:
            if isinstance(one, bool):
                pairs.append((name, "true" if one else "false"))
            else:
                pairs.append((name, str(one if isinstance(one, (str, int, float)) else _plain(one))))
    return "?" + urlencode(pairs) if pairs else ""


def to_json(value: Any) -> bytes:
    try:
        return _ENCODER.encode(value).encode()
    except (TypeError, ValueError, UnicodeEncodeError) as error:
        raise InvalidError(f"cannot be written as JSON: {error}") from error


def _plain(value: Any) -> Any:
    """Values of Python that JSON does not have."""
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, timedelta):
        return f"{max(1, round(value.total_seconds()))}s"
    if isinstance(value, os.PathLike):
        return os.fspath(cast("os.PathLike[str]", value))
    if isinstance(value, (set, frozenset)):
        return sorted(cast("set[str]", value))
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    if isinstance(value, Iterable):
        return list(cast("Iterable[Any]", value))
    raise TypeError(f"a {type(value).__name__} is not a value of the API")


# Made once: to make one takes longer than to write a record with it.
_ENCODER = json.JSONEncoder(default=_plain, ensure_ascii=False, allow_nan=False)


def rfc3339(time: datetime) -> str:
    """The time in UTC with milliseconds. A time without a zone is one of this machine."""
    return time.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_json(text: bytes | str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ProtocolError("the answer is not JSON") from error


def with_dates(value: Any, model: str) -> Any:
    """The answer with its times as `datetime`. Contents of users are left alone."""
    plan = DATES.get(model)
    if plan is not None:
        _convert(value, plan)
    return value


def _convert(value: Any, plan: Mapping[str, Any]) -> None:
    # A search has some 20 times, and a value that comes from JSON is exactly a list or a dictionary.
    if type(value) is list:
        for item in cast("list[Any]", value):
            _convert(item, plan)
    elif type(value) is dict:
        found = cast("dict[str, Any]", value)
        for name, part in plan.items():
            inner = found.get(name)
            if inner is None:
                continue
            if part is True:
                found[name] = _time(inner)
            else:
                _convert(inner, DATES[part] if type(part) is str else part)


def _time(text: Any) -> datetime:
    try:
        # Python 3.10 does not know the zone `Z`.
        return _read_time(text) if _KNOWS_ZULU else _read_time(text.replace("Z", "+00:00"))
    except (TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(f"{text!r} is not a time") from error


_KNOWS_ZULU = sys.version_info >= (3, 11)
_read_time = datetime.fromisoformat


def pause(error: MnemonError, attempt: int, repeatable: bool) -> float | None:
    """Seconds to wait before the request is repeated; None if it must not be.

    A write without a key is repeated only if the server did not begin it.
    """
    refused = error.code in ("busy", "too-often")
    never_sent = isinstance(error, ConnectionLostError) and not error.sent
    lost = isinstance(error, (ConnectionLostError, TimedOutError)) or error.code == "unavailable"
    gateway = isinstance(error, ProtocolError) and error.status in (502, 503, 504)
    if not (refused or never_sent or (repeatable and (lost or gateway))):
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= LONGEST_WAIT else None
    return FIRST_WAIT * 2**attempt * (0.5 + random.random() / 2)


def error_of(problem: Any, status: int, retry_after: float | None = None) -> MnemonError:
    """The exception of a problem document, or a `ProtocolError` if it is none."""
    given = cast("dict[str, Any]", problem) if isinstance(problem, dict) else {}
    code, detail = given.get("code"), given.get("detail")
    if not isinstance(code, str) or not isinstance(detail, str):
        message = f"the answer has the status {status} and is not a problem document"
        return ProtocolError(message, status=status, retry_after=retry_after)
    found: type[MnemonError] = getattr(errors, ERROR_CLASSES.get(code, ""), MnemonError)
    return found(
        detail,
        code=code,
        status=status,
        field=given.get("field"),
        hint=given.get("hint"),
        causes=tuple(given.get("causes") or ()),
        request_id=given.get("request_id"),
        retry_after=retry_after,
    )
