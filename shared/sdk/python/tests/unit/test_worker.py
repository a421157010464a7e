"""The worker against a control plane in this process."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import io
import logging
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from plane import DROP, Plane, cancel

from sortie import worker
from sortie.worker._http import Answer, backoff, repeat


def test_long_retry_after_does_not_end_the_tries() -> None:
    """The last call is at the end of the time, although the server asks for a longer delay."""
    answers = [Answer(503, b"", 300.0), Answer(200, b"{}")]
    slept: list[float] = []

    def sleep(seconds: float) -> bool:
        slept.append(seconds)
        return False

    def warn(what: str, answer: Answer, delay: float) -> None:
        assert (what, answer.status) == ("completed", 503)

    until = time.monotonic() + 60
    got = repeat(lambda: answers.pop(0), until=until, sleep=sleep, warn=warn, what="completed")
    assert got.ok
    assert len(slept) == 1
    assert 50 < slept[0] <= 60
    late = [Answer(503, b"", 1.0)]
    got = repeat(lambda: late.pop(0), until=time.monotonic(), sleep=sleep, warn=warn, what="completed")
    assert got.status == 503
    assert len(slept) == 1


def test_success_is_reported(plane: Plane) -> None:
    with worker.task() as task:
        assert (task.id, task.run_id, task.attempt, task.deadline) == ("task.1~a", "job:2026", 2, None)
        assert not task.cancelled
        assert task.cancel_reason is None
        task.metrics["pages"] = 7
        plane.wait_for("heartbeat", 2)
    started = plane.named("started")[0]
    assert started.fields["handlesSigterm"] is True
    assert "sendsOutput" not in started.fields
    assert started.headers["Authorization"] == "Bearer secret-token"
    done = plane.completed()
    assert (done["outcome"], done["attempt"], done["workerId"]) == (
        "SUCCEEDED",
        2,
        started.fields["workerId"],
    )
    assert done["metrics"]["pages"] == 7
    assert done["metrics"]["cpuTimeMs"] > 0
    assert done["completedAt"].endswith("Z")


def test_token_leaves_the_environment(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLBACK_URL", plane.url + "/callback?token=x")
    with worker.task() as task:
        assert "TASK_ENVELOPE" not in os.environ
        assert "CALLBACK_URL" not in os.environ
        shown = repr(task.envelope) + repr(task._attempt.envelope)
        assert "secret-token" not in shown
        assert "signature" not in shown


def test_no_call_follows_completed(plane: Plane) -> None:
    before = threading.active_count()
    with worker.task():
        plane.wait_for("heartbeat", 2)
    count = len(plane.calls)
    time.sleep(0.6)
    assert len(plane.calls) == count
    assert plane.calls[-1].name == "completed"
    assert threading.active_count() == before


def test_progress_is_sent_soon_and_bounded(plane: Plane, envelope: Any) -> None:
    envelope(heartbeatIntervalMs=60_000)
    with worker.task() as task:
        plane.wait_for("heartbeat", 1)
        task.progress(150.7, "x" * 5000)
        plane.wait_for("heartbeat", 2, timeout=5)
        task.progress(float("nan"), "again")
        plane.wait_for("heartbeat", 3, timeout=5)
    second, third = plane.named("heartbeat")[1:3]
    assert second.fields["progressPct"] == 100
    assert len(second.fields["message"]) == 2048
    assert second.fields["message"].endswith(" [cut]")
    assert "progressPct" not in third.fields


def test_cancel_is_reported(plane: Plane) -> None:
    plane.answers["heartbeat"] = lambda n: cancel() if n == 1 else None
    with pytest.raises(worker.Cancelled) as caught, worker.task() as task:
        task.phase("reading")
        task.progress(40, "page 4")
        assert task.wait_cancelled(30)
        assert task.cancelled
        assert task.cancel_reason == "not needed"
        task.check()
    assert type(caught.value) is worker.Cancelled
    done = plane.completed()
    assert (done["outcome"], done["cancelledDuringPhase"]) == ("CANCELLED", "reading")
    assert done["partialProgress"] == {"progressPct": 40, "message": "page 4"}


def test_cancel_interrupts_a_blocking_call(plane: Plane) -> None:
    plane.answers["heartbeat"] = lambda n: cancel() if n == 1 else None
    begin = time.monotonic()
    with pytest.raises(worker.Cancelled), worker.task(on_cancel="raise"):
        time.sleep(60)
    assert time.monotonic() - begin < 30
    assert plane.completed()["outcome"] == "CANCELLED"
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_success_after_a_cancel_is_a_success(plane: Plane) -> None:
    plane.answers["heartbeat"] = lambda n: cancel()
    with worker.task() as task:
        task.wait_cancelled(30)
    assert plane.completed()["outcome"] == "SUCCEEDED"


def test_error_is_a_failure(plane: Plane) -> None:
    with pytest.raises(KeyError), worker.task():
        dict[str, int]()["missing"]
    error = plane.completed()["error"]
    assert error["category"] == "USER_CODE"
    assert error["message"] == "KeyError: 'missing'"
    assert "test_error_is_a_failure" in error["stackTrace"]
    assert "retryable" not in error


@pytest.mark.parametrize(
    ("raised", "category", "message", "retryable"),
    [
        (worker.Failure("DATA_QUALITY", "page 9 is empty", False), "DATA_QUALITY", "page 9 is empty", False),
        (OSError(errno.ENOSPC, "No space left"), "INFRASTRUCTURE", "[Errno 28] No space left", None),
        (MemoryError(), "INFRASTRUCTURE", "MemoryError", None),
        (SystemExit(3), "USER_CODE", "exit code 3", None),
        (ValueError("\ud800"), "USER_CODE", "ValueError: ?", None),
    ],
)
def test_failure_has_its_category(
    plane: Plane, raised: BaseException, category: str, message: str, retryable: bool | None
) -> None:
    with pytest.raises(type(raised)), worker.task():
        raise raised
    error = plane.completed()["error"]
    assert (error["category"], error["message"], error.get("retryable")) == (category, message, retryable)


def test_task_fails_with_words(plane: Plane) -> None:
    with pytest.raises(worker.Failure), worker.task() as task:
        task.fail("CONFIGURATION", "no TARGET")
    assert plane.completed()["error"]["category"] == "CONFIGURATION"


def test_exit_code_zero_is_a_success(plane: Plane) -> None:
    with pytest.raises(SystemExit), worker.task():
        raise SystemExit
    assert plane.completed()["outcome"] == "SUCCEEDED"


@pytest.mark.parametrize("status", [409, 410])
def test_refused_heartbeat_stops_the_work(plane: Plane, status: int) -> None:
    plane.answers["heartbeat"] = lambda n: (status, {"error": "attempt_mismatch"}) if n else None
    with pytest.raises(worker.Aborted), worker.task() as task:
        task.wait_cancelled(30)
        task.check()
    assert not plane.named("completed")


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (409, {"error": "task_already_terminal", "state": "CANCELLED"}, worker.Cancelled),
        (409, {"error": "worker_mismatch"}, worker.Aborted),
        (410, {"error": "task_expired"}, worker.Aborted),
        (403, {}, worker.Undelivered),
    ],
)
def test_refused_start_prevents_the_work(plane: Plane, status: int, body: Any, kind: Any) -> None:
    plane.answers["started"] = lambda n: (status, body)
    with pytest.raises(kind) as caught, worker.task():
        pytest.fail("the work began")
    assert type(caught.value) is kind
    assert [call.name for call in plane.calls] == ["started"]


def test_started_is_repeated(plane: Plane) -> None:
    plane.answers["started"] = lambda n: [DROP, (503, {}), (429, {"headers": {"Retry-After": "1"}}), None][
        min(n, 3)
    ]
    with worker.task():
        pass
    calls = plane.named("started")
    assert len(calls) == 4
    assert calls[0].body == calls[3].body
    assert calls[3].at - calls[2].at >= 0.99


def test_heartbeats_survive_failures(plane: Plane) -> None:
    plane.answers["heartbeat"] = lambda n: (
        [None, DROP, (500, {}), (200, {"raw": b"no"}), (422, {})][n] if n < 5 else None
    )
    with worker.task() as task:
        plane.wait_for("heartbeat", 7)
        assert not task.cancelled
    assert plane.completed()["outcome"] == "SUCCEEDED"


def test_heartbeats_survive_an_internal_error(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    with worker.task() as task:
        attempt = task._attempt
        real, broken = attempt.heartbeats._heartbeat, threading.Event()

        def heartbeat() -> Any:
            if not broken.is_set():
                broken.set()
                raise RuntimeError("a defect")
            return real()

        monkeypatch.setattr(attempt.heartbeats, "_heartbeat", heartbeat)
        assert broken.wait(10)
        plane.wait_for("heartbeat", len(plane.named("heartbeat")) + 2)


def test_heartbeats_continue_during_completed(plane: Plane) -> None:
    answered = threading.Event()

    def completed(n: int) -> Any:
        if n == 0:
            plane.wait_for("heartbeat", len(plane.named("heartbeat")) + 2)
            answered.set()
        return None

    plane.answers["completed"] = completed
    with worker.task():
        plane.wait_for("heartbeat", 1)
    assert answered.is_set()


def test_completed_is_repeated_unchanged(plane: Plane) -> None:
    plane.answers["completed"] = lambda n: [DROP, (503, {}), None][min(n, 2)]
    with worker.task():
        pass
    calls = plane.named("completed")
    assert len(calls) == 3
    assert calls[0].body == calls[2].body


def test_refused_result_is_not_repeated(plane: Plane) -> None:
    plane.answers["completed"] = lambda n: (409, {"error": "attempt_mismatch"})
    with pytest.raises(worker.Undelivered), worker.task():
        pass
    assert len(plane.named("completed")) == 1


def test_metrics_that_are_not_json_cost_no_result(plane: Plane) -> None:
    with worker.task() as task:
        task.metrics["bad"] = float("inf")
        task.metrics["odd"] = {1: object()}
    done = plane.completed()
    assert done["outcome"] == "SUCCEEDED"
    assert "bad" not in done["metrics"]


def test_renewed_token_and_urls_are_used(plane: Plane) -> None:
    renewal = {
        "taskToken": "renewed",
        "output": {"url": plane.url + "/put?signature=new", "key": "exports/1/new"},
    }
    plane.answers["heartbeat"] = lambda n: (200, {"acknowledged": True, "shouldCancel": False, **renewal})
    with worker.task() as task:
        plane.wait_for("heartbeat", 2)
        task.output(b"abc")
    assert plane.named("completed")[0].headers["Authorization"] == "Bearer renewed"
    assert plane.completed()["output"]["outputPath"] == "exports/1/new"
    assert "Authorization" not in plane.named("put")[0].headers


def test_output_of_each_kind(plane: Plane, tmp_path: Path) -> None:
    content = os.urandom(200_000)
    path = tmp_path / "out.bin"
    path.write_bytes(content)
    plane.answers["put"] = lambda n: (503, {}) if n == 0 else None
    with worker.task() as task:
        task.output(path, content_type="image/png")
        task.output(io.BytesIO(content), file_name="b.bin")
        reader, writer = os.pipe()
        os.write(writer, b"piped")
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            task.output(pipe)
        task.output(b"")
        task.output(str(path))
    puts = plane.named("put")
    assert [len(call.body) for call in puts] == [200_000, 200_000, 200_000, 5, 0, 200_000]
    assert puts[1].headers["Content-Type"] == "image/png"
    assert puts[1].headers["X-A"] == "b"
    assert plane.completed()["output"] == {
        "outputPath": "exports/1/output",
        "byteSize": 200_000,
        "digest": "sha256:" + hashlib.sha256(content).hexdigest(),
        "fileName": "out.bin",
    }


@pytest.mark.parametrize("kind", ["text/plain\r\nX-A: c", "text/é"])
def test_malformed_content_type_is_not_sent(plane: Plane, kind: str) -> None:
    with pytest.raises(worker.Failure, match="content_type"), worker.task() as task:
        task.output(b"abc", content_type=kind)
    assert plane.named("put") == []
    assert plane.completed()["error"]["retryable"] is False


def test_deeply_nested_answer_is_malformed(plane: Plane) -> None:
    plane.answers["completed"] = lambda n: (200, {"raw": b"[" * 60_000})
    with worker.task():
        pass
    assert len(plane.named("completed")) == 1


def test_refused_url_asks_for_a_new_one(plane: Plane, envelope: Any) -> None:
    envelope(heartbeatIntervalMs=60_000)
    plane.answers["put"] = lambda n: (403, {}) if n == 0 else None
    with worker.task() as task:
        plane.wait_for("heartbeat", 1)
        task.output(b"abc")
    assert len(plane.named("heartbeat")) >= 2
    assert plane.completed()["output"]["byteSize"] == 3


def test_input_is_read_and_checked(plane: Plane, envelope: Any) -> None:
    envelope(program={"input": {"url": plane.url + "/input?s=1", "size": 5}, "successCodes": [0]})
    plane.answers["input"] = lambda n: (200, {"raw": b"hel" if n == 0 else b"hello"})
    with worker.task() as task:
        assert task.input() == b"hello"
    assert len(plane.named("input")) == 2


def test_absent_input_is_empty(plane: Plane) -> None:
    with worker.task() as task:
        assert task.input() == b""


def test_deadline_is_a_timeout(plane: Plane, envelope: Any) -> None:
    envelope(resources={"timeoutMs": 1500})
    with pytest.raises(worker.DeadlineReached), worker.task() as task:
        assert task.wait_cancelled(30)
        assert task.cancel_reason == "deadline"
        task.check()
    assert plane.completed()["error"]["category"] == "TIMEOUT"


def test_output_is_sent_in_order(plane: Plane) -> None:
    import base64

    with worker.task(send_output=True) as task:
        print("grüße", file=task.stdout)
        task.stderr.write("oh\n")
        task.stdout.write("x" * 50_000)
    assert plane.named("started")[0].fields["sendsOutput"] is True
    calls = [call.fields for call in plane.named("logs")]
    assert [c["sequence"] for c in calls] == list(range(1, len(calls) + 1))
    assert [c["stream"] for c in calls[:2]] == ["stdout", "stderr"]
    data = [(c["stream"], base64.b64decode(c["data"])) for c in calls]
    assert b"".join(d for s, d in data if s == "stdout") == "grüße\n".encode() + b"x" * 50_000
    assert all(len(c["data"]) <= 32 << 10 and c["ageMs"] >= 1 for c in calls)
    assert plane.calls[-1].name == "completed"


def test_unanswered_output_is_repeated_and_lost_output_counted(plane: Plane) -> None:
    plane.answers["logs"] = lambda n: (403, {}) if n == 1 else (DROP if n == 0 else None)
    with worker.task(send_output=True) as task:
        task.stdout.write("abc\n")
    calls = plane.named("logs")
    assert [c.fields["sequence"] for c in calls] == [1, 1]
    assert plane.completed()["metrics"]["outputBytesLost"] == 4


def test_output_of_an_outage_is_bounded(plane: Plane) -> None:
    from sortie.worker._logs import Outbox

    box = Outbox()
    for _ in range(100):
        box.add("stdout", b"y" * 20_000)
    held = 0
    first = box.take()
    assert first is not None
    assert first.data.startswith(b"\n[")
    while (chunk := box.take()) is not None:
        held += len(chunk.data)
    assert held < 800_000


def test_cancel_of_an_answer_to_output(plane: Plane, envelope: Any) -> None:
    envelope(heartbeatIntervalMs=60_000)
    plane.answers["logs"] = lambda n: (200, {"acknowledged": True, "shouldCancel": True, "cancelReason": "r"})
    with pytest.raises(worker.Cancelled), worker.task(send_output=True) as task:
        print("x", file=task.stdout)
        assert task.wait_cancelled(20)
        task.check()
    assert plane.completed()["outcome"] == "CANCELLED"


def test_work_that_does_not_stop_ends_with_its_process(plane: Plane) -> None:
    from sortie.worker import _attempt, _envelope

    codes: list[int] = []
    exited = threading.Event()

    def exit_process(code: int) -> None:
        codes.append(code)
        exited.set()

    plane.answers["heartbeat"] = lambda n: cancel()
    attempt = _attempt.Attempt(
        _envelope.parse(plane.envelope(cancelGracePeriodMs=500)),
        log=logging.getLogger("sortie"),
        signals=False,
        exit_process=exit_process,
    )
    attempt.start()
    assert exited.wait(30)
    assert codes == [1]
    assert plane.completed()["outcome"] == "CANCELLED"
    attempt.close()


def test_async_work(plane: Plane) -> None:
    async def work() -> None:
        async with worker.atask() as task:
            assert await task.input() == b""
            assert not await task.wait_cancelled(0.01)
            await task.output(b"abc", content_type="text/plain")

    asyncio.run(work())
    assert plane.named("started")[0].fields["handlesSigterm"] is True
    assert plane.completed()["output"]["byteSize"] == 3


def test_async_cancel_as_flag(plane: Plane) -> None:
    plane.answers["heartbeat"] = lambda n: cancel() if n else None

    async def work() -> None:
        async with worker.atask() as task:
            await task.wait_cancelled()
            task.check()

    with pytest.raises(worker.Cancelled):
        asyncio.run(work())
    assert plane.completed()["outcome"] == "CANCELLED"


def test_async_cancel_raises(plane: Plane) -> None:
    plane.answers["heartbeat"] = lambda n: cancel() if n else None

    async def work() -> None:
        async with worker.atask(on_cancel="raise"):
            await asyncio.sleep(60)

    with pytest.raises(worker.Cancelled):
        asyncio.run(work())
    assert plane.completed()["outcome"] == "CANCELLED"


def test_heartbeats_continue_while_the_loop_is_blocked(plane: Plane) -> None:
    async def work() -> None:
        async with worker.atask():
            before = len(plane.named("heartbeat"))
            time.sleep(1.5)  # noqa: ASYNC251
            assert len(plane.named("heartbeat")) >= before + 3

    asyncio.run(work())


def test_off_the_main_thread(plane: Plane) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with worker.task():
                plane.wait_for("heartbeat", 2)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert not failures
    assert plane.named("started")[0].fields["handlesSigterm"] is False


def test_raise_off_the_main_thread_is_refused(plane: Plane) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def work() -> None:
        with worker.task(on_cancel="raise"):
            pass

    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="main thread"):
        pool.submit(work).result(30)
    assert not plane.calls


def test_signals_of_others_are_passed_on(plane: Plane) -> None:
    got: list[int] = []
    previous = signal.signal(signal.SIGUSR1, lambda number, frame: got.append(number))
    try:
        with worker.task():
            os.kill(os.getpid(), signal.SIGUSR1)
            plane.wait_for("heartbeat", 2)
        assert got == [signal.SIGUSR1]
        assert signal.set_wakeup_fd(-1) == -1
    finally:
        signal.signal(signal.SIGUSR1, previous)


def test_no_task_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TASK_ENVELOPE", raising=False)
    with pytest.raises(worker.NoTask), worker.task():
        pass


def test_invalid_envelope_names_every_problem_and_no_value(plane: Plane, envelope: Any) -> None:
    envelope(
        taskId="a/b", attempt=0, callbackBaseUrl="ftp://secret", taskToken="se cret", heartbeatIntervalMs=-1,
        deadline="soon-secret", output={"url": "secret"}, program={"input": {"url": "file:///secret"}},
    )  # fmt: skip
    with pytest.raises(worker.InvalidEnvelope) as caught, worker.task():
        pass
    text = str(caught.value)
    for name in ("taskId", "attempt", "callbackBaseUrl", "taskToken", "heartbeatIntervalMs", "deadline",
                 "output.url", "program.input.url"):  # fmt: skip
        assert name in text
    assert "cret" not in text


@pytest.mark.parametrize("text", ["{", "[]", '"x"', "{}", "null"])
def test_malformed_envelope(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASK_ENVELOPE", text)
    with pytest.raises(worker.InvalidEnvelope), worker.task():
        pass


def test_main_returns_exit_codes(plane: Plane, envelope: Any, capsys: pytest.CaptureFixture[str]) -> None:
    @worker.main
    def good(task: worker.Task) -> None:
        task.progress(1)

    @worker.main(send_output=True)
    def bad(task: worker.Task) -> None:
        raise ValueError("words")

    @worker.main
    async def waiting(task: worker.AsyncTask) -> None:
        await asyncio.sleep(0)

    assert good() == 0
    assert good() == 2  # the envelope was taken
    envelope()
    assert bad() == 1
    assert "ValueError: words" in capsys.readouterr().err
    envelope()
    assert waiting() == 0


def test_backoff_is_bounded() -> None:
    for failures in range(100):
        assert 0 <= backoff(failures, 0.5, 30) <= 30
