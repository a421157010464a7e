"""Runs a `provided.*` bootstrap as a plain process: LAMBDA_RUNTIME_EXECUTOR=local-process.

An executor is one execution environment with one invocation at a time. If its process dies, the current invocation
fails, as on AWS, and the next one gets a new process.
"""

import json
import logging
import os
import queue
import re
import subprocess
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from localstack import config
from localstack.services.lambda_.invocation.executor_endpoint import StatusErrorException
from localstack.services.lambda_.invocation.lambda_models import FunctionVersion, InvocationResult
from localstack.services.lambda_.invocation.plugins import RuntimeExecutorPlugin
from localstack.services.lambda_.invocation.runtime_executor import RuntimeExecutor
from sortie_localstack.streaming import SINKS

LOG = logging.getLogger(__name__)
API = "/2018-06-01/runtime"
ANSWER = re.compile(rf"^{API}/invocation/([^/]+)/(response|error)$")
TRAILER_OF_FAILURE = b"lambda-runtime-function-error-type:"


def failure(kind: str, message: str) -> StatusErrorException:
    payload = json.dumps({"errorType": kind, "errorMessage": message}).encode()
    return StatusErrorException(message, payload=payload)


class RuntimeAPI(BaseHTTPRequestHandler):
    """The Runtime API of one process."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm, wbufsize = True, 1 << 16  # otherwise each request waits 40 ms for a delayed acknowledgement

    def log_message(self, *args):
        pass

    def _send(self, code, body=b"", headers=()):
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path != f"{API}/invocation/next":
            self._send(404)
            return
        process = self.server.process
        if not process.ready.done():
            process.ready.set_result(True)
        invocation = process.invocations.get()
        if invocation is None:  # the process is gone
            self.close_connection = True
            return
        self._send(
            200,
            invocation["payload"].encode(),
            [
                ("Content-Type", "application/json"),
                ("Lambda-Runtime-Aws-Request-Id", invocation["invoke-id"]),
                ("Lambda-Runtime-Deadline-Ms", str(int((time.time() + process.timeout) * 1000))),
                ("Lambda-Runtime-Invoked-Function-Arn", invocation["invoked-function-arn"]),
                ("Lambda-Runtime-Trace-Id", invocation["trace-id"]),
            ],
        )

    def do_POST(self):
        answer = ANSWER.match(self.path)
        sink = SINKS.get(answer[1]) if answer and answer[2] == "response" else None
        body, failed = self._read(sink)
        process = self.server.process
        if self.path == f"{API}/init/error":
            if not process.ready.done():
                process.ready.set_exception(StatusErrorException("init error", payload=body))
        elif answer:
            process.finish((answer[1], body, failed or answer[2] == "error"))
        else:
            self._send(404)
            return
        self._send(202, b'{"status":"OK"}')

    def _read(self, sink):
        """The whole body, and whether its trailers report a failure after the first byte."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if sink:
                sink.feed(body)
            return body, False
        chunks, failed = [], False
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
            if sink:
                sink.feed(chunks[-1])
        while (line := self.rfile.readline()) not in (b"\r\n", b"\n", b""):
            failed = failed or line.lower().startswith(TRAILER_OF_FAILURE)
        return b"".join(chunks), failed


class RuntimeServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        LOG.debug("a bootstrap has left its connection", exc_info=True)


