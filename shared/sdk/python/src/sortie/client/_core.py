"""Requests, retries and errors, for both clients."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx

from .. import __version__
from .._codec import encode
from .._time import format_time
from ..errors import (
    APIError,
    Conflict,
    ConnectionFailed,
    Forbidden,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    RateLimited,
    ServerError,
    Unauthenticated,
)

DEFAULT_URL = "http://127.0.0.1:8080"
_CONNECT = 10.0
#: A stream sends a message in each 15 seconds.
STREAM_TIMEOUT = httpx.Timeout(_CONNECT, read=45.0)
_FIRST_DELAY, _MOST_DELAY, _MOST_RETRY_AFTER = 0.25, 8.0, 60.0
_ERRORS: dict[int, type[APIError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: NotFound,
    412: PreconditionFailed,
    428: PreconditionFailed,
    429: RateLimited,
}


@dataclass(frozen=True)
class Settings:
    """Where and how a client sends its requests."""

    url: str
    token: str | None = field(repr=False)
    timeout: float
    retries: int

    @classmethod
    def of(cls, url: str | None, token: str | None, timeout: float, retries: int) -> Settings:
        """Use the arguments, or else SORTIE_URL and SORTIE_TOKEN."""
        url = (url or os.environ.get("SORTIE_URL") or DEFAULT_URL).rstrip("/")
        parts = urlsplit(url)
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError("url: want no user, password, query and fragment")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url: {url!r}, want an http or https URL")
        if token is None:
            token = os.environ.get("SORTIE_TOKEN") or None
        if token is not None and (not token.isascii() or not token.isprintable() or " " in token):
            raise ValueError("token: want printable ASCII characters without spaces")
        if retries < 0 or timeout <= 0:
            raise ValueError("want retries from 0 and a timeout above 0")
        return cls(url, token, timeout, retries)


@dataclass(frozen=True)
class Call:
    """One request, which may be sent again."""

    method: str
    url: str
    headers: dict[str, str] = field(repr=False)
    content: bytes | None = None
    timeout: httpx.Timeout | float = 30.0
    #: The same request twice has the effect of one.
    repeatable: bool = False
    #: These statuses from 300 are no errors.
    passes: frozenset[int] = frozenset()
    #: The URL is a secret, and gets nothing that the client of httpx adds.
    presigned: bool = False


def call_of(
    settings: Settings,
    method: str,
    path: str,
    *,
    query: Mapping[str, Any] | None = None,
    headers: Mapping[str, Any] | None = None,
    body: Any = None,
    content: bytes | None = None,
    media_type: str = "application/json",
    accept: str = "application/json",
    keyed: bool = False,
    timeout: float | httpx.Timeout | None = None,
    passes: frozenset[int] = frozenset(),
) -> Call:
    """Build a request."""
    named = {"Accept": accept, "User-Agent": f"sortie-python/{__version__}"}
    named.update({name: str(value) for name, value in (headers or {}).items() if value is not None})
    if settings.token:
        named["Authorization"] = "Bearer " + settings.token
    if keyed:
        named.setdefault("Idempotency-Key", str(uuid.uuid4()))
    if body is not None:
        content = json.dumps(encode(body), allow_nan=False).encode()
    if content is not None:
        named["Content-Type"] = media_type
    url = settings.url + path
    pairs = [(name, query_value(value)) for name, value in (query or {}).items() if value is not None]
    if pairs:
        url += "?" + urlencode(pairs, quote_via=quote, safe=",*:")
    if timeout is None or isinstance(timeout, (int, float)):
        seconds = settings.timeout if timeout is None else timeout
        timeout = httpx.Timeout(seconds, connect=min(_CONNECT, seconds))
    idempotent = method in ("GET", "HEAD") or (method in ("PUT", "DELETE") and "If-Match" not in named)
    return Call(method, url, named, content, timeout, idempotent or "Idempotency-Key" in named, passes)


def query_value(value: Any) -> str:
    """Return a parameter of the query."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, Mapping):
        return json.dumps(encode(value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(str(item) for item in value)
    return str(value)


def path_of(template: str, *parts: str | int) -> str:
    """Fill a path. An empty or relative part would name another route."""
    for part in parts:
        if str(part) in ("", ".", ".."):
            raise ValueError(f"{part!r} is not an id")
    return template.format(*(quote(str(part), safe=":~") for part in parts))


def error_of(response: httpx.Response) -> APIError:
    """Return the error of an answer whose body was read."""
    problem: Any = None
    try:
        problem = json.loads(response.content)
    except ValueError:
        pass
    problem = problem if isinstance(problem, dict) else {}
    inner = problem.get("error")
    shown = inner if isinstance(inner, dict) else problem  # routes of the OpenAI API
    code = str(shown.get("code") or "")
    message = str(shown.get("detail") or shown.get("message") or shown.get("title") or response.reason_phrase)
    status = response.status_code
    kind = _ERRORS.get(status) or (ServerError if status >= 500 else InvalidRequest)
    if status < 400:
        kind, message = APIError, "the server redirects: check the url"
    error = kind(
        status,
        code,
        message,
        correlation_id=response.headers.get("X-Correlation-Id", ""),
        problem=problem,
    )
    if isinstance(error, (RateLimited, ServerError)):
        error.retry_after = retry_after(response)
    return error


def retry_after(response: httpx.Response) -> float | None:
    """Return the seconds to wait that an answer names."""
    for name, unit in (("X-Backoff-Ms", 1000), ("Retry-After", 1)):
        value = response.headers.get(name, "")
        if value.isascii() and value.isdigit():
            return float(value) / unit
    return None


def delay_before(attempt: int, after: float | None) -> float:
    """Return the delay before a retry, from 0: full jitter, and not less than after."""
    bound: float = min(_MOST_DELAY, _FIRST_DELAY * 2**attempt)
    return max(random.random() * bound, after or 0.0)


def should_retry(call: Call, failure: httpx.Response | httpx.TransportError) -> bool:
    """Report whether sending the request again may help and cannot do harm."""
    if isinstance(failure, httpx.Response):
        status = failure.status_code
        if failure.headers.get("X-Should-Retry") == "false":
            return False
        if (retry_after(failure) or 0) > _MOST_RETRY_AFTER:
            return False
        return status == 429 or (call.repeatable and status in (408, 425, 500, 502, 503, 504))
    if isinstance(failure, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)):
        return True  # nothing was sent
    if isinstance(failure, (httpx.UnsupportedProtocol, httpx.LocalProtocolError)):
        return False
    return call.repeatable


def connection_error(call: Call, error: httpx.TransportError) -> ConnectionFailed:
    """Return the error of a request without an answer. The query may be a secret."""
    place = call.url.split("?", 1)[0]
    return ConnectionFailed(f"{call.method} {place}: {error or type(error).__name__}")


class SecretURL(httpx.URL):
    """A presigned URL: httpx logs it without its query."""

    def __str__(self) -> str:
        return super().__str__().partition("?")[0]

    def __repr__(self) -> str:
        return f"SecretURL({str(self)!r})"


def request_of(http: httpx.Client | httpx.AsyncClient, call: Call) -> httpx.Request:
    """Build the request of a stream. That of a presigned URL has the headers of the call alone."""
    if not call.presigned:
        return http.build_request(
            call.method, call.url, headers=call.headers, content=call.content, timeout=call.timeout
        )
    timeout = httpx.Timeout(call.timeout).as_dict()
    request = httpx.Request(call.method, call.url, headers=call.headers, extensions={"timeout": timeout})
    request.url = SecretURL(request.url)
    return request


def auth_of(call: Call) -> dict[str, Any]:
    """Return the option of send that keeps the credentials of the client from a presigned URL."""
    return {"auth": None} if call.presigned else {}


class Transport:
    """Sends requests."""

    def __init__(self, settings: Settings, http: httpx.Client | None) -> None:
        self.settings = settings
        self._owned = http is None
        self.http = http or httpx.Client()

    def close(self) -> None:
        """Close the connections, unless the caller has made the client of httpx."""
        if self._owned:
            self.http.close()

    def request(self, call: Call) -> httpx.Response:
        """Return the answer, after retries. Raises APIError and ConnectionFailed."""
        attempt = 0
        while True:
            after = None
            try:
                response = self.http.request(
                    call.method,
                    call.url,
                    headers=call.headers,
                    content=call.content,
                    timeout=call.timeout,
                    follow_redirects=False,
                )
            except httpx.TransportError as error:
                if attempt >= self.settings.retries or not should_retry(call, error):
                    raise connection_error(call, error) from error
            else:
                if response.status_code < 300 or response.status_code in call.passes:
                    return response
                if attempt >= self.settings.retries or not should_retry(call, response):
                    raise error_of(response)
                after = retry_after(response)
            time.sleep(delay_before(attempt, after))
            attempt += 1

    @contextmanager
    def stream(self, call: Call) -> Iterator[httpx.Response]:
        """Open an answer whose body is read by the caller. There are no retries."""
        try:
            response = self.http.send(
                request_of(self.http, call), stream=True, follow_redirects=False, **auth_of(call)
            )
            try:
                if response.status_code >= 300 and response.status_code not in call.passes:
                    response.read()
                    raise error_of(response)
                yield response
            finally:
                response.close()
        except httpx.TransportError as error:
            raise connection_error(call, error) from error


class AsyncTransport:
    """Sends requests of async code."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient | None) -> None:
        self.settings = settings
        self._owned = http is None
        self.http = http or httpx.AsyncClient()

    async def aclose(self) -> None:
        """Close the connections, unless the caller has made the client of httpx."""
        if self._owned:
            await self.http.aclose()

    async def request(self, call: Call) -> httpx.Response:
        """Return the answer, after retries. Raises APIError and ConnectionFailed."""
        attempt = 0
        while True:
            after = None
            try:
                response = await self.http.request(
                    call.method,
                    call.url,
                    headers=call.headers,
                    content=call.content,
                    timeout=call.timeout,
                    follow_redirects=False,
                )
            except httpx.TransportError as error:
                if attempt >= self.settings.retries or not should_retry(call, error):
                    raise connection_error(call, error) from error
            else:
                if response.status_code < 300 or response.status_code in call.passes:
                    return response
                if attempt >= self.settings.retries or not should_retry(call, response):
                    raise error_of(response)
                after = retry_after(response)
            await asyncio.sleep(delay_before(attempt, after))
            attempt += 1

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[httpx.Response]:
        """Open an answer whose body is read by the caller. There are no retries."""
        try:
            response = await self.http.send(
                request_of(self.http, call), stream=True, follow_redirects=False, **auth_of(call)
            )
            try:
                if response.status_code >= 300 and response.status_code not in call.passes:
                    await response.aread()
                    raise error_of(response)
                yield response
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            raise connection_error(call, error) from error
