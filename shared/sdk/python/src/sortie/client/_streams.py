"""Streams that resume: events of the tenant, of an inference task, and followed logs."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from .. import models as m
from ..errors import APIError, ConnectionFailed, RateLimited, ServerError, SortieError, StreamGap
from ..sse import Decoder, Message
from ._core import AsyncTransport, Call, Transport

logger = logging.getLogger("sortie")

_MOST_DELAY = 30.0
_DEFAULT_RETRY = 1.0
_MOST_LINE = 1 << 20


@dataclass(frozen=True)
class StreamEvent:
    """An event of a stream of an inference task or of the OpenAI API."""

    id: str
    event: str
    data: dict[str, Any]


class Resumption:
    """Decides when a broken stream is opened again, and for how long that is tried."""

    def __init__(self, cursor: str | None, retries: int, most_outage: float) -> None:
        self.cursor = cursor
        self.decoder = Decoder()
        self._retries = retries
        self._most_outage = most_outage
        self._failures = 0
        self._opened = False
        self._lost_at: float | None = None

    def headers(self) -> dict[str, str]:
        """Return the header of the place to continue from, and begin a decoder."""
        self.decoder = Decoder()
        return {"Last-Event-ID": self.cursor} if self.cursor else {}

    def opened(self) -> None:
        """Record that the stream was answered."""
        self._opened = True

    def feed(self, content: bytes) -> list[Message]:
        """Return the events of a piece. A stream that sends works again."""
        self._failures, self._lost_at = 0, None
        return self.decoder.feed(content)

    def drained(self) -> None:
        """Move the cursor behind what was delivered."""
        if self.decoder.last_event_id:
            self.cursor = self.decoder.last_event_id

    def ended(self) -> float:
        """Return the delay after the server ended the stream."""
        if self.decoder.retry is not None:
            return min(self.decoder.retry / 1000, self._most_outage)
        return self._delay(None)

    def failed(self, error: APIError | ConnectionFailed) -> float:
        """Return the delay after a failure, or raise it if no retry may help."""
        after = None
        if isinstance(error, (RateLimited, ServerError)):
            after = error.retry_after
        elif isinstance(error, APIError):
            raise error
        now = time.monotonic()
        self._lost_at = now if self._lost_at is None else self._lost_at
        if not self._opened and self._failures >= self._retries:
            raise error
        if now - self._lost_at + (after or 0) > self._most_outage:
            raise error
        delay = self._delay(after)
        logger.info("the stream broke (%s), continuing in %.1f s", error, delay)
        return delay

    def _delay(self, after: float | None) -> float:
        bound: float = min(_MOST_DELAY, _DEFAULT_RETRY * 2 ** min(self._failures, 10))
        self._failures += 1
        return max(bound * (0.5 + random.random() / 2), after or 0.0)


def event_of(message: Message, skip_gaps: bool) -> m.Event | None:
    """Return the event of a message; None if it is a gap to skip."""
    try:
        value = json.loads(message.data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        logger.warning("an event of the stream is not a JSON object: %s", message.id)
        return None
    if value.get("eventType") == "stream.gap":
        gap = m.StreamGap.from_dict(value)
        if not skip_gaps:
            raise StreamGap(gap.oldest, gap.newest)
        logger.warning("events before %s were deleted", gap.oldest)
        return None
    return m.Event.from_dict(value)


class EventStream:
    """The events behind a cursor, as they come. It continues after a break.

    Store cursor together with what was done with an event: then no event is lost or
    handled twice, also after a crash of the client.
    """

    def __init__(
        self,
        transport: Transport,
        call: Callable[[dict[str, str]], Call],
        resumption: Resumption,
        skip_gaps: bool,
    ) -> None:
        self._resumption = resumption
        self._events = self._run(transport, call, skip_gaps)

    @property
    def cursor(self) -> str | None:
        """Where a stream continues behind the last event that was returned."""
        return self._resumption.cursor

    def __iter__(self) -> Iterator[m.Event]:
        return self

    def __next__(self) -> m.Event:
        event: m.Event = next(self._events)
        return event

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._events.close()

    def _run(self, transport: Transport, call: Callable[[dict[str, str]], Call], skip_gaps: bool) -> Any:
        state = self._resumption
        source = messages(transport, call, state, reconnect=True)
        try:
            for message in source:
                event = event_of(message, skip_gaps)
                state.cursor = message.id or state.cursor
                if event is not None:
                    yield event
        finally:
            source.close()


class AsyncEventStream:
    """EventStream for async code."""

    def __init__(
        self,
        transport: AsyncTransport,
        call: Callable[[dict[str, str]], Call],
        resumption: Resumption,
        skip_gaps: bool,
    ) -> None:
        self._resumption = resumption
        self._events = self._run(transport, call, skip_gaps)

    @property
    def cursor(self) -> str | None:
        """Where a stream continues behind the last event that was returned."""
        return self._resumption.cursor

    def __aiter__(self) -> AsyncIterator[m.Event]:
        return self

    async def __anext__(self) -> m.Event:
        event: m.Event = await self._events.__anext__()
        return event

    async def __aenter__(self) -> AsyncEventStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connection."""
        await self._events.aclose()

    async def _run(
        self, transport: AsyncTransport, call: Callable[[dict[str, str]], Call], skip_gaps: bool
    ) -> Any:
        state = self._resumption
        source = async_messages(transport, call, state, reconnect=True)
        try:
            async for message in source:
                event = event_of(message, skip_gaps)
                state.cursor = message.id or state.cursor
                if event is not None:
                    yield event
        finally:
            await source.aclose()


