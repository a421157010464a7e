"""Calls with the standard library: bounded, without redirects, without secrets in errors."""

from __future__ import annotations

import email.utils
import http.client
import json
import random
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

_MOST_ANSWER = 64 << 10
_MOST_RETRY_AFTER = 300.0
FIRST_DELAY = 0.5
MOST_DELAY = 30.0


@dataclass(frozen=True)
class Answer:
    """The response to a call. A status of 0 means that no response came."""

    status: int
    body: bytes = field(default=b"", repr=False)
    retry_after: float = 0.0
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later."""
        return self.status in (0, 401, 408, 425, 429) or self.status >= 500

    def object(self) -> dict[str, Any] | None:
        """Return the body as a JSON object; None if it is not one."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    def __str__(self) -> str:
        return self.error or f"status {self.status}"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


class HTTP:
    """Makes calls. It is safe for concurrent use: each call has its own connection."""

    def __init__(self) -> None:
        self._opener: urllib.request.OpenerDirector | None = None

    def _open(self, request: urllib.request.Request, timeout: float) -> Any:
        if self._opener is None:
            # The trusted certificates take long to load, so they are loaded once.
            secure = urllib.request.HTTPSHandler(context=ssl.create_default_context())
            self._opener = urllib.request.build_opener(_NoRedirect, secure)
        return self._opener.open(request, timeout=timeout)

    def send(
        self,
        method: str,
        url: str,
        body: bytes | IO[bytes] | None,
        headers: Mapping[str, str],
        timeout: float,
        most: int = _MOST_ANSWER,
    ) -> Answer:
        """Make one call. It raises no error of the network."""
        try:
            request = urllib.request.Request(url, body, dict(headers), method=method)
            with self._open(request, timeout) as response:
                content = response.read(most)
                if len(content) == most:
                    return Answer(0, error="the answer is too large")
                return Answer(response.status, content)
        except urllib.error.HTTPError as error:
            with error:
                try:
                    content = error.read(_MOST_ANSWER)
                except (OSError, http.client.HTTPException, ValueError):
                    content = b""
                return Answer(error.code, content, _retry_after(error.headers.get("Retry-After")))
        except urllib.error.URLError as error:
            return Answer(0, error=_reason(error.reason))
        except (OSError, http.client.HTTPException) as error:
            return Answer(0, error=_reason(error))
        except ValueError:
            return Answer(0, error="malformed URL")


def _reason(error: Any) -> str:
    """Describe an error without its URL."""
    if isinstance(error, (TimeoutError, socket.timeout)):
        return "timed out"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason}"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return type(error).__name__


def _retry_after(value: str | None) -> float:
    if not value:
        return 0.0
    seconds: float
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = float(email.utils.parsedate_to_datetime(value).timestamp()) - time.time()
        except (ValueError, TypeError):
            return 0.0
    return min(max(seconds, 0.0), _MOST_RETRY_AFTER) if seconds == seconds else 0.0


def backoff(failures: int, first: float, most: float) -> float:
    """Return an exponential delay with full jitter."""
    bound: float = min(most, first * 2 ** min(failures, 20))
    return random.random() * bound


def repeat(
    call: Callable[[], Answer],
    *,
    until: float,
    sleep: Callable[[float], bool],
    warn: Callable[[str, Answer, float], None],
    what: str,
) -> Answer:
    """Repeat a call until it is answered for good, or until. The last call is made then.

    sleep returns True if the repetition must end.
    """
    failures = 0
    while True:
        answer = call()
        if answer.ok or not answer.retryable:
            return answer
        left = until - time.monotonic()
        if left <= 0:
            return answer
        delay = min(max(backoff(failures, FIRST_DELAY, MOST_DELAY), answer.retry_after), left)
        warn(what, answer, delay)
        if sleep(delay):
            return answer
        failures += 1
