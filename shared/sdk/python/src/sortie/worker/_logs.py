"""The output of the work, which clients read while it runs."""

from __future__ import annotations

import base64
import io
import json
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from ._http import FIRST_DELAY, MOST_DELAY, Answer, backoff

if TYPE_CHECKING:
    from ._attempt import Attempt

_CHUNK = 24_000  # less than 32 KiB in base64
_MOST_HELD = 768 << 10
_EARLY, _EARLY_TOTAL = 256 << 10, 1 << 20  # the beginning of the output is sent early
_FOLLOWED, _IDLE, _GATHER = 2.0, 30.0, 0.1
_FLUSH = 30.0
_IDLE_CHUNKS = 4  # in each interval, once much was sent and no client follows


class Chunk:
    """A piece of the output of one stream."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.data = bytearray()
        self.since = time.monotonic()


class Outbox:
    """Holds output until it is sent.

    Its memory is bounded: output that does not fit replaces the oldest, and a line
    says how many bytes are missing. A write never waits for a call.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._pending: deque[Chunk] = deque()
        self._size = 0
        self._taken = 0
        self._missing: dict[str, int] = {}
        self._closed = False

    def add(self, stream: str, data: bytes) -> None:
        """Append output. It is dropped after close."""
        with self._condition:
            if self._closed or not data:
                return
            view = memoryview(data)
            while view:
                last = self._pending[-1] if self._pending else None
                if last is None or last.stream != stream or len(last.data) >= _CHUNK:
                    last = Chunk(stream)
                    self._pending.append(last)
                n = min(len(view), _CHUNK - len(last.data))
                last.data += view[:n]
                view = view[n:]
                self._size += n
                while self._size > _MOST_HELD:
                    oldest = self._pending.popleft()
                    self._size -= len(oldest.data)
                    self._missing[oldest.stream] = self._missing.get(oldest.stream, 0) + len(oldest.data)
            self._condition.notify_all()

    def take(self) -> Chunk | None:
        """Remove the oldest output; return None without output."""
        with self._condition:
            if self._pending:
                chunk = self._pending.popleft()
                self._size -= len(chunk.data)
                self._taken += len(chunk.data)
            elif self._missing:
                chunk = Chunk(next(iter(self._missing)))
            else:
                return None
            missing = self._missing.pop(chunk.stream, 0)
            if missing:
                chunk.data[:0] = b"\n[%d bytes are cut out here]\n" % missing
            return chunk

    def wait(self, until: float | None, stopped: threading.Event) -> None:
        """Wait for output, or until a time unless there is much early output."""
        with self._condition:
            while not stopped.is_set() and not self._closed:
                if until is None and (self._pending or self._missing):
                    return
                if until is not None:
                    left = until - time.monotonic()
                    if left <= 0 or (self._size >= _EARLY and self._taken < _EARLY_TOTAL):
                        return
                    self._condition.wait(left)
                else:
                    self._condition.wait()

    def sent_much(self) -> bool:
        """Report whether the beginning of the output was taken."""
        with self._condition:
            return self._taken >= _EARLY_TOTAL

    def wake(self) -> None:
        """End a wait whose event was set."""
        with self._condition:
            self._condition.notify_all()

    def close(self) -> int:
        """Drop the remaining output, accept no more, and return the number of dropped bytes."""
        with self._condition:
            self._closed = True
            lost = self._size + sum(self._missing.values())
            self._pending.clear()
            self._missing.clear()
            self._size = 0
            self._condition.notify_all()
            return lost

    def forked(self) -> None:
        """Drop all output in a child process. The lock may be that of a thread that is gone."""
        self._condition = threading.Condition()
        self.close()


class Stream(io.RawIOBase):
    """The binary writer of one stream."""

    def __init__(self, outbox: Outbox, name: str) -> None:
        super().__init__()
        self._outbox = outbox
        self._name = name

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        content = bytes(data)
        self._outbox.add(self._name, content)
        return len(content)


