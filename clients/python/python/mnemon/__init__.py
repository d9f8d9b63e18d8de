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

import logging
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
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

# A program that does not ask for the log gets none.
logging.getLogger("mnemon").addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    # asyncio takes longer to import than the rest of the package.
    if name == "AsyncMnemon":
        from ._async.client import AsyncMnemon

        return AsyncMnemon
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
