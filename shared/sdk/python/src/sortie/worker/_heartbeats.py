"""The heartbeats of an attempt, and the progress that they report."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from .._time import now as rfc3339
from ..errors import Terminated
from ._http import FIRST_DELAY, Answer, backoff
from ._report import MOST_MESSAGE, cut

if TYPE_CHECKING:
    from ._attempt import Attempt

_PROGRESS_INTERVAL = 1.0

Progress = tuple[int, str]  # the percent is -1 if unknown


class Heartbeats:
    """Sends the heartbeats of an attempt, in a thread of its own."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._progress: Progress = (-1, "")
        self._delivered: Progress = (-1, "")
        self._changed = threading.Condition()
        self._beat_now = False

    @property
    def progress(self) -> Progress:
        """The progress that the next heartbeat reports."""
        with self._changed:
            return self._progress

    def set(self, percent: float | None, message: str) -> None:
        """Set what heartbeats report. A change is sent within a second."""
        whole = -1
        if percent is not None and percent == percent:
            whole = int(max(0.0, min(float(percent), 100.0)))
        with self._changed:
            if self._progress != (whole, message):
                self._progress = (whole, message)
                self._changed.notify_all()

    def request(self) -> None:
        """Send a heartbeat at once."""
        with self._changed:
            self._beat_now = True
            self._changed.notify_all()

    def run(self) -> None:
        """Send heartbeats until the attempt has ended."""
        interval = self._attempt.envelope.interval
        failures, sent = 0, time.monotonic()
        due = sent + interval
        while True:
            with self._changed:
                while not self._attempt.ended.is_set() and not self._beat_now:
                    at = due
                    if failures == 0 and self._progress != self._delivered:
                        at = min(due, sent + _PROGRESS_INTERVAL)
                    left = at - time.monotonic()
                    if left <= 0:
                        break
                    self._changed.wait(left)
                if self._attempt.ended.is_set():
                    return
                self._beat_now = False
            sent = time.monotonic()
            try:
                answer = self._heartbeat()
            except Exception:  # no error ends the heartbeats of living work
                self._attempt.log.exception("cannot send a heartbeat")
                answer = Answer(0, error="internal error")
            if answer.status in (409, 410):
                self._attempt.refused(answer)
                return
            if answer.ok:
                failures, due = 0, sent + interval
            else:
                delay = backoff(failures, min(FIRST_DELAY, interval / 8), interval)
                delay = min(max(delay, answer.retry_after), interval)
                failures += 1
                due = time.monotonic() + (delay if answer.retryable else interval)
                if not self._attempt.ended.is_set():
                    self._attempt.warn("a heartbeat", answer, due - time.monotonic())

    def _heartbeat(self) -> Answer:
        attempt = self._attempt
        terminated = isinstance(attempt.stop_cause, Terminated)
        progress = percent, message = self.progress
        fields: dict[str, Any] = {"heartbeatAt": rfc3339()}
        if percent >= 0:
            fields["progressPct"] = percent
        if message:
            fields["message"] = cut(message, MOST_MESSAGE)
        answer = attempt.call("heartbeat", attempt.body(fields))
        if not answer.ok:
            return answer
        said = answer.object()
        if said is None:
            return Answer(0, error="malformed answer")
        with self._changed:
            self._delivered = progress
        attempt.renew(said)
        if said.get("shouldCancel") is True:
            attempt.cancel(said.get("cancelReason"))
        if terminated:
            attempt.lookup.set()
        return answer

    def wake(self) -> None:
        """Let the thread see that the attempt has ended."""
        with self._changed:
            self._changed.notify_all()

    def forked(self) -> None:
        """Replace the lock in a child process: a thread that is gone may hold it."""
        self._changed = threading.Condition()