class Process:
    """A running bootstrap with its own Runtime API, which ends with it."""

    def __init__(self, code, env: dict[str, str], timeout: int):
        self.timeout = timeout
        self.invocations: queue.Queue = queue.Queue()
        self.ready: Future = Future()
        self.result: Future | None = None
        self._lock, self._lines = threading.Lock(), []
        self._server = RuntimeServer(("127.0.0.1", 0), RuntimeAPI)
        self._server.process = self
        env = {**env, "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self._server.server_address[1]}"}
        try:
            self._child = subprocess.Popen(
                [str(code / "bootstrap")],
                cwd=str(code),
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError:
            self._server.server_close()
            raise
        for work in (self._server.serve_forever, self._read_log, self._await_end):
            threading.Thread(target=work, daemon=True).start()

    def _read_log(self):
        for line in self._child.stdout:
            with self._lock:
                self._lines.append(line.decode(errors="replace"))

    def _await_end(self):
        code = self._child.wait()
        gone = failure("Runtime.ExitError", f"Runtime exited with error: exit status {code}")
        if not self.ready.done():
            self.ready.set_exception(gone)
        self.finish(gone)
        self.invocations.put(None)
        self._server.shutdown()
        self._server.server_close()

    def finish(self, outcome):
        result = self.result
        if result is None or result.done():
            return
        if isinstance(outcome, Exception):
            result.set_exception(outcome)
        else:
            result.set_result(outcome)

    def lives(self) -> bool:
        return self._child.poll() is None

    def kill(self):
        self._child.kill()

    def invoke(self, invocation: dict[str, str]):
        with self._lock:
            self._lines.clear()
        self.result = Future()
        self.invocations.put(invocation)
        if not self.lives():  # it died before the invocation reached it
            self.finish(failure("Runtime.ExitError", "Runtime exited"))
        return self.result.result(timeout=self.timeout)

    def log(self) -> str:
        with self._lock:
            return "".join(self._lines)


class LocalProcessExecutor(RuntimeExecutor):
    def __init__(self, id: str, function_version: FunctionVersion) -> None:
        super().__init__(id=id, function_version=function_version)
        self._env: dict[str, str] = {}
        self._process: Process | None = None

    def start(self, env_vars: dict[str, str]) -> None:
        code = self.function_version.config.code.get_unzipped_code_location()
        host = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        # The table is called directly: most calls are for it, and each would cost LocalStack 5 ms.
        table = {"AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{config.DYNAMODB_LOCAL_PORT}"} if config.DYNAMODB_LOCAL_PORT else {}
        trust = {"SSL_CERT_FILE": os.environ["SORTIE_FUNCTIONS_TRUST"]} if "SORTIE_FUNCTIONS_TRUST" in os.environ else {}
        given = {k: str(v) for k, v in env_vars.items()}
        self._env = {**host, "LANG": "en_US.UTF-8", **table, **trust, **given, "LAMBDA_TASK_ROOT": str(code)}
        self._start()  # if it takes too long, LocalStack calls stop

    def _start(self, patience=None):
        version = self.function_version.config
        self._process = Process(version.code.get_unzipped_code_location(), self._env, version.timeout)
        try:
            self._process.ready.result(timeout=patience)
        except StatusErrorException:
            time.sleep(0.05)  # for the last lines of the log, which come by a pipe
            LOG.warning("%s does not start: %s", self.function_version.id.function_name, self._process.log())
            raise

    def stop(self) -> None:
        if self._process:
            self._process.kill()

    def invoke(self, payload: dict[str, str]) -> InvocationResult:
        request_id, started = payload["invoke-id"], time.time()
        try:
            if not self._process.lives():
                self._start(self._process.timeout)
            answered, body, is_error = self._process.invoke(payload)
        except FutureTimeout:  # LocalStack drops an environment that raises, and so stops the process
            limit = f"{self._process.timeout}.00 seconds"
            raise failure("Sandbox.Timedout", f"RequestId: {request_id} Error: Task timed out after {limit}") from None
        time.sleep(0.005)  # for the last lines of the log, which come by a pipe
        report = f"REPORT RequestId: {request_id}\tDuration: {(time.time() - started) * 1000:.2f} ms\n"
        version = self.function_version.id.qualifier
        logs = f"START RequestId: {request_id} Version: {version}\n{self._process.log()}END RequestId: {request_id}\n{report}"
        return InvocationResult(request_id=answered, payload=body, is_error=is_error, logs=logs)

    def get_address(self) -> str:
        return "127.0.0.1"

    def get_endpoint_from_executor(self) -> str:
        return "127.0.0.1"

    def get_runtime_endpoint(self) -> str:
        return f"http://127.0.0.1:{config.GATEWAY_LISTEN[0].port}/_localstack_lambda/{self.id}"

    def get_logs(self) -> str:
        return self._process.log() if self._process else ""

    @classmethod
    def prepare_version(cls, function_version: FunctionVersion) -> None:
        if function_version.config.code:
            function_version.config.code.prepare_for_execution()

    @classmethod
    def cleanup_version(cls, function_version: FunctionVersion) -> None:
        pass

    @classmethod
    def validate_environment(cls) -> bool:
        return True


class LocalProcessPlugin(RuntimeExecutorPlugin):
    name = "local-process"

    def load(self, *args, **kwargs):
        return LocalProcessExecutor
