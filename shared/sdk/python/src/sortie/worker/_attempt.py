"""One attempt: started, heartbeats, the reasons to stop, completed.

Three daemon threads serve it, none of them the user's: one sends heartbeats, one
watches SIGTERM, the deadline and the grace period, and one sends output.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from .._time import now as rfc3339
from ..errors import (
    Aborted,
    Cancelled,
    DeadlineReached,
    SortieError,
    Terminated,
    Undelivered,
)
from ._cause import MOST_MARGIN, cause_of, grace_of, new_worker_id
from ._envelope import Envelope, Upload, is_token, upload_of
from ._fork import running
from ._heartbeats import Heartbeats
from ._http import HTTP, Answer, repeat
from ._logs import Sender
from ._report import MOST_MESSAGE, cancelled, cut, failed, stops, succeeded
from ._signals import Signals, in_main_thread
from ._usage import usage

_REPORT_TIMEOUT = 3600.0  # without a deadline
_LEAST_RETRY = 60.0
_CANCEL_LOOKUP = 3.0

EXIT_DONE, EXIT_FAILED, EXIT_NO_TASK, EXIT_TERMINATED = 0, 1, 2, 128 + signal.SIGTERM


class Attempt:
    """The state of an attempt, shared by its threads."""

    def __init__(
        self,
        envelope: Envelope,
        *,
        log: logging.Logger,
        worker_id: str | None = None,
        raises: bool = False,
        send_output: bool = False,
        signals: bool = True,
        exit_process: Callable[[int], Any] = os._exit,
    ) -> None:
        self.envelope = envelope
        self.log = log
        self.worker_id = worker_id or new_worker_id()
        self.http = HTTP()
        self.metrics: dict[str, Any] = {}
        self.phase = ""
        self.partial_progress: Any = None
        self._exit_process = exit_process

        self._lock = threading.Lock()
        self._token = envelope.token
        self._targets: dict[str, Upload | None] = {"output": envelope.output, "log": envelope.log}
        self._stop: Cancelled | None = None
        self._cancel: Cancelled | None = None  # the cancel request
        self._uploaded: dict[str, Any] | None = None
        self._claimed = False  # by the thread that reports
        self._forked = False

        self.stopped = threading.Event()  # the work must stop
        self.ended = threading.Event()  # no more calls
        self.lookup = threading.Event()  # a heartbeat after SIGTERM was answered
        self.heartbeats = Heartbeats(self)
        self._on_stop: list[Callable[[], object]] = []

        path = "/v1/tasks/" + quote(envelope.task_id, safe="~:") + "/"
        self._base = envelope.base_url + path
        self._call_timeout = min(30.0, max(envelope.timeout / 3, 0.5))
        # Prepared once, so that a heartbeat does little under the GIL.
        self._prefix = json.dumps({"attempt": envelope.attempt, "workerId": self.worker_id})[:-1]

        self.sender = Sender(self) if send_output else None
        self._signals = Signals(raises) if signals and in_main_thread() else None
        if raises and signals and (self._signals is None or not hasattr(signal, "pthread_kill")):
            raise ValueError('on_cancel="raise" needs the main thread and signals of POSIX')
        self.handles_sigterm = self._signals is not None
        self._threads: list[threading.Thread] = []
        self._wake_r, self._wake_w = socket.socketpair()
        self._wake_w.setblocking(False)

    # The beginning.

    def start(self) -> None:
        """Send started until it is answered, and begin to send heartbeats.

        Raises a Cancelled if the work is not to be done.
        """
        running.add(self)
        if self._signals is not None:
            self._signals.install(self._wake_w.fileno(), self._wake)
        self._begin(self._watch, "sortie-watch")
        began = time.monotonic()
        try:
            answer = self._started(began)
        except BaseException:
            self.close()
            raise
        if answer is None:
            self.close()
            assert self._stop is not None
            raise self._stop
        if not answer.ok:
            self.close()
            stop = cause_of(answer)
            raise stop if stop is not None else Undelivered(f"started was not accepted: {answer}")
        self.heartbeats.request()  # early, so that a cancel does not wait for an interval
        self._begin(self.heartbeats.run, "sortie-heartbeats")
        if self.sender is not None:
            self.sender.start()

    def _started(self, began: float) -> Answer | None:
        """Return the answer; None if the work must stop before there is one."""
        fields: dict[str, Any] = {"startedAt": rfc3339(), "handlesSigterm": self.handles_sigterm}
        if self.sender is not None:
            fields["sendsOutput"] = True
        body = self.body(fields)
        answer = repeat(
            lambda: self.call("started", body),
            until=self._retry_until(began),
            sleep=self.stopped.wait,
            warn=self.warn,
            what="started",
        )
        return None if self.stopped.is_set() and not answer.ok else answer

    def _begin(self, run: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    # Calls.

    def call(self, name: str, body: bytes) -> Answer:
        """Make one call with the newest token."""
        with self._lock:
            token = self._token
        headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        return self.http.send("POST", self._base + name, body, headers, self._call_timeout)

    def body(self, fields: dict[str, Any]) -> bytes:
        """Return the body of a call."""
        rest = json.dumps(fields, default=str, allow_nan=False)[1:]
        return (self._prefix + ", " + rest).encode("ascii")

    def warn(self, what: str, answer: Answer, delay: float) -> None:
        """Log a call that is sent again."""
        self.log.warning("%s failed (%s), retrying in %.1f s", what, answer, delay)

    def _retry_until(self, at: float) -> float:
        left = self.envelope.until_deadline()
        return at + (_REPORT_TIMEOUT if left is None else max(left, _LEAST_RETRY))

    def target(self, name: str) -> Upload | None:
        """Return the newest target of an upload."""
        with self._lock:
            return self._targets[name]

    def renew(self, said: dict[str, Any]) -> None:
        """Take the token and the targets that an answer brings."""
        with self._lock:
            if is_token(said.get("taskToken")):
                self._token = said["taskToken"]
            for name in ("output", "log"):
                target = upload_of(said.get(name))
                if target is not None:
                    self._targets[name] = target

    # The reasons to stop.

    @property
    def stop_cause(self) -> Cancelled | None:
        """Why the work must stop; None while it need not."""
        with self._lock:
            return self._stop

    def cancel(self, reason: Any) -> None:
        """Stop the work for a cancel request."""
        text = reason if isinstance(reason, str) and reason else "user_requested"
        cause = Cancelled(cut(text, MOST_MESSAGE))
        with self._lock:
            if self._cancel is None:
                self._cancel = cause
        self.stop(cause)

    def refused(self, answer: Answer) -> None:
        """Stop the work after a 409 or 410."""
        cause = cause_of(answer) or Aborted()
        if type(cause) is Cancelled:
            self.cancel(cause.reason)
        else:
            self.stop(cause)
        self.lookup.set()

    def stop(self, cause: Cancelled) -> None:
        """Ask the work to stop. The first cause counts, unless that is SIGTERM."""
        with self._lock:
            if self._stop is not None and not isinstance(self._stop, Terminated):
                return
            again = self._stop is not None
            self._stop = cause
            callbacks = list(self._on_stop)
        self.stopped.set()
        self._wake()
        if again:
            return
        self.log.info("the work must stop: %s", cause.reason)
        for callback in callbacks:
            callback()
        if self._signals is not None:
            self._signals.interrupt(cause)

    def on_stop(self, callback: Callable[[], object]) -> None:
        """Call callback from another thread when the work must stop."""
        with self._lock:
            self._on_stop.append(callback)
            late = self._stop is not None
        if late:
            callback()

    def terminated(self) -> None:
        """Handle SIGTERM: stop, and ask at once whether a cancel was requested."""
        if self._claimed:
            return
        self.stop(Terminated())
        self.heartbeats.request()

    def _wake(self) -> None:
        try:
            self._wake_w.send(b"\0")
        except OSError:
            pass  # full, so the thread wakes anyway, or closed

    def _watch(self) -> None:
        left, deadline = self.envelope.time_left(), None
        if left is not None:
            deadline = time.monotonic() + left - min(MOST_MARGIN, left / 10)
        seen: Cancelled | None = None
        expires = 0.0
        while not self.ended.is_set():
            cause = self.stop_cause
            if cause is not seen and cause is not None:
                seen, expires = cause, time.monotonic() + grace_of(self.envelope.grace, cause)
            at = deadline if seen is None else expires
            self._wake_r.settimeout(None if at is None else max(at - time.monotonic(), 0.001))
            try:
                content = self._wake_r.recv(4096)
            except TimeoutError:
                if seen is None:
                    self.stop(DeadlineReached())
                    continue
                self._expire(seen)
                return
            if self._signals is not None and self._signals.terminated(content):
                self.terminated()

    def _expire(self, cause: Cancelled) -> None:
        """End the process, because the work did not stop within the grace period."""
        if not self._claim():
            return
        self.log.error("the work did not stop within the grace period; the process ends")
        code = EXIT_TERMINATED if type(cause) is Terminated else EXIT_FAILED
        try:
            self._report(cause)
        except (SortieError, Cancelled) as error:
            self.log.error("%s", error)
        finally:
            self._exit_process(code)

    # The end.

    def _claim(self) -> bool:
        with self._lock:
            first, self._claimed = not self._claimed, True
            return first

    def disarm(self) -> None:
        """Let no signal raise any more in the main thread."""
        if self._signals is not None:
            self._signals.armed = False

    def finish(self, failure: BaseException | None) -> str:
        """Report the result and stop the heartbeats. Return the final state.

        Raises a Cancelled if nothing is to be reported, and Undelivered.
        """
        if self._forked:
            return ""
        self.disarm()
        if not self._claim():
            threading.Event().wait()  # the watching thread reports and ends the process
        try:
            return self._report(failure)
        finally:
            self.close()

    def _report(self, failure: BaseException | None) -> str:
        cause = self.stop_cause
        if isinstance(cause, Aborted):
            raise cause
        interrupted = isinstance(failure, KeyboardInterrupt) and cause is None
        if failure is not None and (isinstance(cause, Terminated) or interrupted):
            if not interrupted:
                self.lookup.wait(min(_CANCEL_LOOKUP, self.envelope.grace / 10))
            cause = self.stop_cause
            if isinstance(cause, Aborted):
                raise cause
            if self._cancel is None:
                raise Terminated()  # the control plane sees the end of the machine
        lost = self.sender.flush() if self.sender is not None else 0
        percent, message = self.heartbeats.progress
        with self._lock:
            cancel, uploaded = self._cancel, self._uploaded
        if failure is None:
            fields = succeeded(uploaded)
        elif cancel is not None and stops(failure):
            fields = cancelled(self.phase, self.partial_progress, percent, message)
        else:
            fields = failed(failure, self.stop_cause)
        figures: dict[str, Any] = dict(usage())
        figures.update(self.metrics)
        if lost:
            figures["outputBytesLost"] = lost
        fields["metrics"] = figures
        body = self._encoded(fields)
        answer = repeat(
            lambda: self.call("completed", body),
            until=self._retry_until(time.monotonic()),
            sleep=_sleep,
            warn=self.warn,
            what="completed",
        )
        if not answer.ok:
            raise Undelivered(f"the result was not accepted: {answer}")
        state = (answer.object() or {}).get("finalState")
        final = state if isinstance(state, str) else str(fields["outcome"])
        self.log.info("the task ended: %s", final)
        return final

    def _encoded(self, fields: dict[str, Any]) -> bytes:
        try:
            return self.body(fields)
        except (TypeError, ValueError, RecursionError):
            self.log.warning("metrics or partial progress left out: not JSON")
            kept = {k: v for k, v in fields.items() if k not in ("metrics", "partialProgress")}
            return self.body({**kept, "metrics": usage()})

    def set_output(self, output: dict[str, Any]) -> None:
        """Set the output that a success reports."""
        with self._lock:
            self._uploaded = output

    def close(self) -> None:
        """End the threads and restore the handler of SIGTERM."""
        running.discard(self)
        self.ended.set()
        self.heartbeats.wake()
        self._wake()
        if self.sender is not None:
            self.sender.outbox.close()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(2.0)  # a call may be in flight
        restored = self._signals is None or self._signals.restore()
        if restored and not any(thread.is_alive() for thread in self._threads):
            self._wake_r.close()
            self._wake_w.close()

    def forked(self) -> None:
        """Forget the attempt in a child process: it has no threads and must not report."""
        self._forked = True
        if self._signals is not None:
            self._signals.armed = False
            self._signals.restore()
        self._lock = threading.Lock()
        self.heartbeats.forked()
        if self.sender is not None:
            self.sender.outbox.forked()


def _sleep(delay: float) -> bool:
    time.sleep(delay)
    return False
