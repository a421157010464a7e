"""The resources of the client of async code."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import IO, Any

import httpx

from .. import models as m
from .._codec import encode
from ..errors import ConnectionFailed
from . import _calls as calls
from ._core import AsyncTransport, Call, call_of, path_of
from ._requests import (
    MOST_OUTAGE,
    TERMINAL,
    Progress,
    Stored,
    WebSocketAddress,
    artifact_query,
    checked,
    events_call,
    is_document,
    log_call,
    openai_call,
    output_call,
    poll_seconds,
    redirected,
    replacing,
    response_call,
    status_call,
    stored_of,
    task_stream_call,
    websocket_of,
)
from ._streams import (
    AsyncEventStream,
    LogPlace,
    Resumption,
    StreamEvent,
    async_follow,
    async_messages,
    async_once,
    stream_event,
)


class AsyncRuns(calls.AsyncRunsCalls):
    """Run programs, and list, inspect, cancel and retry runs."""

    async def wait(self, run_id: str, *, timeout: float | None = None, check: bool = False) -> m.Task:
        """Wait until a run has ended and return it.

        Raises TimeoutError after timeout seconds, and RunFailed if check is true and the
        run did not succeed.
        """
        until = None if timeout is None else time.monotonic() + timeout
        run = await self.get(run_id)
        while run.state not in TERMINAL:
            wait = poll_seconds(until)
            call = status_call(self._transport.settings, run.task_id, wait)
            await self._transport.request(call)
            run = await self.get(run_id)
        return checked(run, check)


class AsyncTasks(calls.AsyncTasksCalls):
    """List, inspect, cancel and retry tasks; read their logs and outputs."""

    async def output(self, task_id: str) -> bytes:
        """Return the whole output of a task. download stores a large one in a file."""
        async with _body(self._transport, output_call(self._transport.settings, task_id)) as response:
            return await response.aread()

    async def download(self, task_id: str, to: str | os.PathLike[str] | IO[bytes]) -> int:
        """Store the output of a task in a file and return its size. A break is resumed.

        A path gets the file when it is complete. Raises OutputChanged if the output was
        replaced during the download.
        """
        if isinstance(to, (str, os.PathLike)):
            with replacing(to) as file:
                return await self._download(task_id, file)
        return await self._download(task_id, to)

    async def _download(self, task_id: str, file: IO[bytes]) -> int:
        progress = Progress()
        settings = self._transport.settings
        while True:
            call = output_call(settings, task_id, progress.headers())
            try:
                async with _body(self._transport, call) as response:
                    progress.begin(response)
                    async for content in response.aiter_bytes():
                        file.write(content)
                        progress.add(len(content))
                    return progress.end()
            except ConnectionFailed as error:
                await asyncio.sleep(progress.failed(error, settings.retries))

    async def describe_output(self, task_id: str) -> Stored:
        """Return the size, the type and the name of an output."""
        settings = self._transport.settings
        response = await self._transport.request(
            call_of(settings, "HEAD", path_of("/download/{}", task_id), accept="*/*")
        )
        return stored_of(response)

    async def logs(self, task_id: str, *, attempt: int | None = None, stream: str | None = None) -> str:
        """Return the output of the worker, by default of the latest attempt."""
        query = {"attempt": attempt, "stream": stream}
        return await self._text("GET", path_of("/v1/tasks/{}/logs", task_id), query=query)

    def follow_logs(
        self,
        task_id: str,
        *,
        attempt: int | None = None,
        offset: int | None = None,
        stream: str | None = None,
    ) -> AsyncIterator[m.LogLine]:
        """Return the output of the worker as it grows, until the run ends.

        log_bytes returns the bytes of a line. The attempt and next of a line are the place
        to continue from.
        """
        settings = self._transport.settings
        return async_follow(
            self._transport,
            lambda place: log_call(settings, task_id, {**place, "stream": stream}),
            LogPlace(attempt, offset),
            Resumption(None, settings.retries, MOST_OUTAGE),
        )


class AsyncEvents(calls.AsyncEventsCalls):
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
        parent_run_id: str | None = None,
        label: str | None = None,
        skip_gaps: bool = False,
        most_outage: float = MOST_OUTAGE,
    ) -> AsyncEventStream:
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
            "parentRunId": parent_run_id,
            "label": label,
        }
        settings = self._transport.settings
        return AsyncEventStream(
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
        parent_run_id: str | None = None,
        label: str | None = None,
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
            "parentRunId": parent_run_id,
            "label": label,
        }
        return websocket_of(call_of(self._transport.settings, "GET", "/v1/events/ws", query=query))


class AsyncInference(calls.AsyncInferenceCalls):
    """Sessions, budgets and inference tasks."""

    async def stream(self, task_id: str, *, after: str | None = None) -> AsyncIterator[StreamEvent]:
        """Return the events of an inference task, until ``end`` or ``error``. A break is resumed."""
        settings = self._transport.settings
        source = async_messages(
            self._transport,
            lambda headers: task_stream_call(settings, task_id, headers),
            Resumption(after, settings.retries, MOST_OUTAGE),
            reconnect=False,
        )
        async for message in source:
            event = stream_event(message)
            if event is not None:
                yield event


class AsyncOpenAI(calls.AsyncOpenaiCalls):
    """A part of the OpenAI API over inference tasks."""

    def stream_chat(self, body: m.ChatRequest | Mapping[str, Any]) -> AsyncIterator[StreamEvent]:
        """Return the chunks of a chat completion as they come."""
        return async_once(
            self._transport, openai_call(self._transport.settings, "/v1/chat/completions", body)
        )

    def stream_completion(self, body: m.CompletionRequest | Mapping[str, Any]) -> AsyncIterator[StreamEvent]:
        """Return the chunks of a completion as they come."""
        return async_once(self._transport, openai_call(self._transport.settings, "/v1/completions", body))

    def stream_response(self, body: m.ResponseRequest | Mapping[str, Any]) -> AsyncIterator[StreamEvent]:
        """Return the events of a response as they come."""
        return async_once(self._transport, openai_call(self._transport.settings, "/v1/responses", body))

    def stream_stored_response(
        self, response_id: str, *, starting_after: int | None = None
    ) -> AsyncIterator[StreamEvent]:
        """Return the events of a stored response, from the beginning or behind a number."""
        return async_once(
            self._transport, response_call(self._transport.settings, response_id, starting_after)
        )


class AsyncJobs(calls.AsyncJobsCalls):
    """Stored definitions of programs, with schedules."""

    async def send_events(
        self, job_id: str, events: Sequence[m.CloudEvent | Mapping[str, Any]], *, timeout: float | None = None
    ) -> m.EventReceipts:
        """Start a run for each CloudEvent, at most 100. A repeated event has its run."""
        return await self._json(
            "POST",
            path_of("/v1/jobs/{}/events", job_id),
            m.EventReceipts,
            content=json.dumps(encode(events), allow_nan=False).encode(),
            media_type="application/cloudevents-batch+json",
            timeout=timeout,
        )


class AsyncArtifacts(calls.AsyncArtifactsCalls):
    """Content-addressed documents."""

    async def create(
        self, body: m.ArtifactRequest | Mapping[str, Any], *, timeout: float | None = None
    ) -> m.ArtifactCreated:
        """Store a JSON document."""
        return await self._json("POST", "/v1/artifacts", m.ArtifactCreated, body=body, timeout=timeout)

    async def create_bytes(
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
        return await self._json(
            "POST",
            "/v1/artifacts",
            m.ArtifactCreated,
            content=content,
            media_type=media_type,
            query=artifact_query(kind, tags, parent, metadata),
            timeout=timeout,
        )

    async def get(self, artifact_id: str, *, timeout: float | None = None) -> m.Artifact | m.ArtifactSummary:
        """Return a document, or the description of other content; see content."""
        path = path_of("/v1/artifacts/{}", artifact_id)
        described = await self._json(
            "GET", path, m.ArtifactSummary, query={"content": False}, timeout=timeout
        )
        if not is_document(described):
            return described
        return await self._json("GET", path, m.Artifact, timeout=timeout)

    async def content(self, artifact_id: str, *, timeout: float | None = None) -> bytes:
        """Return what was stored: the bytes, or the JSON document with its description."""
        path = path_of("/v1/artifacts/{}", artifact_id)
        response = await self._transport.request(self._call("GET", path, accept="*/*", timeout=timeout))
        return response.content


@asynccontextmanager
async def _body(transport: AsyncTransport, call: Call) -> AsyncIterator[httpx.Response]:
    """Open a body. A redirect is followed without the token."""
    async with transport.stream(call) as response:
        if response.status_code != 302:
            yield response
            return
        following = redirected(call, response)
    async with transport.stream(following) as response:
        yield response
