"""The border to the compiled part of the package."""

from __future__ import annotations

from typing import Any, Protocol

from . import _form
from .errors import UnsupportedError


class NativeAnswer(Protocol):
    """The answer to a request; `read` returns the next part of its body, and nothing at the end."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> list[tuple[str, str]]: ...

    def read(self) -> bytes | None: ...

    def close(self) -> None: ...


class NativeStore(Protocol):
    """A store as `mnemon._native.open` returns it. It answers the requests of the HTTP API."""

    def request(self, method: str, target: str, headers: list[tuple[str, str]], body: bytes) -> NativeAnswer: ...

    def close(self) -> None: ...


def open_store(store: str, tenant: str | None, config: str | None) -> NativeStore:
    try:
        from . import _native  # type: ignore[attr-defined]
    except ImportError as error:
        message = f"{store!r} needs the compiled part of this package, which is not installed"
        raise UnsupportedError(message, hint="start `mnemon serve` and use its address") from error
    native: Any = _native  # pyright: ignore
    if "://" not in store and not store.startswith(("ram:", "jsonl:", "sqlite:")):
        # A path.
        store = f"sqlite:{store}"
    try:
        opened: NativeStore = native.open(store, tenant, config)
    except native.ProblemError as error:
        problem = _form.from_json(error.args[0])
        raise _form.error_of(problem, problem.get("status", 500)) from None
    except RuntimeError as error:
        raise UnsupportedError(str(error)) from None
    return opened
