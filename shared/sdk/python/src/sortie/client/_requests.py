"""What the resources of both clients share: requests, and what their answers say."""

from __future__ import annotations

import base64
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, NamedTuple
from urllib.parse import urljoin

import httpx

from .. import models as m
from ..errors import ConnectionFailed, OutputChanged, RunFailed
from ._core import STREAM_TIMEOUT, Call, Settings, call_of, delay_before, path_of, query_value

TERMINAL = frozenset(("Completed", "Failed", "Cancelled", "Orphaned"))
POLL = 20
MOST_OUTAGE = 600.0


class WebSocketAddress(NamedTuple):
    """What a library of WebSockets needs to connect. The headers have the token."""

    url: str
    headers: dict[str, str]

    def __repr__(self) -> str:
        return f"WebSocketAddress(url={self.url!r})"


class Stored(NamedTuple):
    """The headers of an output or of the content of an artifact."""

    size: int | None
    media_type: str
    file_name: str
    etag: str


class Progress:
    """The progress of a download that is resumed."""

    def __init__(self) -> None:
        self.size = 0
        self.etag = ""
        self.whole: int | None = None
        self._failures = 0

    def headers(self) -> dict[str, str]:
        """Return the headers of the rest."""
        if not self.size or not self.etag:
            return {}
        return {"Range": f"bytes={self.size}-", "If-Range": self.etag}

    def begin(self, response: httpx.Response) -> None:
        """Check that an answer continues what was read."""
        if self.size and response.status_code != 206:
            raise OutputChanged("the output changed during the download")
        self.etag = response.headers.get("ETag", self.etag)
        length = response.headers.get("Content-Length", "")
        self.whole = self.size + int(length) if length.isdigit() else None

    def add(self, size: int) -> None:
        """Count what was stored."""
        self.size += size
        self._failures = 0

    def end(self) -> int:
        """Return the size of a complete download."""
        if self.whole is not None and self.size < self.whole:
            raise ConnectionFailed(f"got {self.size} of {self.whole} bytes")
        return self.size

    def failed(self, error: ConnectionFailed, retries: int) -> float:
        """Return the delay before the next try."""
        if self._failures >= retries or (self.size and not self.etag):
            raise error
        self._failures += 1
        return delay_before(self._failures, None)


def poll_seconds(until: float | None) -> int:
    """Return how long the server may wait for a change."""
    if until is None:
        return POLL
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("the run has not ended")
    return max(1, min(POLL, int(left)))


def status_call(settings: Settings, task_id: str, wait: int) -> Call:
    """Ask for the status once something changes."""
    return call_of(
        settings,
        "GET",
        path_of("/status/{}", task_id),
        query={"wait": wait},
        timeout=max(settings.timeout, wait + 15.0),
    )


def checked(run: m.Task, check: bool) -> m.Task:
    """Return a run, or raise RunFailed."""
    if check and (run.state != "Completed" or run.skipped):
        raise RunFailed(run)
    return run


def output_call(settings: Settings, task_id: str, headers: Mapping[str, str] | None = None) -> Call:
    """Ask for an output as it is stored."""
    named = {"Accept-Encoding": "identity", **(headers or {})}
    timeout = httpx.Timeout(settings.timeout, connect=10.0, read=max(settings.timeout, 60.0))
    return call_of(
        settings,
        "GET",
        path_of("/download/{}", task_id),
        headers=named,
        accept="*/*",
        timeout=timeout,
        passes=frozenset((302,)),
    )


def redirected(call: Call, response: httpx.Response) -> Call:
    """Return the request of the presigned URL, which gets no token."""
    given = response.headers.get("Location", "")
    try:
        location = urljoin(call.url, given)
        valid = bool(given) and httpx.URL(location).scheme in ("http", "https")
    except (httpx.InvalidURL, ValueError):
        valid = False
    if not valid:
        raise ConnectionFailed("malformed Location")
    kept = {
        name: value
        for name, value in call.headers.items()
        if name in ("Accept-Encoding", "Range", "If-Range")
    }
    return Call("GET", location, kept, None, call.timeout, True, presigned=True)


