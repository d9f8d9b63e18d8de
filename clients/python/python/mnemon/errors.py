"""Errors: one class for each thing that a caller can do about it.

Every exception of this package is a `MnemonError`. Decide by the class, or by `code`, a word that
stays the same.
"""

from __future__ import annotations


class MnemonError(Exception):
    """Anything that goes wrong between a program and its memory."""

    code: str = "unknown"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int | None = None,
        field: str | None = None,
        hint: str | None = None,
        causes: tuple[str, ...] = (),
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.status = status
        """HTTP status, if a server answered."""
        self.field = field
        """The field that is wrong."""
        self.hint = hint
        """What to do about it."""
        self.causes = causes
        self.request_id = request_id
        """Name of the request in the log of the server."""
        self.retry_after = retry_after
        """Seconds after which to try again."""

    def __str__(self) -> str:
        text = f"{self.field}: {self.message}" if self.field else self.message
        return f"{text} ({self.hint})" if self.hint else text


class InvalidError(MnemonError, ValueError):
    """The request is wrong; `field` names the part."""

    code = "invalid"


class UnauthorizedError(MnemonError):
    """The key is missing or not valid."""

    code = "unauthorized"


class DeniedError(MnemonError):
    """The key, the host or the origin does not allow it."""

    code = "denied"


class NotFoundError(MnemonError, LookupError):
    """It does not exist, or the caller may not see it."""

    code = "not-found"


class ConflictError(MnemonError):
    """It was changed meanwhile, exists already, or the idempotency key belongs to another request."""

    code = "conflict"


class TooLargeError(MnemonError):
    """The request is too large."""

    code = "too-large"


class TooOftenError(MnemonError):
    """Too many requests, or a quota is used up; `retry_after` has the seconds to wait."""

    code = "too-often"


class BusyError(MnemonError):
    """The server is busy: try again in a second."""

    code = "busy"


class UnavailableError(MnemonError):
    """The server or its store cannot be used at the moment."""

    code = "unavailable"


class UnsupportedError(MnemonError):
    """This store cannot do it."""

    code = "unsupported"


class FullError(MnemonError):
    """The disk is full."""

    code = "full"


class InternalError(MnemonError):
    """The store is damaged, or Mnemon has a bug."""

    code = "internal"


class TimedOutError(MnemonError, TimeoutError):
    """No answer within the time limit. A write without an idempotency key may have been carried out."""

    code = "timeout"


class ConnectionLostError(MnemonError, ConnectionError):
    """The server could not be reached, or the connection broke.

    `sent` says whether the request may have reached the server.
    """

    code = "connection"

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class ProtocolError(MnemonError):
    """The answer is not one of a Mnemon server."""

    code = "protocol"
