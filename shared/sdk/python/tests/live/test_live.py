"""Worker, client and webhooks against a real local system."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from conftest import EXAMPLES, PATIENCE, System, free_port, python

from sortie import errors
from sortie import models as m
from sortie.client import AsyncClient, Client, log_bytes


def worker(**more: object) -> dict[str, object]:
    return {
        "image": f"exec:{sys.executable}",
        "command": [str(EXAMPLES / "worker.py")],
        "completion": "callback",
        **more,
    }


def test_example_submits_follows_and_fetches(environment: dict[str, str], tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a b a\n" * 5 + "c\n")
    command = [sys.executable, "-W", "error", str(EXAMPLES / "client.py"), str(text)]
    env = {**environment, "PAUSE_MS": "200"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"a": 10, "b": 5, "c": 1}
    assert "line 6: 1 words\n" in done.stderr


def test_output_is_described_and_stored(client: Client, tmp_path: Path) -> None:
    run = client.runs.create(worker(input=b"x y\n", env={"PAUSE_MS": "10"}))
    task = client.runs.wait(run.run_id, timeout=PATIENCE, check=True)
    assert task.state == "Completed"
    assert task.metrics is not None
    assert task.metrics["words"] == 2
    path = tmp_path / "words.json"
    size = client.tasks.download(run.task_id, path)
    stored = client.tasks.describe_output(run.task_id)
    assert (stored.file_name, stored.size) == ("words.json", size)
    assert json.loads(path.read_bytes()) == {"x": 1, "y": 1}
    assert "line 1: 2 words" in client.tasks.logs(run.task_id)
    events = [event.type for event in client.tasks.events(run.task_id)]
    assert events


def test_cancel_reaches_the_worker(client: Client) -> None:
    run = client.runs.create(worker(input=b"line\n" * 1000, env={"PAUSE_MS": "300"}))
    for line in client.tasks.follow_logs(run.task_id):
        if log_bytes(line):
            break
    answer = client.runs.cancel(run.run_id, {"reason": "a test"})
    assert answer.result == "requested"
    task = client.runs.wait(run.run_id, timeout=PATIENCE)
    assert task.state == "Cancelled"
    assert task.worker is not None
    assert task.worker.report is not None
    report = task.worker.report.to_dict()
    assert report["cancelledDuringPhase"] == "count"
    assert report["partialProgress"]["lines"] >= 0


def test_failure_has_its_category(client: Client) -> None:
    code = textwrap.dedent(
        """
        import sys
        from sortie import worker
        @worker.main
        def work(task):
            task.fail("DATA_QUALITY", "page 9 is empty")
        sys.exit(work())
        """
    )
    run = client.runs.create(python(code))
    with pytest.raises(errors.RunFailed) as caught:
        client.runs.wait(run.run_id, timeout=PATIENCE, check=True)
    task = caught.value.run
    assert (task.state, task.attempt) == ("Failed", 1)
    assert "page 9 is empty" in json.dumps(task.to_dict())


def test_errors_of_a_real_server(client: Client) -> None:
    with pytest.raises(errors.NotFound) as caught:
        client.runs.get("job_01K9XVBAQZF9EHDRXGBEADTZYY")
    assert caught.value.code
    assert caught.value.correlation_id
    with pytest.raises(errors.InvalidRequest):
        client.runs.create({"image": 1})


def test_jobs_have_entity_tags(client: Client) -> None:
    definition = m.JobDefinition(id="python-sdk", image="exec:/bin/echo", command=["hello"])
    job = client.jobs.put("python-sdk", definition, if_none_match="*")
    assert job.etag
    changed = client.jobs.patch("python-sdk", {"name": "of a test"}, if_match=job.etag)
    assert changed.name == "of a test"
    with pytest.raises(errors.PreconditionFailed):
        client.jobs.delete("python-sdk", if_match=job.etag)
    run = client.jobs.run("python-sdk")
    assert client.runs.wait(run.run_id, timeout=PATIENCE).state == "Completed"
    assert [r.run_id for r in client.jobs.runs("python-sdk")] == [run.run_id]
    assert "python-sdk" in [j.id for j in client.jobs.list(limit=1)]
    client.jobs.delete("python-sdk")


def test_plain_reads(client: Client) -> None:
    assert client.server.health().to_dict()
    assert client.server.openapi()["openapi"] == "3.1.0"
    assert "# HELP" in client.server.metrics()
    assert client.server.keys().keys
    assert [pool.id for pool in client.pools.list().pools]
    created = client.artifacts.create({"kind": "note", "content": {"text": "hello"}})
    found = client.artifacts.get(created.id)
    assert isinstance(found, m.Artifact)
    assert found.content == {"text": "hello"}
    stored = client.artifacts.create_bytes(
        b"\x00\x01", kind="image", media_type="image/png", metadata={"n": 1}
    )
    assert client.artifacts.content(stored.id) == b"\x00\x01"
    assert created.id in [a.id for a in client.artifacts.list(kind="note")]


def test_async_client(system: System) -> None:
    async def run() -> bytes:
        async with AsyncClient(system.url, system.token) as client:
            accepted = await client.runs.create({"image": "exec:/bin/echo", "command": ["hello"]})
            lines = [log_bytes(line) async for line in client.tasks.follow_logs(accepted.task_id)]
            assert (await client.runs.wait(accepted.run_id, timeout=PATIENCE)).state == "Completed"
            async with client.events.stream(after="earliest", task_id=accepted.task_id) as stream:
                async for event in stream:
                    if event.event_type == "job.completed":
                        break
            assert accepted.task_id in [task.task_id async for task in client.tasks.list(limit=2)]
            return b"".join(lines)

    assert asyncio.run(run()) == b"hello\n"


def test_webhook_is_verified(client: Client) -> None:
    port = free_port()
    webhook = client.webhooks.create({"url": f"http://127.0.0.1:{port}/", "eventTypes": ["job.completed"]})
    assert webhook.secret
    assert webhook.secret not in repr(webhook)
    env = {**os.environ, "WEBHOOK_SECRET": webhook.secret, "PORT": str(port)}
    command = [sys.executable, "-W", "error", str(EXAMPLES / "webhook_receiver.py")]
    receiver = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert receiver.stdout is not None
        assert receiver.stdout.readline().startswith("listening")
        tested = client.webhooks.test(webhook.id)
        assert receiver.stdout.readline().startswith("webhook.test "), tested
        run = client.runs.create({"image": "exec:/bin/true"})
        assert receiver.stdout.readline().startswith("job.completed ")
        client.runs.wait(run.run_id, timeout=PATIENCE)
    finally:
        receiver.kill()
        receiver.communicate()
        client.webhooks.delete(webhook.id)


def test_events_resume_over_a_kill(system: System, client: Client) -> None:
    got: list[str] = []
    wanted: set[str] = set()
    done = threading.Event()

    def follow() -> None:
        with client.events.stream(after="earliest", types=["job.accepted", "job.completed"]) as stream:
            for event in stream:
                got.append(event.event_id)
                if event.event_type == "job.completed" and event.job is not None:
                    wanted.discard(event.job["id"])
                    if not wanted and done.is_set():
                        return

    first = client.runs.create({"image": "exec:/bin/true"})
    client.runs.wait(first.run_id, timeout=PATIENCE)
    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    until = time.monotonic() + PATIENCE
    while not got and time.monotonic() < until:
        time.sleep(0.2)
    second = client.runs.create({"image": "exec:/bin/sleep", "command": ["1"]})
    wanted.add(second.task_id)
    system.kill()
    system.start()
    third = client.runs.create({"image": "exec:/bin/true"})
    wanted.add(third.task_id)
    done.set()
    thread.join(PATIENCE)
    assert not thread.is_alive(), wanted
    assert client.runs.wait(second.run_id, timeout=PATIENCE).state == "Completed"
    listed = [
        e.event_id for e in client.events.list(after="earliest", types=["job.accepted", "job.completed"])
    ]
    assert got == listed[: len(got)]
    assert len(set(got)) == len(got)
