"""The conformance kit, with workers of each kind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SORTIE = os.environ.get("SORTIE_BIN", "sortie")
ROOT = Path(__file__).resolve().parents[2]

#: Generous limits for a busy computer.
LIMITS = ["--timeout", "10s", "--abort", "10s", "--grace", "15s", "--limit", "120s"]


def check(worker: list[str], *flags: str) -> None:
    command = [SORTIE, "worker", "check", *LIMITS, *flags, "--", *worker]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


def python(tmp_path: Path, code: str) -> list[str]:
    path = tmp_path / "worker.py"
    path.write_text(textwrap.dedent(code))
    return [sys.executable, "-W", "error", str(path)]


def test_example_conforms() -> None:
    check([sys.executable, "-W", "error", str(ROOT / "examples" / "worker.py")])


def test_worker_of_the_readme_conforms(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code = next(b for b in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "worker.main" in b)
    check(python(tmp_path, code), "--only", "work,cancel")


BUSY = """
    import sys, time
    from sortie import worker
    @worker.main
    def work(task):
        end = time.monotonic() + 5
        while time.monotonic() < end:
            sum(range(1000))
            task.check()
    sys.exit(work())
"""

MATCH = """
    import re, sys, time
    from sortie import worker
    @worker.main
    def work(task):
        end = time.monotonic() + 5
        while time.monotonic() < end:
            re.match(r"(a|aa)+$", "a" * 24 + "b")  # holds the GIL for a while
            task.check()
    sys.exit(work())
"""

BLOCKED = """
    import asyncio, sys, time
    from sortie import worker
    @worker.main
    async def work(task):
        for _ in range(3):
            time.sleep(1.5)  # blocks the loop
            await asyncio.sleep(0)
            task.check()
    sys.exit(work())
"""

RAISING = """
    import sys, time
    from sortie import worker
    @worker.main(on_cancel="raise", send_output=True)
    def work(task):
        for n in range(40):
            print("step", n, file=task.stdout)
            time.sleep(0.1)
    sys.exit(work())
"""

DEAF = """
    import sys, time
    from sortie import worker
    @worker.main
    def work(task):
        end = time.monotonic() + 40
        while time.monotonic() < end:
            sum(range(1000))
    sys.exit(work())
"""


@pytest.mark.parametrize(
    ("code", "only"),
    [
        pytest.param(BUSY, "work,cancel,sigterm", id="busy loop"),
        pytest.param(MATCH, "work,cancel", id="long matches"),
        pytest.param(BLOCKED, "work,cancel,expired", id="blocked event loop"),
        pytest.param(RAISING, "work,cancel,sigterm,expired", id="raises"),
        pytest.param(DEAF, "cancel,expired", id="never checks"),
    ],
)
def test_conforms(code: str, only: str, tmp_path: Path) -> None:
    check(python(tmp_path, code), "--only", only)


def test_wrapped_program_that_never_yields_conforms(tmp_path: Path) -> None:
    wrapper = os.environ.get("SORTIE_EXEC_BIN", "sortie-exec")
    program = [sys.executable, "-c", "import time; time.sleep(4)"]
    check([wrapper, *program], "--only", "work,cancel")
