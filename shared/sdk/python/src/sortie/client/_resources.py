"""The resources of the client: the plain calls, and what needs more than one request."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple
from urllib.parse import urljoin

import httpx

from .. import models as m
from ..errors import ConnectionFailed, RunFailed
from . import _calls as calls
from ._core import (
    STREAM_TIMEOUT,
    Call,
    Settings,
    Transport,
    call_of,
    delay_before,
    path_of,
    query_value,
)
from ._streams import EventStream, LogPlace, Resumption, StreamEvent, follow, messages, once, stream_event

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


class Runs(calls.RunsCalls):
    """Run programs, and list, inspect, cancel and retry runs."""

    def wait(self, run_id: str, *, timeout: float | None = None, check: bool = False) -> m.Task:
        """Wait until a run has ended and return it.

        Raises TimeoutError after timeout seconds, and RunFailed if check is true and the
        run did not succeed.
        """
        until = None if timeout is None else time.monotonic() + timeout
        run = self.get(run_id)
        while run.state not in TERMINAL:
            wait = poll_seconds(until)
            call = status_call(self._transport.settings, run.task_id, wait)
            self._transport.request(call)
            run = self.get(run_id)
        return checked(run, check)


class Tasks(calls.TasksCalls):
    """List, inspect, cancel and retry tasks; read their logs and outputs."""

    def output(self, task_id: str) -> bytes:
        """Return the whole output of a task. download stores a large one in a file."""
        with _body(self._transport, output_call(self._transport.settings, task_id)) as response:
            return response.read()

    def download(self, task_id: str, to: str | os.PathLike[str] | IO[bytes]) -> int:
        """Store the output of a task in a file and return its size. A break is resumed."""
        if isinstance(to, (str, os.PathLike)):
            with open(to, "wb") as file:
                return self._download(task_id, file)
        return self._download(task_id, to)

    def _download(self, task_id: str, file: IO[bytes]) -> int:
        progress = Progress()
        settings = self._transport.settings
        while True:
            call = output_call(settings, task_id, progress.headers())
            try:
                with _body(self._transport, call) as response:
                    progress.begin(response)
                    for content in response.iter_bytes():
                        file.write(content)
                        progress.add(len(content))
                    return progress.end()
            except ConnectionFailed as error:
                time.sleep(progress.failed(error, settings.retries))

    def describe_output(self, task_id: str) -> Stored:
        """Return the size, the type and the name of an output."""
        settings = self._transport.settings
        response = self._transport.request(
            call_of(settings, "HEAD", path_of("/download/{}", task_id), accept="*/*")
        )
        return stored_of(response)

    def logs(self, task_id: str, *, attempt: int | None = None, stream: str | None = None) -> str:
        """Return the output of the worker, by default of the latest attempt."""
        query = {"attempt": attempt, "stream": stream}
        return self._text("GET", path_of("/v1/tasks/{}/logs", task_id), query=query)

    def follow_logs(
        self,
        task_id: str,
        *,
        attempt: int | None = None,
        offset: int | None = None,
        stream: str | None = None,
    ) -> Iterator[m.LogLine]:
        """Return the output of the worker as it grows, until the run ends.

        log_bytes returns the bytes of a line. The attempt and next of a line are the place
        to continue from.
        """
        settings = self._transport.settings
        return follow(
            self._transport,
            lambda place: log_call(settings, task_id, {**place, "stream": stream}),
            LogPlace(attempt, offset),
            Resumption(None, settings.retries, MOST_OUTAGE),
        )


class Events(calls.EventsCalls):
    """Read and follow the events of the tenant."""

    def stream(
        self,
        *,
        after: str | None = None,
        types: Sequence[str] | str | None = None,
        project_id: str | None = None,
        job_id: str | None = None,
        task_id: str | None = None,
        batch_id: str | None = None,
        skip_gaps: bool = False,
        most_outage: float = MOST_OUTAGE,
    ) -> EventStream:
        """Follow the events behind a cursor: ``earliest``, ``latest`` (default) or one of a stream.

        The stream continues after a break, each event once and in order. It gives up if
        the server does not answer for most_outage seconds. Raises StreamGap if the events
        behind the cursor were deleted, unless skip_gaps is true.
        """
        query = {
            "types": types,
            "projectId": project_id,
            "jobId": job_id,
            "taskId": task_id,
            "batchId": batch_id,
        }
        settings = self._transport.settings
        return EventStream(
            self._transport,
            lambda headers: events_call(settings, query, after, headers),
            Resumption(None, settings.retries, most_outage),
            skip_gaps,
        )

    def websocket(
        self,
        *,
        after: str | None = None,
        types: Sequence[str] | str | None = None,
        project_id: str | None = None,
        job_id: str | None = None,
        task_id: str | None = None,
        batch_id: str | None = None,
    ) -> WebSocketAddress:
        """Return the address of the events for a library of WebSockets.

        Each text frame is a models.StreamMessage.
        """
        query = {
            "after": after,
            "types": types,
            "projectId": project_id,
            "jobId": job_id,
            "taskId": task_id,
            "batchId": batch_id,
        }
        return websocket_of(call_of(self._transport.settings, "GET", "/v1/events/ws", query=query))


class Inference(calls.InferenceCalls):
    """Sessions, budgets and inference tasks."""

    def stream(self, task_id: str, *, after: str | None = None) -> Iterator[StreamEvent]:
        """Return the events of an inference task, until ``end`` or ``error``. A break is resumed."""
        settings = self._transport.settings
        source = messages(
            self._transport,
            lambda headers: task_stream_call(settings, task_id, headers),
            Resumption(after, settings.retries, MOST_OUTAGE),
            reconnect=False,
        )
        for message in source:
            event = stream_event(message)
            if event is not None:
                yield event


class OpenAI(calls.OpenaiCalls):
    """A part of the OpenAI API over inference tasks."""

    def stream_chat(self, body: m.ChatRequest | Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Return the chunks of a chat completion as they come."""
        return once(self._transport, openai_call(self._transport.settings, "/v1/chat/completions", body))

    def stream_completion(self, body: m.CompletionRequest | Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Return the chunks of a completion as they come."""
        return once(self._transport, openai_call(self._transport.settings, "/v1/completions", body))

    def stream_response(self, body: m.ResponseRequest | Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Return the events of a response as they come."""
        return once(self._transport, openai_call(self._transport.settings, "/v1/responses", body))

    def stream_stored_response(
        self, response_id: str, *, starting_after: int | None = None
    ) -> Iterator[StreamEvent]:
        """Return the events of a stored response, from the beginning or behind a number."""
        return once(self._transport, response_call(self._transport.settings, response_id, starting_after))


class Artifacts(calls.ArtifactsCalls):
    """Content-addressed documents."""

    def create(
        self, body: m.ArtifactRequest | Mapping[str, Any], *, timeout: float | None = None
    ) -> m.ArtifactCreated:
        """Store a JSON document."""
        return self._json("POST", "/v1/artifacts", m.ArtifactCreated, body=body, timeout=timeout)

    def create_bytes(
        self,
        content: bytes,
        *,
        kind: str,
        media_type: str = "application/octet-stream",
        tags: Sequence[str] = (),
        parent: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> m.ArtifactCreated:
        """Store bytes under their SHA-256."""
        return self._json(
            "POST",
            "/v1/artifacts",
            m.ArtifactCreated,
            content=content,
            media_type=media_type,
            query=artifact_query(kind, tags, parent, metadata),
            timeout=timeout,
        )

    def get(self, artifact_id: str, *, timeout: float | None = None) -> m.Artifact | m.ArtifactSummary:
        """Return a document, or the description of other content; see content."""
        path = path_of("/v1/artifacts/{}", artifact_id)
        described = self._json("GET", path, m.ArtifactSummary, query={"content": False}, timeout=timeout)
        if not is_document(described):
            return described
        return self._json("GET", path, m.Artifact, timeout=timeout)

    def content(self, artifact_id: str, *, timeout: float | None = None) -> bytes:
        """Return what was stored: the bytes, or the JSON document with its description."""
        path = path_of("/v1/artifacts/{}", artifact_id)
        return self._transport.request(self._call("GET", path, accept="*/*", timeout=timeout)).content


@contextmanager
def _body(transport: Transport, call: Call) -> Iterator[httpx.Response]:
    """Open a body. A redirect is followed without the token."""
    with transport.stream(call) as response:
        if response.status_code != 302:
            yield response
            return
        following = redirected(call, response)
    with transport.stream(following) as response:
        yield response


# Shared with the resources of async code.


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
            raise RuntimeError("the output changed during the download")
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