def stored_of(response: httpx.Response) -> Stored:
    """Return what the headers say of a body."""
    disposition = response.headers.get("Content-Disposition", "")
    name = disposition.partition('filename="')[2].partition('"')[0]
    length = response.headers.get("Content-Length", "")
    return Stored(
        int(length) if length.isdigit() else None,
        response.headers.get("Content-Type", ""),
        name,
        response.headers.get("ETag", ""),
    )


def log_call(settings: Settings, task_id: str, query: Mapping[str, Any]) -> Call:
    """Follow a log."""
    return call_of(
        settings,
        "GET",
        path_of("/v1/tasks/{}/logs", task_id),
        query={**query, "follow": True},
        accept="application/x-ndjson",
        timeout=httpx.Timeout(10.0, read=60.0),
    )


def log_bytes(line: m.LogLine) -> bytes:
    """Return the output of a line of a followed log."""
    return base64.b64decode(line.data or "")


def events_call(
    settings: Settings, query: Mapping[str, Any], after: str | None, headers: Mapping[str, str]
) -> Call:
    """Follow the events."""
    place = {} if "Last-Event-ID" in headers else {"after": after}
    return call_of(
        settings,
        "GET",
        "/v1/events/stream",
        query={**query, **place},
        headers=headers,
        accept="text/event-stream",
        timeout=STREAM_TIMEOUT,
    )


def task_stream_call(settings: Settings, task_id: str, headers: Mapping[str, str]) -> Call:
    """Follow an inference task."""
    return call_of(
        settings,
        "GET",
        path_of("/v1/tasks/{}/stream", task_id),
        headers=headers,
        accept="text/event-stream",
        timeout=STREAM_TIMEOUT,
    )


def openai_call(settings: Settings, path: str, body: Any) -> Call:
    """Ask for a stream of the OpenAI API."""
    value = body.to_dict() if hasattr(body, "to_dict") else dict(body)
    return call_of(
        settings,
        "POST",
        path,
        body={**value, "stream": True},
        accept="text/event-stream",
        timeout=httpx.Timeout(10.0, read=120.0),
    )


def response_call(settings: Settings, response_id: str, starting_after: int | None) -> Call:
    """Ask for the stream of a stored response."""
    return call_of(
        settings,
        "GET",
        path_of("/v1/responses/{}", response_id),
        query={"stream": True, "starting_after": starting_after},
        accept="text/event-stream",
        timeout=httpx.Timeout(10.0, read=120.0),
    )


def websocket_of(call: Call) -> WebSocketAddress:
    """Return the address of a WebSocket."""
    kept = {name: value for name, value in call.headers.items() if name in ("Authorization", "User-Agent")}
    return WebSocketAddress("ws" + call.url.removeprefix("http"), kept)


def artifact_query(
    kind: str, tags: Sequence[str], parent: str | None, metadata: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Describe content that is no JSON document."""
    return {
        "kind": kind,
        "tags": " ".join(tags) or None,
        "parent": parent,
        "metadata": None if metadata is None else query_value(metadata),
    }


def is_document(described: m.ArtifactSummary) -> bool:
    """Report whether an artifact is a JSON document."""
    return described.media_type.split(";")[0].strip() == "application/json"


@contextmanager
def replacing(to: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file beside a path, which replaces what is there when it is complete."""
    path = os.path.realpath(to)
    if os.path.exists(path) and not os.path.isfile(path):  # such as a pipe
        with open(path, "wb") as file:
            yield file
        return
    part = f"{path}.{secrets.token_hex(4)}.part"
    try:
        with open(part, "xb") as file:
            yield file
        os.replace(part, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(part)
        raise
