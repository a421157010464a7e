"""The task envelope: what a worker is started with."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from .._time import parse_time
from ..errors import InvalidEnvelope, NoTask

VARIABLE = "TASK_ENVELOPE"
_MOST_BYTES = 1 << 20
_MOST_MS = 24 * 3600 * 1000
_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.~:-]{0,255}", re.ASCII)
_TOKEN = re.compile(r"[!-~]+", re.ASCII)


@dataclass(frozen=True)
class Upload:
    """Where to put one object. The URL is a secret."""

    url: str = field(repr=False)
    key: str
    headers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Download:
    """Where to get one object. The URL is a secret."""

    url: str = field(repr=False)
    size: int | None


@dataclass(frozen=True)
class Envelope:
    """A valid envelope, with the defaults of the contract."""

    task_id: str
    run_id: str
    attempt: int
    base_url: str
    token: str = field(repr=False)
    interval: float
    timeout: float
    grace: float
    time_limit: float | None
    deadline: datetime | None
    output: Upload | None
    log: Upload | None
    input: Download | None
    file_name: str
    content_type: str
    traceparent: str
    members: Mapping[str, Any] = field(repr=False)

    def until_deadline(self) -> float | None:
        """Return the seconds until the deadline; None without one."""
        if self.deadline is None:
            return None
        return (self.deadline - datetime.now(timezone.utc)).total_seconds()

    def time_left(self) -> float | None:
        """Return the seconds that an attempt has which starts now; None without a limit."""
        left = self.until_deadline()
        if left is None or (self.time_limit is not None and self.time_limit < left):
            return self.time_limit
        return max(left, 0.001)


def take(environ: Any = None) -> Envelope:
    """Read the envelope and remove it from the environment, so that no child has the token."""
    env = os.environ if environ is None else environ
    text = env.pop(VARIABLE, "")
    env.pop("CALLBACK_URL", None)  # has a token, too
    if not text.strip():
        raise NoTask(f"no task: {VARIABLE} is not set")
    return parse(text)


def upload_of(value: Any) -> Upload | None:
    """Return a target of uploads; None if the value is not a usable one."""
    if not isinstance(value, Mapping) or not is_url(value.get("url")):
        return None
    headers = value.get("headers")
    named = headers if isinstance(headers, Mapping) else {}
    return Upload(value["url"], str(value.get("key") or ""), {str(k): str(v) for k, v in named.items()})


def is_url(value: Any) -> bool:
    """Report whether a value is an http or https URL."""
    if not isinstance(value, str):
        return False
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def is_token(value: Any) -> bool:
    """Report whether a value can be a token."""
    return isinstance(value, str) and _TOKEN.fullmatch(value) is not None


def parse(text: str) -> Envelope:
    """Read an envelope. The error names each problem and contains no value."""
    if len(text.encode("utf-8", "surrogateescape")) > _MOST_BYTES:
        raise InvalidEnvelope(f"invalid {VARIABLE}: larger than 1 MiB")
    try:
        members = json.loads(text)
    except ValueError as error:
        at = getattr(error, "pos", 0)
        raise InvalidEnvelope(f"invalid {VARIABLE}: not JSON at character {at}") from None
    if not isinstance(members, dict):
        raise InvalidEnvelope(f"invalid {VARIABLE}: want an object")
    problems: list[str] = []

    def get(name: str, valid: Callable[[Any], bool], problem: str, default: Any) -> Any:
        value = members.get(name)
        if value is None:
            value = default
        if value is None or not valid(value):
            problems.append(problem)
            return default
        return value

    def milliseconds(name: str, default: int) -> float:
        want = f"{name}: want 1 to {_MOST_MS} milliseconds"
        value = get(name, lambda v: _is_number(v) and (v == 0 or 1 <= v <= _MOST_MS), want, default)
        return float(value or default) / 1000

    def part(where: Any, name: str, path: str) -> Mapping[str, Any]:
        value = where.get(name) if isinstance(where, Mapping) else None
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            problems.append(f"{path}: want an object")
            return {}
        return value

    def url_of(object_: Mapping[str, Any], path: str) -> None:
        if object_ and not is_url(object_.get("url")):
            problems.append(f"{path}.url: want an http or https URL")

    task_id = get(
        "taskId",
        lambda v: isinstance(v, str) and _TASK_ID.fullmatch(v) is not None,
        "missing or malformed taskId",
        None,
    )
    attempt = get("attempt", lambda v: _is_number(v) and v >= 1, "attempt: want a number from 1", None)
    base = get("callbackBaseUrl", is_url, "callbackBaseUrl: want an http or https URL", None)
    token = get("taskToken", is_token, "missing or malformed taskToken", None)
    interval = milliseconds("heartbeatIntervalMs", 30_000)
    timeout = milliseconds("heartbeatTimeoutMs", 90_000)
    grace = milliseconds("cancelGracePeriodMs", 30_000)
    deadline = None
    if members.get("deadline") is not None:
        try:
            deadline = parse_time(members["deadline"])
        except (ValueError, TypeError):
            problems.append("deadline: want an RFC 3339 time")
    output, log = part(members, "output", "output"), part(members, "log", "log")
    program = part(members, "program", "program")
    given = part(program, "input", "program.input")
    result = part(program, "output", "program.output")
    url_of(output, "output")
    url_of(log, "log")
    url_of(given, "program.input")
    limit = part(members, "resources", "resources").get("timeoutMs")
    if problems:
        raise InvalidEnvelope(f"invalid {VARIABLE}: " + "; ".join(problems))
    return Envelope(
        task_id=task_id,
        run_id=str(members.get("runId") or task_id),
        attempt=int(attempt or 0),
        base_url=base.rstrip("/"),
        token=token,
        interval=interval,
        timeout=timeout,
        grace=grace,
        time_limit=limit / 1000 if _is_number(limit) and limit > 0 else None,
        deadline=deadline,
        output=upload_of(output),
        log=upload_of(log),
        input=_download_of(given),
        file_name=str(result.get("fileName") or ""),
        content_type=str(result.get("contentType") or ""),
        traceparent=str(members.get("traceparent") or ""),
        members={k: v for k, v in members.items() if k not in ("taskToken", "output", "log", "program")},
    )


def _download_of(value: Mapping[str, Any]) -> Download | None:
    if not value:
        return None
    size = value.get("size")
    return Download(value["url"], int(size) if _is_number(size) else None)


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
