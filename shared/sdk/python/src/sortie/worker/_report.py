"""What a report says of an exception."""

from __future__ import annotations

import errno
import sys
import traceback
from typing import Any

from .._time import now as rfc3339
from ..errors import Cancelled, DeadlineReached, Failure

#: The control plane cuts texts at the same lengths.
MOST_MESSAGE, MOST_TRACE = 2 << 10, 16 << 10
_CUT = " [cut]"


def stops(failure: BaseException) -> bool:
    """Report whether an exception is the end of work that was asked to stop."""
    if isinstance(failure, (Cancelled, KeyboardInterrupt)):
        return True
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(failure, asyncio.CancelledError)


def succeeded(uploaded: dict[str, Any] | None) -> dict[str, Any]:
    """Return the report of a success."""
    fields: dict[str, Any] = {"completedAt": rfc3339(), "outcome": "SUCCEEDED"}
    if uploaded is not None:
        fields["output"] = uploaded
    return fields


def cancelled(phase: str, partial: Any, percent: int, message: str) -> dict[str, Any]:
    """Return the report of work that ended for a cancel request."""
    if partial is None and percent >= 0:
        partial = {"progressPct": percent, "message": cut(message, MOST_MESSAGE)}
    fields: dict[str, Any] = {"completedAt": rfc3339(), "outcome": "CANCELLED"}
    fields["cancelledDuringPhase"] = phase or "processing"
    if partial is not None:
        fields["partialProgress"] = partial
    return fields


def failed(failure: BaseException, cause: Cancelled | None) -> dict[str, Any]:
    """Return the report of a failure."""
    return {"completedAt": rfc3339(), "outcome": "FAILED", "error": error_of(failure, cause)}


def error_of(failure: BaseException, cause: Cancelled | None) -> dict[str, Any]:
    """Return the error of a report."""
    message = str(failure) or type(failure).__name__
    category, retryable = "USER_CODE", None
    if isinstance(failure, Failure):
        category, retryable = str(failure.category), failure.retryable
    elif isinstance(cause, DeadlineReached):
        category = "TIMEOUT"
        if stops(failure):
            message = "the attempt reached its deadline"
    elif isinstance(failure, MemoryError) or (isinstance(failure, OSError) and failure.errno in _SHORTAGES):
        category = "INFRASTRUCTURE"
    elif isinstance(failure, SystemExit):
        message = f"exit code {failure.code}"
    if category == "USER_CODE" and not isinstance(failure, (Failure, SystemExit)):
        message = f"{type(failure).__name__}: {message}"
    error: dict[str, Any] = {"category": category, "message": cut(message, MOST_MESSAGE)}
    if failure.__traceback__ is not None and not isinstance(failure, (Cancelled, SystemExit)):
        trace = "".join(traceback.format_exception(type(failure), failure, failure.__traceback__))
        error["stackTrace"] = cut_middle(trace, MOST_TRACE)
    if retryable is not None:
        error["retryable"] = retryable
    return error


_SHORTAGES = {errno.ENOSPC, errno.ENOMEM, getattr(errno, "EDQUOT", errno.ENOSPC)}


def cut(text: str, most: int) -> str:
    """Shorten a text to at most most bytes of UTF-8, and mark it."""
    content = text.encode("utf-8", "replace")
    if len(content) <= most:
        return content.decode("utf-8", "replace")
    return content[: most - len(_CUT)].decode("utf-8", "ignore") + _CUT


def cut_middle(text: str, most: int) -> str:
    """Shorten a stack trace: its end names the error."""
    content = text.encode("utf-8", "replace")
    if len(content) <= most:
        return text
    half = (most - 16) // 2
    return content[:half].decode("utf-8", "ignore") + "\n[cut]\n" + content[-half:].decode("utf-8", "ignore")
