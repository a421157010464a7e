"""The blocks of the README that need a server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PATIENCE

from sortie.client import Client

TEXT = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"<!-- needs a server -->\n```python\n(.*?)```", TEXT, re.DOTALL)


def test_there_are_blocks() -> None:
    assert len(BLOCKS) == 2


@pytest.mark.parametrize("code", BLOCKS)
def test_block(code: str, client: Client, environment: dict[str, str]) -> None:
    run = client.runs.create({"image": "exec:/bin/true"})
    client.runs.wait(run.run_id, timeout=PATIENCE)
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert "ompleted" in done.stdout
