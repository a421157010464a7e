"""The task as the work sees it."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import IO, Any, Literal, NoReturn, TextIO

from ..errors import Cancelled, Category, Failure
from ._attempt import Attempt
from ._envelope import take
from ._http import Answer, repeat
from ._logs import text_stream
from ._upload import Content, Hashed, name_of, opened

_MOST_UPLOAD = 5 << 30
_MOST_INPUT = 8 << 20
_UPLOAD_TIMEOUT, _STALL, _INPUT_TIMEOUT = 900.0, 60.0, 120.0
_MOST_FORBIDDEN = 3

OnCancel = Literal["flag", "raise"]

logger = logging.getLogger("sortie")


class _Task:
    """What Task and AsyncTask share."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._streams: dict[str, TextIO] = {}

    @property
    def id(self) -> str:
        """The id of the task."""
        return self._attempt.envelope.task_id

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._attempt.envelope.run_id

    @property
    def attempt(self) -> int:
        """The number of the attempt, from 1."""
        return self._attempt.envelope.attempt

    @property
    def deadline(self) -> datetime | None:
        """When the attempt is killed; None without a time limit."""
        return self._attempt.envelope.deadline

    @property
    def worker_id(self) -> str:
        """The name of this process in its calls."""
        return self._attempt.worker_id

    @property
    def traceparent(self) -> str:
        """The W3C trace context of the attempt; may be empty."""
        return self._attempt.envelope.traceparent

    @property
    def envelope(self) -> Mapping[str, Any]:
        """The members of the envelope, without its secrets."""
        return self._attempt.envelope.members

    @property
    def metrics(self) -> dict[str, Any]:
        """Figures of the work, by name, that the report has beside its own."""
        return self._attempt.metrics

    @property
    def cancelled(self) -> bool:
        """Whether the work must stop: for a cancel, SIGTERM, the deadline, a lost attempt."""
        return self._attempt.stopped.is_set()

    @property
    def cancel_reason(self) -> str | None:
        """Why the work must stop; None while it need not."""
        cause = self._attempt.stop_cause
        return None if cause is None else cause.reason

    def check(self) -> None:
        """Raise Cancelled if the work must stop."""
        if self._attempt.stopped.is_set():
            cause = self._attempt.stop_cause
            assert cause is not None
            raise type(cause)(cause.reason)

    def progress(self, percent: float | None, message: str = "") -> None:
        """Set what heartbeats report: 0 to 100, or None for unknown, and a message.

        It makes no call, so it may be called in an inner loop.
        """
        self._attempt.heartbeats.set(percent, message)

    def phase(self, name: str) -> None:
        """Name what the work does now. A cancelled task reports it."""
        self._attempt.phase = name

    def partial(self, progress: Any) -> None:
        """Set what a cancelled task reports of its work: any JSON value."""
        self._attempt.partial_progress = progress

    @property
    def stdout(self) -> TextIO:
        """The standard output of the task.

        With send_output clients read it while the work runs; otherwise it is sys.stdout.
        """
        return self._stream("stdout", sys.stdout)

    @property
    def stderr(self) -> TextIO:
        """The standard error of the task, like stdout."""
        return self._stream("stderr", sys.stderr)

    def _stream(self, name: str, otherwise: TextIO) -> TextIO:
        sender = self._attempt.sender
        if sender is None:
            return otherwise
        return self._streams.setdefault(name, text_stream(sender.outbox, name))

    def fail(self, category: Category, message: str, retryable: bool | None = None) -> NoReturn:
        """End the work with a failure: USER_CODE, DATA_QUALITY, INFRASTRUCTURE, CONFIGURATION, TIMEOUT."""
        raise Failure(category, message, retryable)

    def _input(self) -> bytes:
        source = self._attempt.envelope.input
        if source is None:
            return b""

        def get() -> Answer:
            answer = self._attempt.http.send("GET", source.url, None, {}, _STALL, _MOST_INPUT)
            if answer.ok and source.size is not None and len(answer.body) != source.size:
                return Answer(0, error="it has another size than the envelope says")
            return answer

        answer = self._repeat("the download of the input", get, _INPUT_TIMEOUT)
        if not answer.ok:
            self.check()
            raise Failure("INFRASTRUCTURE", f"cannot read the input: {answer}", True)
        return answer.body

    def _output(self, content: Content, content_type: str | None, file_name: str | None) -> None:
        with opened(content) as (file, size):
            if size > _MOST_UPLOAD:
                raise Failure("USER_CODE", f"the output has {size} bytes, want at most 5 GiB", False)
            self._upload(file, size, content_type, file_name or name_of(content))

    def _upload(self, file: IO[bytes], size: int, content_type: str | None, file_name: str) -> None:
        attempt, start, forbidden = self._attempt, file.tell(), 0
        if attempt.target("output") is None:
            raise Failure("CONFIGURATION", "the task has no place for an output", False)
        kind = content_type or attempt.envelope.content_type or "application/octet-stream"
        if not (kind.isascii() and kind.isprintable()):
            raise Failure("USER_CODE", f"malformed content_type: {kind!r}", False)
        stored: dict[str, Any] = {}

        def put() -> Answer:
            nonlocal forbidden
            target = attempt.target("output")
            assert target is not None
            file.seek(start)
            body = Hashed(file, size, attempt.stopped)
            headers = {"Content-Type": kind, "Content-Length": str(size), **target.headers}
            answer = attempt.http.send("PUT", target.url, body if size else b"", headers, _STALL)  # type: ignore[arg-type]
            if answer.status == 403 and forbidden < _MOST_FORBIDDEN:
                forbidden += 1  # the URL may have expired; a heartbeat renews it
                attempt.heartbeats.request()
                return Answer(0, error="the URL was refused")
            if answer.ok:
                stored.update(outputPath=target.key, byteSize=size)
                if body.size == size:
                    stored["digest"] = "sha256:" + body.sum.hexdigest()
            return answer

        answer = self._repeat("the upload", put, _UPLOAD_TIMEOUT)
        if not answer.ok:
            self.check()
            raise Failure("INFRASTRUCTURE", f"cannot store the output: {answer}", True)
        name = file_name or attempt.envelope.file_name
        attempt.set_output({**stored, "fileName": name} if name else stored)

    def _repeat(self, what: str, call: Any, timeout: float) -> Answer:
        def guarded() -> Answer:
            self.check()
            answer: Answer = call()
            return answer

        attempt = self._attempt
        return repeat(
            guarded,
            until=time.monotonic() + timeout,
            sleep=attempt.stopped.wait,
            warn=lambda name, answer, delay: logger.warning(
                "%s failed (%s), retrying in %.1f s", name, answer, delay
            ),
            what=what,
        )


