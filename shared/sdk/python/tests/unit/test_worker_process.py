"""The worker as a process of its own: signals, forks, the GIL."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from plane import Plane, cancel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


def start(plane: Plane, code: str) -> subprocess.Popen[str]:
    env = {**os.environ, "TASK_ENVELOPE": os.environ["TASK_ENVELOPE"]}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def end(process: subprocess.Popen[str], timeout: float = 60) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


WORK = """
    import sys, time
    from sortie import worker
    @worker.main
    def work(task):
        while not task.wait_cancelled(0.1):
            pass
        task.check()
    sys.exit(work())
"""


def test_sigterm_with_a_cancel_is_a_cancel(plane: Plane) -> None:
    terminated = False
    plane.answers["heartbeat"] = lambda n: cancel() if terminated else None
    process = start(plane, WORK)
    plane.wait_for("heartbeat", 2)
    terminated = True
    process.send_signal(signal.SIGTERM)
    code, _, err = end(process)
    assert plane.completed()["outcome"] == "CANCELLED", err
    assert code == 1


def test_sigterm_without_a_cancel_is_not_reported(plane: Plane) -> None:
    process = start(plane, WORK)
    plane.wait_for("heartbeat", 2)
    before = len(plane.named("heartbeat"))
    process.send_signal(signal.SIGTERM)
    code, _, err = end(process)
    assert code == 143, err
    assert not plane.named("completed")
    assert len(plane.named("heartbeat")) > before


def test_sigterm_in_a_system_call(plane: Plane) -> None:
    """The main thread is not in the interpreter; the cancel ends its call."""
    process = start(
        plane,
        """
        import os, sys
        from sortie import worker
        @worker.main(on_cancel="raise")
        def work(task):
            reader, _ = os.pipe()
            os.read(reader, 1)
        sys.exit(work())
        """,
    )
    plane.answers["heartbeat"] = lambda n: cancel() if n >= 3 else None
    plane.wait_for("heartbeat", 2)
    process.send_signal(signal.SIGTERM)
    code, _, err = end(process)
    assert code in (1, 143), err


def test_sigterm_in_async_work(plane: Plane) -> None:
    process = start(
        plane,
        """
        import asyncio, sys
        from sortie import worker
        @worker.main(on_cancel="raise")
        async def work(task):
            await asyncio.sleep(60)
        sys.exit(work())
        """,
    )
    plane.wait_for("heartbeat", 2)
    process.send_signal(signal.SIGTERM)
    code, _, err = end(process)
    assert code == 143, err
    assert not plane.named("completed")


def test_sigterm_during_completed_changes_nothing(plane: Plane) -> None:
    process: list[subprocess.Popen[str]] = []

    def completed(n: int) -> None:
        process[0].send_signal(signal.SIGTERM)
        before = len(plane.named("heartbeat"))
        plane.wait_for("heartbeat", before + 2)

    plane.answers["completed"] = completed
    process.append(
        start(
            plane,
            """
            import sys, time
            from sortie import worker
            @worker.main(on_cancel="raise")
            def work(task):
                time.sleep(1)
            sys.exit(work())
            """,
        )
    )
    code, _, err = end(process[0])
    assert code == 0, err
    assert plane.completed()["outcome"] == "SUCCEEDED"


def test_busy_threads_do_not_delay_heartbeats(plane: Plane) -> None:
    process = start(
        plane,
        """
        import sys, time
        from sortie import worker
        @worker.main
        def work(task):
            end = time.monotonic() + 5
            while time.monotonic() < end:
                sum(range(1000))
        sys.exit(work())
        """,
    )
    code, _, err = end(process)
    assert code == 0, err
    beats = [call.at for call in plane.named("heartbeat")]
    assert len(beats) >= 6
    assert max(b - a for a, b in zip(beats, beats[1:], strict=False)) < 4


def test_a_child_does_not_report(plane: Plane) -> None:
    process = start(
        plane,
        """
        import os, signal, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        from sortie import worker
        @worker.main
        def work(task):
            child = os.fork()
            if child == 0:
                assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
                assert signal.set_wakeup_fd(-1) == -1
                task.progress(50, "of the child")
                return
            assert os.waitpid(child, 0)[1] == 0
            child = os.fork()
            if child == 0:
                signal.pause()
            os.kill(child, signal.SIGTERM)
            assert os.waitpid(child, 0)[1] == signal.SIGTERM
            assert not task.wait_cancelled(0.5)
        sys.exit(work())
        """,
    )
    code, _, err = end(process)
    assert code == 0, err
    assert len(plane.named("completed")) == 1
    assert len({call.fields["workerId"] for call in plane.calls}) == 1


def test_a_child_writes_output_although_a_thread_held_the_lock(plane: Plane) -> None:
    process = start(
        plane,
        """
        import os, signal, sys, threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        from sortie import worker
        held, forked = threading.Event(), threading.Event()
        def hold(outbox):
            with outbox._condition:
                held.set()
                forked.wait()
        @worker.main(send_output=True)
        def work(task):
            print("parent", file=task.stdout)
            threading.Thread(target=hold, args=(task._attempt.sender.outbox,)).start()
            held.wait()
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                print("child", file=task.stdout)
                os._exit(0)
            forked.set()
            assert os.waitpid(child, 0)[1] == 0
        sys.exit(work())
        """,
    )
    code, _, err = end(process)
    assert code == 0, err
    assert [base64.b64decode(call.fields["data"]) for call in plane.named("logs")] == [b"parent\n"]


def test_children_inherit_no_token(plane: Plane) -> None:
    process = start(
        plane,
        """
        import subprocess, sys
        from sortie import worker
        @worker.main
        def work(task):
            print(subprocess.run(["env"], capture_output=True, text=True).stdout)
        sys.exit(work())
        """,
    )
    code, out, err = end(process)
    assert code == 0, err
    assert "secret-token" not in out
    assert "TASK_ENVELOPE" not in out


def test_work_that_ignores_the_cancel_ends(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASK_ENVELOPE", plane.envelope(cancelGracePeriodMs=2000))
    plane.answers["heartbeat"] = lambda n: cancel() if n else None
    process = start(
        plane,
        """
        import sys
        from sortie import worker
        @worker.main
        def work(task):
            while True:
                sum(range(1000))
        sys.exit(work())
        """,
    )
    code, _, err = end(process)
    assert code == 1, err
    assert plane.completed()["outcome"] == "CANCELLED"


def test_asyncio_inside_of_a_task(plane: Plane) -> None:
    """Another wakeup socket replaces ours; SIGTERM is seen by its handler."""
    process = start(
        plane,
        """
        import asyncio, signal, sys
        from sortie import worker
        @worker.main
        def work(task):
            async def inner():
                asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, print)
                while not task.cancelled:
                    await asyncio.sleep(0.1)
            asyncio.run(inner())
            task.check()
        sys.exit(work())
        """,
    )
    plane.wait_for("heartbeat", 4)
    process.send_signal(signal.SIGTERM)
    code, _, err = end(process)
    assert code == 143, err
