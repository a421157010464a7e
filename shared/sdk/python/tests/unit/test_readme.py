"""The blocks of the README that need no server. The live suite runs the others."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from plane import Plane

TEXT = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(<!-- [^\n]* -->\n)?```python\n(.*?)```", TEXT, re.DOTALL)


def test_readme_is_short() -> None:
    assert len(TEXT.split()) <= 700


def test_worker_of_the_readme(plane: Plane, tmp_path: Path) -> None:
    code = next(block for _, block in BLOCKS if "worker.main" in block)
    path = tmp_path / "worker.py"
    path.write_text(code)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert plane.completed()["output"]["fileName"] == "pages.txt"


def test_receiver_of_the_readme(monkeypatch: pytest.MonkeyPatch) -> None:
    from test_webhooks import BODY, SECRET, headers

    code = next(block for _, block in BLOCKS if "webhooks.verify" in block)
    names: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), names)
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
    import time

    assert names["handle"](BODY, headers(at=int(time.time()))) == 204
    assert names["handle"](BODY, headers()) == 401
