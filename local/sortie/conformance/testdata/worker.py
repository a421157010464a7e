"""A worker that implements the worker contract with Python's standard library.

It works for --seconds. --broken makes it commit one mistake of the list BROKEN,
which the conformance kit has to find. --plain makes it know no extension of
Sortie's: it keeps the contract's text.
"""

import argparse
import base64
import datetime
import http.client
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
import urllib.parse
import uuid

BROKEN = """hard-coded-attempt new-worker-id-each-time no-started ignores-409
own-interval gives-up-heartbeats hammers ignores-410 ignores-cancel
cancel-as-success ignores-sigterm token-in-address prints-token
local-time completed-forever two-outcomes no-completed
unknown-category text-progress heartbeats-after-end token-to-bucket
no-content-type never-ends crashes output-gap output-not-base64""".split()


class Aborted(Exception):
    """The control plane refused this attempt."""


class Cancelled(Exception):
    """A cancel was requested. The worker reports CANCELLED."""


class Worker:
    def __init__(self, envelope, broken, plain):
        self.envelope = envelope
        self.plain = plain
        self.broken = broken
        self.token = envelope["taskToken"]
        self.worker_id = "python-" + uuid.uuid4().hex
        self.stop = threading.Event()  # the work has to stop
        self.finished = threading.Event()  # no more calls
        self.why = None
        self.progress = 0
        self.sequence = 0

    # post makes one call and returns the status and the answer. It raises OSError
    # if there is no answer.
    def post(self, endpoint, body):
        body["attempt"] = 1 if self.broken == "hard-coded-attempt" else self.envelope["attempt"]
        body["workerId"] = self.worker_id
        if self.broken == "new-worker-id-each-time":
            body["workerId"] = uuid.uuid4().hex
        base = self.envelope["callbackBaseUrl"].rstrip("/")
        path = "/v1/tasks/" + urllib.parse.quote(self.envelope["taskId"], safe="~:") + "/" + endpoint
        if self.broken == "token-in-address":
            path += "?token=" + self.token
        headers = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"}
        if self.broken == "no-content-type":
            headers["Content-Type"] = "text/plain"
        return request("POST", base + path, json.dumps(body).encode(), headers)

    def now(self):
        if self.broken == "local-time":
            return datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S")
        return datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")

    # pause sleeps with full jitter: a random part of a bound that doubles.
    def pause(self, failures, first, longest):
        time.sleep(random.random() * min(longest, first * 2 ** min(failures, 20)))

    def started(self):
        for failures in range(1000):
            try:
                status, _ = self.post("started", {
                    "startedAt": self.now(),
                    **({} if self.plain else {"handlesSigterm": True}),
                })
            except (OSError, http.client.HTTPException):
                status = 503
            if self.plain:
                return
            if status == 409 and self.broken != "ignores-409":
                raise Aborted("started was answered with 409")
            if status < 500:
                return
            self.pause(failures, 0.1, 5)

    # output sends a chunk until it is answered; the worker does not need that.
    def output(self, stream, text):
        self.sequence += 2 if self.broken == "output-gap" else 1
        data = base64.b64encode(text.encode()).decode()
        if self.broken == "output-not-base64":
            data = text
        for failures in range(5):
            try:
                status, _ = self.post("logs", {"stream": stream, "sequence": self.sequence, "data": data})
                if status < 500:
                    return
            except (OSError, http.client.HTTPException):
                pass
            self.pause(failures, 0.1, 1)

    def heartbeats(self):
        interval = self.envelope.get("heartbeatIntervalMs", 30000) / 1000
        if self.broken == "own-interval":
            interval = 30
        failures = 0
        wait = interval
        while not self.finished.wait(wait):
            try:
                wait = interval
                self.heartbeat()
                failures = 0
            except (OSError, http.client.HTTPException):
                if self.broken == "gives-up-heartbeats":
                    return
                wait = random.random() * min(interval, interval / 8 * 2 ** min(failures, 20))
                if self.broken == "hammers":
                    wait = 0
                failures += 1
            except Aborted as why:
                if self.broken != "ignores-410":
                    self.end(why)
                    return

    def heartbeat(self):
        percent = 33.4 if self.plain else self.progress
        if self.broken == "text-progress":
            percent = "33"
        status, answer = self.post("heartbeat", {
            "heartbeatAt": self.now(), "progressPct": percent, "message": "working",
        })
        if status >= 500:
            raise OSError("the answer was %d" % status)
        if status in (409, 410):
            raise Aborted("a heartbeat was answered with %d" % status)
        if answer.get("taskToken") and not self.plain:
            self.token = answer["taskToken"]
        if answer.get("shouldCancel") and self.broken != "ignores-cancel":
            self.end(Cancelled(answer.get("cancelReason", "")))

    def end(self, why):
        self.why = self.why or why
        self.stop.set()

    def completed(self, body):
        body["completedAt"] = self.now()
        body["metrics"] = {"cpuTimeMs": int(time.process_time() * 1000)}
        failures = 0
        while True:
            try:
                status, _ = self.post("completed", body)
            except (OSError, http.client.HTTPException):
                status = 503
            again = status >= 500 or status in (401, 408, 429)
            if self.plain:
                again = False
            if self.broken == "completed-forever":
                again = status != 200
            if self.broken == "two-outcomes" and again:
                body["outcome"] = "FAILED"
                body["error"] = {"category": "INFRASTRUCTURE", "message": "no answer"}
            if not again:
                return
            self.pause(failures, 0.1, 5)
            failures += 1

    def upload(self, where, text):
        if where is None:
            return
        headers = dict(where.get("headers", {}))
        if self.broken == "token-to-bucket":
            headers["Authorization"] = "Bearer " + self.token
        for failures in range(1000):
            try:
                status, _ = request("PUT", where["url"], text, headers)
            except (OSError, http.client.HTTPException):
                status = 503
            if status < 300:
                return
            if status < 500 or self.stop.is_set():
                break
            self.pause(failures, 0.1, 5)
        raise self.why or OSError("the upload was answered with %d" % status)

    def work(self, seconds):
        begun = time.monotonic()
        while time.monotonic() - begun < seconds:
            if self.stop.wait(0.02):
                raise self.why
            self.progress = min(100, int(100 * (time.monotonic() - begun) / seconds))
        if self.broken == "unknown-category":
            raise KeyError("missing_column")
        output = self.envelope.get("output")
        self.upload(output, b"done\n")
        return {"outcome": "SUCCEEDED", "output": {"outputPath": output["key"], "byteSize": 5} if output else {}}

    def run(self, seconds):
        if self.broken == "prints-token":
            print("token", self.token, file=sys.stderr)
        if self.broken != "no-started":
            self.started()
        if not self.plain:
            self.output("stdout", "working\n")
            self.output("stderr", "slowly\n")
        if self.broken == "crashes":
            raise KeyError("missing configuration")
        heartbeats = threading.Thread(target=self.heartbeats, daemon=True)
        heartbeats.start()
        try:
            body = self.work(seconds)
        except Cancelled as why:
            body = {"outcome": "CANCELLED", "cancelledDuringPhase": "processing",
                    "partialProgress": {"percent": self.progress}}
            if self.broken == "cancel-as-success":
                body = {"outcome": "SUCCEEDED"}
        except Exception as why:  # of the work
            if isinstance(why, Aborted):
                raise
            body = {"outcome": "FAILED", "error": {
                "category": "OTHER" if self.broken == "unknown-category" else "USER_CODE",
                "message": repr(why), "stackTrace": traceback.format_exc(), "retryable": True,
            }}
        if self.broken != "no-completed":
            self.completed(body)
        if self.broken == "heartbeats-after-end":
            time.sleep(2)
        self.finished.set()
        heartbeats.join(timeout=1)
        if self.broken == "never-ends":
            time.sleep(3600)


def request(method, address, body, headers):
    url = urllib.parse.urlsplit(address)
    connect = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = connect(url.netloc, timeout=10)
    try:
        path = url.path + ("?" + url.query if url.query else "")
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, {}
    finally:
        connection.close()


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("--seconds", type=float, default=3)
    flags.add_argument("--broken", choices=BROKEN)
    flags.add_argument("--plain", action="store_true")
    args = flags.parse_args()
    worker = Worker(json.loads(os.environ["TASK_ENVELOPE"]), args.broken, args.plain)
    if args.broken == "ignores-sigterm":
        signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    else:
        # The answer to the next heartbeat has the cancel request.
        signal.signal(signal.SIGTERM, lambda *_: worker.end(Cancelled("SIGTERM")))
    try:
        worker.run(args.seconds)
    except Aborted as why:
        print("aborted:", why, file=sys.stderr)
        worker.finished.set()
        sys.exit(1)


main()
