"""Memory for AI agents: the client of Mnemon.

>>> from mnemon import Mnemon
>>> with Mnemon(URL) as memory:
...     receipt = memory.add("Bo drinks oolong tea", user="bo")
...     for hit in memory.search("tea", user="bo", own=True)["hits"]:
...         print(hit["record"]["content"])
Bo drinks oolong tea

`AsyncMnemon` has the same methods for asyncio. `mnemon.models` has the types of the answers, and
`mnemon.errors` the exceptions.
"""

from __future__ import annotations

from ._sync.client import Mnemon
from .errors import (
    BusyError,
    ConflictError,
    ConnectionLostError,
    DeniedError,
    FullError,
    InternalError,
    InvalidError,
    MnemonError,
    NotFoundError,
    ProtocolError,
    TimedOutError,
    TooLargeError,
    TooOftenError,
    UnauthorizedError,
    UnavailableError,
    UnsupportedError,
)

# `typing`, `json` and `logging` take longer to import than this package: they are imported when a client is made.
# Type checkers know this name without `typing`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._async.client import AsyncMnemon

__all__ = [
    "AsyncMnemon",
    "BusyError",
    "ConflictError",
    "ConnectionLostError",
    "DeniedError",
    "FullError",
    "InternalError",
    "InvalidError",
    "Mnemon",
    "MnemonError",
    "NotFoundError",
    "ProtocolError",
    "TimedOutError",
    "TooLargeError",
    "TooOftenError",
    "UnauthorizedError",
    "UnavailableError",
    "UnsupportedError",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # asyncio takes longer to import than the rest of the package.
    if name == "AsyncMnemon":
        from ._async.client import AsyncMnemon

        return AsyncMnemon
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
