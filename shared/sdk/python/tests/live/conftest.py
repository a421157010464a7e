"""A local system of its own: "sortie dev" on a free port, with its data in a temporary folder."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sortie.client import Client

SORTIE = os.environ.get("SORTIE_BIN", "sortie")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PATIENCE = 180.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class System:
    """A server that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.data.mkdir(mode=0o700)
        self.log = folder / "log.txt"
        self.address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self.address}"
        self.token = ""
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        env = {**os.environ, "SORTIE_HOOK_ALLOW": "127.0.0.1"}
        command = [SORTIE, "dev", "--addr", self.address, "--data", str(self.data), "--json"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log)
        assert self.process.stdout is not None
        timer = threading.Timer(PATIENCE, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        assert line, self.log.read_text()[-2000:]
        self.token = Path(json.loads(line)["tokenFile"]).read_text().strip()

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.communicate(timeout=PATIENCE)
            self.process = None


@pytest.fixture(scope="session")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    system = System(tmp_path_factory.mktemp("sortie"))
    system.start()
    yield system
    system.end()


@pytest.fixture
def client(system: System) -> Iterator[Client]:
    with Client(system.url, system.token) as client:
        yield client


@pytest.fixture
def environment(system: System) -> dict[str, str]:
    return {**os.environ, "SORTIE_URL": system.url, "SORTIE_TOKEN": system.token}


def python(code: str, **more: Any) -> dict[str, Any]:
    """Return the definition of a run of Python code as a worker."""
    import sys

    return {"image": f"exec:{sys.executable}", "command": ["-c", code], "completion": "callback", **more}