class Task(_Task):
    """A task. Its methods are safe for concurrent use."""

    def wait_cancelled(self, timeout: float | None = None) -> bool:
        """Wait until the work must stop, at most timeout seconds. Return whether it must."""
        return self._attempt.stopped.wait(timeout)

    def input(self) -> bytes:
        """Return the standard input of the job; empty without one."""
        return self._input()

    def output(
        self, content: Content, *, content_type: str | None = None, file_name: str | None = None
    ) -> None:
        """Store the output of the task. The last one counts.

        A path or a file is not held in memory, and read again for a retry.
        """
        self._output(content, content_type, file_name)


class AsyncTask(_Task):
    """A task of async work. Calls run in threads and do not block the loop."""

    def __init__(self, attempt: Attempt) -> None:
        super().__init__(attempt)
        self._loop = asyncio.get_running_loop()
        self._cancelled = asyncio.Event()
        attempt.on_stop(lambda: _call_soon(self._loop, self._cancelled.set))

    async def wait_cancelled(self, timeout: float | None = None) -> bool:
        """Wait until the work must stop, at most timeout seconds. Return whether it must."""
        try:
            await asyncio.wait_for(self._cancelled.wait(), timeout)
        except (TimeoutError, asyncio.TimeoutError):
            return self.cancelled
        return True

    async def input(self) -> bytes:
        """Return the standard input of the job; empty without one."""
        return await asyncio.to_thread(self._input)

    async def output(
        self, content: Content, *, content_type: str | None = None, file_name: str | None = None
    ) -> None:
        """Store the output of the task. The last one counts."""
        await asyncio.to_thread(self._output, content, content_type, file_name)


