#!/usr/bin/env python3
"""A complete worker that needs only Python's standard library.

It writes an XML file in thirty steps. Replace work(); the rest is the worker
contract: started, heartbeats, output, cancellation, upload, completed.
"""

import base64
import datetime
import http.client
import json
import os
import random
import sys
import threading
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request
import uuid

STEPS = 30


def work(task):
    """Do the work and return the output's bytes."""
    lines = ['<steps task="%s">' % task.envelope["taskId"]]
    for step in range(1, STEPS + 1):
        task.check()
        time.sleep(0.1)
        task.say("step %d of %d\n" % (step, STEPS))
        lines.append('  <step n="%d"/>' % step)
        task.progress = {"progressPct": 100 * step // STEPS, "message": "step %d of %d" % (step, STEPS)}
    return "\n".join(lines + ["</steps>", ""]).encode()


class Cancelled(Exception):
    """The control plane asked the task to stop and expects completed."""


class Aborted(Exception):
    """The attempt is over for the control plane: report nothing more."""


class Task:
    """One attempt, from started to completed."""

    def __init__(self, envelope):
        self.envelope = envelope
        self.token = envelope["taskToken"]
        self.target = envelope.get("output")  # where to upload; absent without a bucket
        self.worker_id = "python-" + uuid.uuid4().hex
        self.progress = {}
        self.stop = None  # the exception that ends the work
        self.finished = threading.Event()
        self.output = bytearray()  # not sent yet
        self.sequence = 1  # of the next chunk of output
        self.silent = threading.Event()  # no more output
        self.heartbeats = threading.Thread(target=self.beat, daemon=True)
        self.talking = threading.Thread(target=self.talk, daemon=True)

    def check(self):
        """Raise Cancelled or Aborted when the work has to stop."""
        if self.stop:
            raise self.stop

    def say(self, text):
        """Write to the task's output, which clients read while the work runs."""
        self.output += text.encode()  # a worker that prints much limits what it holds

    def talk(self):
        """Send the output: every 2 seconds while a client follows it, or else every 30."""
        interval = 2
        while not self.silent.wait(interval) or self.output:
            while self.output:
                data = bytes(self.output[:24000])
                chunk = {"stream": "stdout", "sequence": self.sequence, "data": base64.b64encode(data).decode()}
                status, answer = repeat(lambda: self.post("logs", chunk))
                if status != 200:
                    return
                del self.output[: len(data)]
                self.sequence += 1
                interval = 2 if answer.get("followed") else 30
                if answer.get("shouldCancel"):
                    self.stop = Cancelled(answer.get("cancelReason", ""))

    def post(self, endpoint, fields):
        path = "/v1/tasks/" + urllib.parse.quote(self.envelope["taskId"], safe=":") + "/" + endpoint
        fields = dict(fields, attempt=self.envelope["attempt"], workerId=self.worker_id)
        headers = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"}
        return send("POST", self.envelope["callbackBaseUrl"].rstrip("/") + path, json.dumps(fields).encode(), headers)

    def started(self):
        status, _ = repeat(lambda: self.post("started", {"startedAt": now(), "sendsOutput": True}))
        if status != 200:
            raise Aborted("started was answered with %d" % status)
        self.heartbeats.start()
        self.talking.start()

    def beat(self):
        interval = self.envelope.get("heartbeatIntervalMs", 30000) / 1000
        failures, wait = 0, interval
        while not self.finished.wait(wait):
            status, answer = self.post("heartbeat", dict(self.progress, heartbeatAt=now()))
            if status in (409, 410):
                self.stop = Aborted("a heartbeat was answered with %d" % status)
                return
            failures, wait = (0, interval) if status == 200 else (failures + 1, pause(failures, interval / 8, interval))
            self.token = answer.get("taskToken", self.token)
            self.target = answer.get("output", self.target)
            if answer.get("shouldCancel"):
                self.stop = Cancelled(answer.get("cancelReason", ""))

    def upload(self, content, content_type):
        if not self.target:
            return {}

        def put():
            self.check()
            headers = dict(self.target.get("headers", {}), **{"Content-Type": content_type})
            return send("PUT", self.target["url"], content, headers)

        status, _ = repeat(put)
        if status >= 300:
            raise OSError("the upload was answered with %d" % status)
        return {"outputPath": self.target["key"], "byteSize": len(content)}

    def completed(self, result):
        result = dict(result, completedAt=now(), metrics={"cpuTimeMs": int(time.process_time() * 1000)})
        self.silent.set()
        self.talking.join()
        status, _ = repeat(lambda: self.post("completed", result))
        self.finished.set()
        self.heartbeats.join()
        return status


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token to another server."""

    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(NoRedirect)


def send(method, url, body, headers):
    """Return the status, 0 without an answer, and the answer's JSON object."""
    try:
        with OPENER.open(urllib.request.Request(url, body, headers, method=method), timeout=30) as answer:
            return answer.status, json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as error:
        return error.code, {}
    except (OSError, ValueError, http.client.HTTPException):
        return 0, {}


def repeat(call):
    """Repeat a call for an hour at most, until it is answered for good."""
    end, failures = time.monotonic() + 3600, 0
    while True:
        status, answer = call()
        if status not in (0, 401, 408, 425, 429) and status < 500 or time.monotonic() > end:
            return status, answer
        time.sleep(pause(failures, 0.2, 30))
        failures += 1


def pause(failures, first, longest):
    """Exponential backoff with full jitter."""
    return random.random() * min(longest, first * 2 ** min(failures, 20))


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat()


def main():
    task = Task(json.loads(os.environ["TASK_ENVELOPE"]))
    try:
        task.started()
        try:
            output = task.upload(work(task), "application/xml")
            result = {"outcome": "SUCCEEDED", "output": output}
        except Cancelled:
            result = {"outcome": "CANCELLED", "cancelledDuringPhase": "work", "partialProgress": task.progress}
        except Aborted:
            raise
        except OSError as error:
            result = failed("INFRASTRUCTURE", error, True)
        except Exception as error:  # another attempt would fail in the same way
            result = failed("USER_CODE", error, False)
        if task.completed(result) == 200:
            return 0 if result["outcome"] == "SUCCEEDED" else 1
    except Aborted as why:
        print("aborted:", why, file=sys.stderr)
    return 1


def failed(category, error, retryable):
    return {"outcome": "FAILED", "error": {
        "category": category, "message": repr(error), "stackTrace": traceback.format_exc(), "retryable": retryable,
    }}


if __name__ == "__main__":
    sys.exit(main())
