"""Verify webhooks, as Standard Webhooks defines it.

    event = webhooks.verify(request.body, request.headers, os.environ["WEBHOOK_SECRET"])

Verify the raw body, before anything parses it. Delivery is at least once: a receiver
that has seen event.event_id before answers 2xx and does nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Iterable
from typing import Any

from . import models
from .errors import InvalidSignature

__all__ = ["TOLERANCE", "sign", "verify"]

#: The default greatest age of a webhook in seconds.
TOLERANCE = 300.0


def verify(
    body: bytes | str,
    headers: Any,
    secrets: str | Iterable[str],
    *,
    tolerance: float = TOLERANCE,
    now: float | None = None,
) -> models.Event:
    """Return the event of a webhook that has a valid signature.

    body: the raw body.
    headers: a mapping of names in any case.
    secrets: one secret, ``whsec_`` and base64, or several during a rotation.

    Raises InvalidSignature otherwise.
    """
    raw = body.encode() if isinstance(body, str) else bytes(body)
    named = {str(name).lower(): value for name, value in dict(headers.items()).items()}
    message_id, timestamp, signatures = (
        _text(named.get("webhook-" + name)) for name in ("id", "timestamp", "signature")
    )
    if not message_id or not timestamp or not signatures:
        raise InvalidSignature("missing Webhook-Id, Webhook-Timestamp or Webhook-Signature")
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 16):
        raise InvalidSignature("malformed Webhook-Timestamp")
    age = (time.time() if now is None else now) - int(timestamp)
    if abs(age) > tolerance:
        raise InvalidSignature(f"the webhook is {age:.0f} s old, want at most {tolerance:.0f} s")
    keys = [secrets] if isinstance(secrets, str) else list(secrets)
    if not keys:
        raise ValueError("want at least one secret")
    given = [s[3:] for s in signatures.split(" ") if s.startswith("v1,") and s.isascii()]
    valid = False
    for key in keys:
        expected = sign(key, message_id, int(timestamp), raw)[3:]
        for signature in given:
            valid |= hmac.compare_digest(expected, signature)
    if not valid:
        raise InvalidSignature("no signature is valid")
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        raise InvalidSignature("the body is not JSON") from None
    if not isinstance(value, dict):
        raise InvalidSignature("the body is not an object")
    return models.Event.from_dict(value)


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a body, for tests of receivers."""
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("malformed secret: want whsec_ and base64") from None
    if not key:
        raise ValueError("malformed secret: want whsec_ and base64")
    content = f"{message_id}.{timestamp}.".encode("utf-8", "surrogateescape") + body
    return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)) and value:
        value = value[0]
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    return value.strip() if isinstance(value, str) else ""