def text_stream(outbox: Outbox, name: str) -> io.TextIOWrapper:
    """Return a text writer, such as print uses."""
    raw: Any = Stream(outbox, name)
    return io.TextIOWrapper(
        raw, encoding="utf-8", errors="backslashreplace", newline="\n", write_through=True
    )


class Sender:
    """Sends the output in order from its own thread."""

    def __init__(self, attempt: Attempt) -> None:
        self.outbox = Outbox()
        self._attempt = attempt
        self._stopped = threading.Event()
        self._turn = threading.Lock()  # held by the thread that sends
        self._unsent: Chunk | None = None  # may have been received
        self._sequence = 1
        self._followed = self._answered = self._off = False
        self._thread = threading.Thread(target=self._run, name="sortie-output", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def flush(self) -> int:
        """Send what is left and accept no more. Return the number of lost bytes."""
        self._stopped.set()
        self.outbox.wake()
        stopping = self._attempt.stop_cause is not None
        limit = min(_FLUSH, self._attempt.envelope.grace / 8) if stopping else _FLUSH
        until, failures = time.monotonic() + limit, 0
        with self._turn:
            while not self._off:
                answer = self._send_all(until)
                if answer is None or time.monotonic() > until:
                    break
                time.sleep(min(backoff(failures, FIRST_DELAY, MOST_DELAY), max(until - time.monotonic(), 0)))
                failures += 1
            lost = self.outbox.close()
            if self._unsent is not None:
                lost += len(self._unsent.data)
            return lost

    def _run(self) -> None:
        failures, sent_at = 0, 0.0
        while not self._stopped.is_set() and not self._off:
            if self._unsent is None:
                self.outbox.wait(None, self._stopped)
            delay = _FOLLOWED
            if self._followed:
                delay = max(sent_at + _FOLLOWED - time.monotonic(), _GATHER)
            elif self._answered:
                delay = max(sent_at + _IDLE - time.monotonic(), _FOLLOWED)
            if failures:
                self._stopped.wait(max(delay, backoff(failures, FIRST_DELAY, MOST_DELAY)))
            else:
                self.outbox.wait(time.monotonic() + delay, self._stopped)
            if self._stopped.is_set():
                return
            sent_at = time.monotonic()
            try:
                with self._turn:
                    failures = failures + 1 if self._send_all(None) is not None else 0
            except Exception:
                self._attempt.log.exception("cannot send output")
                failures += 1

    def _send_all(self, until: float | None) -> Answer | None:
        """Send what there is. Return the answer that asks for a repetition."""
        sent = 0
        while not self._off:
            if until is None:
                much = sent >= _IDLE_CHUNKS and not self._followed and self.outbox.sent_much()
                if much or self._stopped.is_set():
                    return None
            if self._unsent is None:
                self._unsent = self.outbox.take()
                if self._unsent is None:
                    return None
            answer = self._send(self._unsent)
            if not answer.ok:
                if answer.retryable:
                    return answer
                self._off = True
                return None
            self._unsent = None
            self._sequence += 1
            sent += 1
        return None

    def _send(self, chunk: Chunk) -> Answer:
        answer = self._attempt.call(
            "logs",
            json.dumps(
                {
                    "attempt": self._attempt.envelope.attempt,
                    "stream": chunk.stream,
                    "sequence": self._sequence,
                    "data": base64.b64encode(chunk.data).decode("ascii"),
                    "ageMs": 1 + int((time.monotonic() - chunk.since) * 1000),
                }
            ).encode(),
        )
        if answer.ok:
            said = answer.object()
            if said is None:
                return Answer(0, error="malformed answer")
            self._answered, self._followed = True, said.get("followed") is True
            if said.get("shouldCancel") is True:
                self._attempt.cancel(said.get("cancelReason"))
        elif not answer.retryable:
            said = answer.object() or {}
            if answer.status in (409, 410) and said.get("error") not in ("sequence_gap", "sequence_conflict"):
                self._attempt.refused(answer)
            else:
                self._attempt.log.warning("the control plane does not take output: %s", answer)
        return answer
