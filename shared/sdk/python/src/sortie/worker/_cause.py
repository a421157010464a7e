"""Who calls, why an answer ends the work, and how long it may continue then."""

from __future__ import annotations

import socket
import uuid

from ..errors import Aborted, Cancelled, DeadlineReached
from ._http import Answer

_ABORT_GRACE = 1.0
MOST_MARGIN = 5.0


def new_worker_id() -> str:
    """Return a name that differs between processes."""
    host = "".join(c for c in socket.gethostname() if " " < c < "\x7f")[:63] or "worker"
    return f"{host}-{uuid.uuid4().hex[:8]}"


def cause_of(answer: Answer) -> Cancelled | None:
    """Return why an answer ends the work; None if it does not."""
    if answer.status == 410:
        return Aborted("expired")
    if answer.status != 409:
        return None
    said = answer.object() or {}
    if said.get("error") != "task_already_terminal":
        return Aborted("mismatch")
    return Cancelled() if said.get("state") == "CANCELLED" else Aborted("ended")


def grace_of(whole: float, cause: Cancelled) -> float:
    """Return how long work may continue that must stop."""
    grace = whole * 0.8
    if isinstance(cause, Aborted):
        return min(grace, _ABORT_GRACE)
    return min(grace, MOST_MARGIN * 0.8) if isinstance(cause, DeadlineReached) else grace