def refuse_page(response: httpx.Response) -> None:
    """Raise an error for a page, which another server sends. It is no break of the stream."""
    if response.headers.get("Content-Type", "").lower().startswith("text/html"):
        raise SortieError("the answer is a page, not a stream: check the url")


def _ends(message: Message) -> bool:
    return message.event in ("end", "error")


def messages(
    transport: Transport, call: Callable[[dict[str, str]], Call], state: Resumption, *, reconnect: bool
) -> Any:
    """Return the messages of a stream; without reconnect until an end, an error or a 204."""
    while True:
        try:
            with transport.stream(call(state.headers())) as response:
                state.opened()
                refuse_page(response)
                if response.status_code == 204:
                    return
                for content in response.iter_bytes():
                    for message in state.feed(content):
                        yield message
                        if not reconnect and _ends(message):
                            return
                    state.drained()
            delay = state.ended()
        except (APIError, ConnectionFailed) as error:
            delay = state.failed(error)
        time.sleep(delay)


async def async_messages(
    transport: AsyncTransport, call: Callable[[dict[str, str]], Call], state: Resumption, *, reconnect: bool
) -> Any:
    """Do the same as messages for async code."""
    while True:
        try:
            async with transport.stream(call(state.headers())) as response:
                state.opened()
                refuse_page(response)
                if response.status_code == 204:
                    return
                async for content in response.aiter_bytes():
                    for message in state.feed(content):
                        yield message
                        if not reconnect and _ends(message):
                            return
                    state.drained()
            delay = state.ended()
        except (APIError, ConnectionFailed) as error:
            delay = state.failed(error)
        await asyncio.sleep(delay)


def stream_event(message: Message) -> StreamEvent | None:
    """Return the event of a message; None behind the last one of the OpenAI API."""
    if message.data == "[DONE]":
        return None
    value = json.loads(message.data)
    return StreamEvent(message.id, message.event, value if isinstance(value, dict) else {"value": value})


def once(transport: Transport, call: Call) -> Iterator[StreamEvent]:
    """Return the events of a stream that cannot be resumed."""
    decoder = Decoder()
    with transport.stream(call) as response:
        refuse_page(response)
        for content in response.iter_bytes():
            for message in decoder.feed(content):
                event = stream_event(message)
                if event is None:
                    return
                yield event


async def async_once(transport: AsyncTransport, call: Call) -> AsyncIterator[StreamEvent]:
    """Do the same as once for async code."""
    decoder = Decoder()
    async with transport.stream(call) as response:
        refuse_page(response)
        async for content in response.aiter_bytes():
            for message in decoder.feed(content):
                event = stream_event(message)
                if event is None:
                    return
                yield event


class LogPlace:
    """The place in a followed log, and its lines."""

    def __init__(self, attempt: int | None, offset: int | None) -> None:
        self.attempt = attempt
        self.offset = offset
        self.ended = False
        self._rest = b""

    def query(self) -> dict[str, Any]:
        """Return the place to continue from."""
        self._rest = b""
        return {"attempt": self.attempt, "offset": self.offset}

    def feed(self, content: bytes) -> list[m.LogLine]:
        """Return the lines that the bytes complete."""
        *lines, self._rest = (self._rest + content).split(b"\n")
        if len(self._rest) > _MOST_LINE:
            raise SortieError("a line of the log is too large")
        found = []
        for line in lines:
            if not line.strip():
                continue
            parsed = m.LogLine.from_dict(json.loads(line))
            found.append(parsed)
        return found

    def passed(self, line: m.LogLine) -> None:
        """Move behind a line."""
        self.attempt = line.attempt or self.attempt
        self.offset = line.next
        self.ended = self.ended or line.ended is True


def follow(
    transport: Transport, call: Callable[[dict[str, Any]], Call], place: LogPlace, state: Resumption
) -> Iterator[m.LogLine]:
    """Return the lines of a followed log until the run ends."""
    while not place.ended:
        try:
            with transport.stream(call(place.query())) as response:
                state.opened()
                refuse_page(response)
                for content in response.iter_bytes():
                    state.feed(b"")
                    for line in place.feed(content):
                        place.passed(line)
                        yield line
            if place.ended:
                return
            delay = state.ended()
        except (APIError, ConnectionFailed) as error:
            delay = state.failed(error)
        time.sleep(delay)


async def async_follow(
    transport: AsyncTransport, call: Callable[[dict[str, Any]], Call], place: LogPlace, state: Resumption
) -> AsyncIterator[m.LogLine]:
    """Do the same as follow for async code."""
    while not place.ended:
        try:
            async with transport.stream(call(place.query())) as response:
                state.opened()
                refuse_page(response)
                async for content in response.aiter_bytes():
                    state.feed(b"")
                    for line in place.feed(content):
                        place.passed(line)
                        yield line
            if place.ended:
                return
            delay = state.ended()
        except (APIError, ConnectionFailed) as error:
            delay = state.failed(error)
        await asyncio.sleep(delay)