@contextmanager
def task(
    *,
    log: logging.Logger | None = None,
    worker_id: str | None = None,
    on_cancel: OnCancel = "flag",
    send_output: bool = False,
) -> Iterator[Task]:
    """Begin the task of this process and report how the block ended.

    A block that ends normally is SUCCEEDED. Cancelled after a cancel request is
    CANCELLED. Any other exception is FAILED, with category USER_CODE unless it is a
    Failure. The exception leaves the block.

    log: gets failed calls; the default is the logger "sortie".
    worker_id: differs between processes; the default is the host and a random part.
    on_cancel: "flag" sets Task.cancelled; "raise" raises Cancelled in the main thread,
    too, also out of a blocking call.
    send_output: clients read Task.stdout and Task.stderr while the work runs.

    If the block does not end within the grace period after it must stop, the result
    is reported without it, and the process ends.
    """
    _check_on_cancel(on_cancel)
    attempt = Attempt(
        take(), log=log or logger, worker_id=worker_id, raises=on_cancel == "raise", send_output=send_output
    )
    attempt.start()
    try:
        yield Task(attempt)
    except BaseException as failure:
        attempt.disarm()
        attempt.finish(None if _is_success(failure) else failure)
        if isinstance(failure, Cancelled):
            raise _cause(attempt, failure) from None
        raise
    else:
        attempt.disarm()
        attempt.finish(None)


@asynccontextmanager
async def atask(
    *,
    log: logging.Logger | None = None,
    worker_id: str | None = None,
    on_cancel: OnCancel = "flag",
    send_output: bool = False,
) -> AsyncIterator[AsyncTask]:
    """Do the same as task for async work.

    on_cancel="raise" cancels the asyncio task that entered the block; what leaves the
    block then is Cancelled.
    """
    _check_on_cancel(on_cancel)
    loop = asyncio.get_running_loop()
    attempt = Attempt(take(), log=log or logger, worker_id=worker_id, send_output=send_output, signals=False)
    installed = _handle_sigterm(loop, attempt)
    try:
        await asyncio.to_thread(attempt.start)
        current, cancels = asyncio.current_task(), on_cancel == "raise"
        ours = False  # the cancel is this function's

        def interrupt() -> None:
            nonlocal ours
            if cancels and current is not None and not current.done():
                ours = True
                current.cancel()

        attempt.on_stop(lambda: _call_soon(loop, interrupt))
        try:
            yield AsyncTask(attempt)
        except asyncio.CancelledError as failure:
            cancels = False
            cause = attempt.stop_cause
            if not ours or cause is None:
                await asyncio.shield(asyncio.to_thread(attempt.finish, failure))
                raise
            if sys.version_info >= (3, 11) and current is not None:
                current.uncancel()
            await asyncio.to_thread(attempt.finish, cause)
            raise _cause(attempt, cause) from None
        except BaseException as failure:
            cancels = False
            await asyncio.to_thread(attempt.finish, None if _is_success(failure) else failure)
            if isinstance(failure, Cancelled):
                raise _cause(attempt, failure) from None
            raise
        else:
            cancels = False
            await asyncio.to_thread(attempt.finish, None)
    finally:
        if installed:
            loop.remove_signal_handler(signal.SIGTERM)


def _handle_sigterm(loop: asyncio.AbstractEventLoop, attempt: Attempt) -> bool:
    if threading.current_thread() is not threading.main_thread():
        return False
    if signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, signal.SIG_IGN):
        return False  # another part of the program handles it
    try:
        loop.add_signal_handler(signal.SIGTERM, attempt.terminated)
    except (NotImplementedError, RuntimeError, ValueError):  # Windows
        return False
    attempt.handles_sigterm = True
    return True


def _call_soon(loop: asyncio.AbstractEventLoop, callback: Any) -> None:
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        pass  # the loop is closed


def _check_on_cancel(value: str) -> None:
    if value not in ("flag", "raise"):
        raise ValueError(f'on_cancel: {value!r}, want "flag" or "raise"')


def _cause(attempt: Attempt, failure: Cancelled) -> Cancelled:
    """Return the cause that was reported: a cancel request may become known after SIGTERM."""
    cause = attempt.stop_cause
    return failure if cause is None else type(cause)(cause.reason)


def _is_success(failure: BaseException) -> bool:
    return isinstance(failure, SystemExit) and failure.code in (None, 0)


__all__ = ["AsyncTask", "Cancelled", "Content", "OnCancel", "Task", "atask", "task"]
