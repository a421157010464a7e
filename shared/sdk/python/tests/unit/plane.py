"""A control plane for one worker, in this process."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, Any]]
DROP: Answer = (0, {})


class Call:
    """One request."""

    def __init__(self, name: str, headers: Any, body: bytes) -> None:
        self.at = time.monotonic()
        self.name = name
        self.headers = dict(headers.items())
        self.body = body
        try:
            self.fields = json.loads(body)
        except ValueError:
            self.fields = {}


class Plane:
    """Answers calls, and records them. answers has a function for each call by name."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.answers: dict[str, Callable[[int], Answer | None]] = {}
        self._changed = threading.Condition()
        plane = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _handle(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                name = self.path.split("?")[0].rsplit("/", 1)[1]
                status, answer = plane.answer(Call(name, self.headers, body))
                if status == 0:
                    self.close_connection = True
                    return
                content = answer["raw"] if "raw" in answer else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                for key, value in answer.get("headers", {}).items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_PUT = do_GET = _handle

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def answer(self, call: Call) -> Answer:
        with self._changed:
            n = len(self.named(call.name))
            self.calls.append(call)
            self._changed.notify_all()
            special = self.answers.get(call.name)
        given = special(n) if special else None
        if given is not None:
            return given
        usual: dict[str, Any] = {"acknowledged": True, "serverTime": "2026-01-02T03:04:05Z"}
        if call.name in ("heartbeat", "logs"):
            usual["shouldCancel"] = False
        if call.name == "completed":
            usual["finalState"] = call.fields.get("outcome")
        return 200, usual

    def named(self, name: str) -> list[Call]:
        return [call for call in self.calls if call.name == name]

    def wait_for(self, name: str, count: int = 1, timeout: float = 30) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.named(name)) >= count, timeout), f"no {name}"

    def completed(self) -> dict[str, Any]:
        calls = self.named("completed")
        assert calls, "no completed"
        fields: dict[str, Any] = calls[-1].fields
        return fields

    def envelope(self, **more: Any) -> str:
        members = {
            "taskId": "task.1~a",
            "runId": "job:2026",
            "tenantId": "t",
            "workspaceId": "w",
            "attempt": 2,
            "callbackBaseUrl": self.url + "/edge/",
            "taskToken": "secret-token",
            "tokenExpiresAt": "2026-01-02T03:04:05Z",
            "heartbeatIntervalMs": 200,
            "heartbeatTimeoutMs": 30_000,
            "cancelGracePeriodMs": 10_000,
            "output": {
                "url": self.url + "/put?signature=x",
                "key": "exports/1/output",
                "headers": {"X-A": "b"},
            },
            "unknown": {"nested": True},
        }
        members.update(more)
        return json.dumps({name: value for name, value in members.items() if value is not None})


def cancel(reason: str = "not needed") -> Answer:
    return 200, {"acknowledged": True, "shouldCancel": True, "cancelReason": reason}
