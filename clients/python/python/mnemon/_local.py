"""The border to the compiled part of the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from . import _form
from ._log import log
from .errors import InvalidError, UnsupportedError

Embed = Callable[[list[str]], Sequence[Any]]
"""Makes the vectors of texts, in their order: sequences of numbers or arrays, or None for a text without a meaning."""


class NativeAnswer(Protocol):
    """The answer to a request; `read` returns the next part of its body, and nothing at the end."""

    @property
    def status(self) -> int: ...

    @property
    def seconds(self) -> float | None: ...

    @property
    def headers(self) -> list[tuple[str, str]]: ...

    def read(self) -> bytes | None: ...

    def close(self) -> None: ...


class NativeStore(Protocol):
    """A store as `mnemon._native.open` returns it. It answers the requests of the HTTP API."""

    def request(self, method: str, target: str, headers: list[tuple[str, str]], body: bytes) -> NativeAnswer: ...

    def close(self) -> None: ...


class Embedder(NamedTuple):
    """An embedding function as `mnemon._native.open` takes it."""

    model: str
    dimensions: int
    function: Callable[[list[str]], list[Any]]


def embedder_of(embed: Embed, model: str | None, dimensions: int | None) -> Embedder:
    if not model:
        raise InvalidError("is missing: name the model that `embed` uses", field="embed_model")

    def function(texts: list[str]) -> list[Any]:
        try:
            return _vectors(embed(texts))
        except Exception:
            # Most operations do without vectors that are missing.
            log.warning("the function `embed` failed", exc_info=True)
            raise

    if dimensions is None:
        dimensions = _dimensions(function)
    return Embedder(model, dimensions, function)


def _vectors(made: Any) -> list[Any]:
    if hasattr(made, "__await__"):
        close = getattr(made, "close", None)
        if close is not None:
            # Python warns of coroutines that nobody awaits.
            close()
        raise TypeError("it is a coroutine function: give a function that returns the vectors")
    return [None if one is None else _plain(one) for one in _plain(made)]


def _plain(array: Any) -> Any:
    """The list that an array of NumPy or PyTorch holds."""
    to_list = getattr(array, "tolist", None)
    return array if to_list is None else to_list()


def _dimensions(function: Callable[[list[str]], list[Any]]) -> int:
    try:
        (vector,) = function(["dimension"])
        return len(vector)
    except Exception as error:
        raise InvalidError(f"failed for the text 'dimension': {error}", field="embed") from error


def open_store(store: str, tenant: str | None, config: str | None, embedder: Embedder | None) -> NativeStore:
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
        opened: NativeStore = native.open(store, tenant, config, embedder)
    except native.ProblemError as error:
        problem = _form.from_json(error.args[0])
        raise _form.error_of(problem, problem.get("status", 500)) from None
    except RuntimeError as error:
        raise UnsupportedError(str(error)) from None
    return opened
