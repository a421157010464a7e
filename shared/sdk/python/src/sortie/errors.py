"""The errors of this package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Union

__all__ = [
    "APIError",
    "Aborted",
    "Cancelled",
    "Category",
    "Conflict",
    "ConnectionFailed",
    "DeadlineReached",
    "Failure",
    "Forbidden",
    "InvalidEnvelope",
    "InvalidRequest",
    "InvalidSignature",
    "NoTask",
    "NotFound",
    "OutputChanged",
    "PreconditionFailed",
    "RateLimited",
    "RunFailed",
    "ServerError",
    "SortieError",
    "StreamGap",
    "Terminated",
    "Unauthenticated",
    "Undelivered",
]

#: The category of a failure. It decides whether the run is retried.
Category = Union[Literal["USER_CODE", "DATA_QUALITY", "INFRASTRUCTURE", "CONFIGURATION", "TIMEOUT"], str]


class SortieError(Exception):
    """The base of all errors of this package, except Cancelled."""


# Of workers.


class Cancelled(BaseException):
    """The work must stop. ``Task.check`` raises it.

    It is no Exception, so that ``except Exception`` in the work does not hide it.
    """

    def __init__(self, reason: str = "user_requested") -> None:
        super().__init__(reason)
        #: Why the work must stop: the reason of the cancel request, or of a subclass.
        self.reason = reason


class Terminated(Cancelled):
    """The process got SIGTERM, and no cancel request is known. Nothing is reported."""

    def __init__(self, reason: str = "terminated") -> None:
        super().__init__(reason)


class Aborted(Cancelled):
    """The control plane takes no more reports of the attempt (409 or 410)."""

    def __init__(self, reason: str = "expired") -> None:
        super().__init__(reason)


class DeadlineReached(Cancelled):
    """The time of the attempt is over. It is reported as FAILED with category TIMEOUT."""

    def __init__(self, reason: str = "deadline") -> None:
        super().__init__(reason)


class Failure(SortieError):
    """A failure with a category. ``Task.fail`` raises it."""

    def __init__(self, category: Category, message: str, retryable: bool | None = None) -> None:
        super().__init__(message)
        self.category = category
        self.message = message
        #: Whether another attempt may succeed; None leaves it to the category.
        self.retryable = retryable


class NoTask(SortieError):
    """The environment has no TASK_ENVELOPE: the process was not started for a task."""


class InvalidEnvelope(SortieError):
    """TASK_ENVELOPE is invalid. The message names each problem and contains no value."""


class Undelivered(SortieError):
    """The control plane did not accept the result of the work."""


# Of webhooks.


class InvalidSignature(SortieError):
    """A webhook has no valid signature, or its timestamp is too old or too new."""


# Of the client.


class ConnectionFailed(SortieError):
    """A request had no complete answer."""


class OutputChanged(SortieError):
    """Another output replaced the one that was being downloaded."""


class RunFailed(SortieError):
    """A run ended without success."""

    def __init__(self, run: Any) -> None:
        super().__init__(f"run {run.task_id} ended in state {run.state}")
        #: The models.Task.
        self.run = run


class StreamGap(SortieError):
    """The stream of events no longer has what follows the cursor."""

    def __init__(self, oldest: str, newest: str) -> None:
        super().__init__(f"events were deleted; the oldest cursor is {oldest}")
        #: Continue after this cursor to read what is left.
        self.oldest = oldest
        self.newest = newest


class APIError(SortieError):
    """An answer of the API with a status from 300."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        correlation_id: str = "",
        problem: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{status} {code}: {message}" if message else f"{status} {code}")
        self.status = status
        #: Stable across versions, such as ``NOT_FOUND``; empty without a problem document.
        self.code = code
        self.message = message
        #: Names the request in the logs of the server.
        self.correlation_id = correlation_id
        #: The problem document.
        self.problem = dict(problem or {})


class InvalidRequest(APIError):
    """400, 413, 415 or 422."""


class Unauthenticated(APIError):
    """401."""


class Forbidden(APIError):
    """403."""


class NotFound(APIError):
    """404 or 410."""


class Conflict(APIError):
    """409."""


class PreconditionFailed(Conflict):
    """412 or 428: the resource is not in the version that ``if_match`` names."""


class RateLimited(APIError):
    """429."""

    #: Seconds to wait before the next request; None if the answer does not say it.
    retry_after: float | None = None


class ServerError(APIError):
    """5xx."""

    #: Seconds to wait before the next request; None if the answer does not say it.
    retry_after: float | None = None
