"""The client over a transport in this process."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest

from sortie import errors
from sortie import models as m
from sortie.client import AsyncClient, Client, log_bytes

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from operations import NAMES, RESOURCES

Handler = Callable[[httpx.Request], httpx.Response]


class Server:
    """Answers requests in turn, and records them."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer = answer(request)
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)


def client(server: Handler, **options: Any) -> Client:
    return Client(
        "http://api.test/base/", "t0ken", http=httpx.Client(transport=httpx.MockTransport(server)), **options
    )


def waiting(server: Handler, **options: Any) -> AsyncClient:
    http = httpx.AsyncClient(transport=httpx.MockTransport(server))
    return AsyncClient("http://api.test", "t0ken", http=http, **options)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    slept: list[float] = []

    async def asleep(delay: float) -> None:
        slept.append(delay)

    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(asyncio, "sleep", asleep)
    yield slept


def problem(status: int, code: str, **headers: str) -> httpx.Response:
    body = {"code": code, "detail": "words", "status": status}
    return httpx.Response(status, json=body, headers={"X-Correlation-Id": "c1", **headers})


def test_each_operation_has_a_method_in_both_clients() -> None:
    import yaml

    document = Path(__file__).resolve().parents[4] / "wire" / "contract" / "openapi.yaml"
    paths = yaml.safe_load(document.read_text(encoding="utf-8"))["paths"]
    ids = [operation["operationId"] for item in paths.values() for operation in item.values()]
    assert sorted(ids) == sorted(NAMES)
    server = Server({})
    for one in (client(server), waiting(server)):
        for name in NAMES.values():
            resource, method = name.split(".")
            assert resource in RESOURCES
            assert callable(getattr(getattr(one, resource), method)), name


def test_request_and_answer() -> None:
    server = Server({"taskId": "t", "runId": "r", "state": "Pending"})
    run = client(server).runs.create(m.RunDefinition(image="exec:/bin/echo", command=["hi"]))
    assert run.run_id == "r"
    request = server.requests[0]
    assert str(request.url) == "http://api.test/base/v1/runs"
    assert request.headers["Authorization"] == "Bearer t0ken"
    assert request.headers["Content-Type"] == "application/json"
    assert len(request.headers["Idempotency-Key"]) == 36
    assert json.loads(request.content) == {"image": "exec:/bin/echo", "command": ["hi"]}


def test_query_and_path_are_encoded() -> None:
    server = Server({"tasks": []})
    one = client(server)
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    assert list(one.runs.list(state="Failed", skipped=False, created_after=at)) == []
    assert server.requests[0].url.query == b"state=Failed&skipped=false&createdAfter=2026-01-02T03:04:05Z"
    one.runs.get("nightly:2026/..?")
    assert server.requests[1].url.raw_path == b"/base/v1/runs/nightly:2026%2F..%3F"
    for bad in ("", ".", ".."):
        with pytest.raises(ValueError, match="not an id"):
            one.runs.get(bad)


def test_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SORTIE_URL", "https://sortie.test")
    monkeypatch.setenv("SORTIE_TOKEN", "of-env")
    with Client() as one:
        assert one.url == "https://sortie.test"
        assert one._transport.settings.token == "of-env"
        assert "of-env" not in repr(one._transport.settings)
    for url in ("ftp://x", "nonsense"):
        with pytest.raises(ValueError, match="url"):
            Client(url)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, errors.InvalidRequest), (401, errors.Unauthenticated), (403, errors.Forbidden), (404, errors.NotFound),
     (409, errors.Conflict), (410, errors.NotFound), (412, errors.PreconditionFailed), (422, errors.InvalidRequest),
     (429, errors.RateLimited), (500, errors.ServerError)],
)  # fmt: skip
def test_errors_by_status(status: int, kind: type[errors.APIError]) -> None:
    with pytest.raises(kind) as caught:
        client(Server(problem(status, "SOME_CODE")), retries=0).runs.get("r")
    error = caught.value
    assert (error.status, error.code, error.message, error.correlation_id) == (
        status,
        "SOME_CODE",
        "words",
        "c1",
    )


def test_other_error_bodies() -> None:
    openai = httpx.Response(
        404, json={"error": {"message": "no model", "code": "model_not_found", "type": "x"}}
    )
    with pytest.raises(errors.NotFound, match="model_not_found: no model"):
        client(Server(openai)).openai.get_model("m")
    with pytest.raises(errors.ServerError) as caught:
        client(Server(httpx.Response(502, text="<html>")), retries=0).runs.get("r")
    assert caught.value.code == ""
    with pytest.raises(errors.ConnectionFailed, match="not a JSON object"):
        client(Server(httpx.Response(200, text="<html>"))).runs.get("r")


def test_retries(_quick: list[float]) -> None:
    server = Server(
        httpx.ReadError("gone"), problem(429, "THROTTLED", **{"Retry-After": "3"}), {"taskId": "t"}
    )
    assert client(server).runs.get("r").task_id == "t"
    assert len(server.requests) == 3
    assert _quick[1] >= 3


def test_idempotency_key_stays_the_same() -> None:
    server = Server(httpx.ReadTimeout("slow"), problem(503, "UNAVAILABLE"), {"runId": "r"})
    client(server).runs.create({"image": "exec:/bin/true"})
    assert len({request.headers["Idempotency-Key"] for request in server.requests}) == 1
    assert len(server.requests) == 3


def test_request_with_an_effect_is_not_repeated() -> None:
    for failure in (httpx.ReadError("gone"), problem(503, "UNAVAILABLE")):
        server = Server(failure)
        with pytest.raises(errors.SortieError):
            client(server).webhooks.test("whk_1")
        assert len(server.requests) == 1
    server = Server(httpx.ConnectError("refused"), {"attempt": 1})
    client(server).webhooks.test("whk_1")
    assert len(server.requests) == 2


def test_gives_up_after_retries() -> None:
    server = Server(httpx.ConnectError("refused"))
    with pytest.raises(errors.ConnectionFailed, match=r"GET http://api.test/base/v1/runs/r: refused"):
        client(server, retries=1).runs.get("r")
    assert len(server.requests) == 2


def test_lists_read_all_pages() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        cursor = request.url.params.get("cursor")
        pages = {None: (["a", "b"], "c1"), "c1": ([], "c2"), "c2": (["c"], None)}
        ids, following = pages[cursor]
        body: dict[str, Any] = {"tasks": [{"taskId": i} for i in ids]}
        if following:
            body["nextCursor"] = following
        return httpx.Response(200, json=body)

    server = Server(answer)
    runs = client(server).runs.list(kind="job")
    assert [task.task_id for task in runs] == ["a", "b", "c"]
    assert [len(page.tasks) for page in runs.pages()] == [2, 0, 1]
    assert server.requests[1].url.params["kind"] == "job"

    async def read() -> list[str]:
        return [task.task_id async for task in waiting(Server(answer)).runs.list()]

    assert asyncio.run(read()) == ["a", "b", "c"]


def test_events_end_where_the_cursor_stays() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        after = request.url.params.get("after")
        pages = {"earliest": ([1, 2], "x-2"), "x-2": ([], "x-5"), "x-5": ([], "x-5")}
        numbers, following = pages[after]
        return httpx.Response(200, json={"events": [{"eventId": str(n)} for n in numbers], "next": following})

    events = client(Server(answer)).events.list(after="earliest")
    assert [event.event_id for event in events] == ["1", "2"]


def test_entity_tag_is_kept() -> None:
    server = Server(httpx.Response(200, json={"id": "j"}, headers={"ETag": '"4"'}))
    one = client(server)
    job = one.jobs.get("j")
    assert job.etag == '"4"'
    one.jobs.patch("j", {"name": "n"}, if_match=job.etag)
    assert server.requests[1].headers["If-Match"] == '"4"'
    assert server.requests[1].headers["Content-Type"] == "application/merge-patch+json"


def sse(*lines: str, **headers: str) -> httpx.Response:
    return httpx.Response(200, content=("\n".join(lines) + "\n").encode(), headers=headers)


def event(n: int) -> list[str]:
    return [
        f"id: s-{n}",
        "event: job.completed",
        f'data: {{"eventId": "{n}", "eventType": "job.completed"}}',
        "",
    ]


def test_stream_resumes(_quick: list[float]) -> None:
    server = Server(
        sse("id: s-0", "", *event(1), "id: s-3", "", *event(4)[:2]),
        httpx.ConnectError("refused"),
        problem(503, "UNAVAILABLE"),
        sse("retry: 1500", *event(4), "id: s-4", ""),
        sse(*event(5)),
    )
    with client(server).events.stream(after="earliest", types=["job.*", "schedule.fired"]) as stream:
        got = [(next(stream).event_id, stream.cursor) for _ in range(3)]
    assert got == [("1", "s-1"), ("4", "s-4"), ("5", "s-5")]
    first, *rest = server.requests
    assert first.url.params["after"] == "earliest"
    assert first.url.params["types"] == "job.*,schedule.fired"
    assert "Last-Event-ID" not in first.headers
    assert [r.headers["Last-Event-ID"] for r in rest] == ["s-3", "s-3", "s-3", "s-4"]
    assert 1.5 in _quick


def test_async_stream_resumes() -> None:
    server = Server(sse(*event(1)), httpx.ReadError("gone"), sse(*event(2)))

    async def read() -> list[Any]:
        async with waiting(server).events.stream() as stream:
            return [((await stream.__anext__()).event_id, stream.cursor) for _ in range(2)]

    assert asyncio.run(read()) == [("1", "s-1"), ("2", "s-2")]


def test_stream_gives_up() -> None:
    with pytest.raises(errors.Unauthenticated):
        next(client(Server(problem(401, "UNAUTHENTICATED"))).events.stream())
    server = Server(httpx.ConnectError("refused"))
    with pytest.raises(errors.ConnectionFailed):
        next(client(server).events.stream())
    assert len(server.requests) == 3


def test_page_is_no_stream() -> None:
    """Another server answers with a page: a new connection would get the same."""

    def other() -> Server:
        headers = {"Content-Type": "text/html; charset=utf-8"}
        return Server(httpx.Response(200, content=b"<html>", headers=headers))

    for read in (
        lambda one: next(one.events.stream()),
        lambda one: list(one.inference.stream("t")),
        lambda one: list(one.openai.stream_chat({"model": "m", "messages": []})),
        lambda one: list(one.tasks.follow_logs("t")),
    ):
        server = other()
        with pytest.raises(errors.SortieError, match="a page, not a stream"):
            read(client(server))
        assert len(server.requests) == 1

    async def first() -> None:
        async with waiting(server).events.stream() as stream:
            await stream.__anext__()

    server = other()
    with pytest.raises(errors.SortieError, match="a page, not a stream"):
        asyncio.run(first())
    assert len(server.requests) == 1


def test_gap_is_an_error_unless_skipped() -> None:
    gap = [
        "id: s-9",
        "event: stream.gap",
        'data: {"eventType":"stream.gap","asked":"s-1","oldest":"s-10","newest":"s-12"}',
        "",
    ]
    server = Server(sse(*gap, *event(10)))
    with pytest.raises(errors.StreamGap) as caught:
        next(client(server).events.stream(after="s-1"))
    assert caught.value.oldest == "s-10"
    assert next(client(server).events.stream(after="s-1", skip_gaps=True)).event_id == "10"


def test_inference_stream_ends() -> None:
    server = Server(
        sse("id: 1.1", "event: token", 'data: {"t": "a"}', ""), sse("id: 2.1", "event: end", "data: {}", "")
    )
    got = [(e.event, e.data) for e in client(server).inference.stream("t")]
    assert got == [("token", {"t": "a"}), ("end", {})]
    assert server.requests[1].headers["Last-Event-ID"] == "1.1"
    assert list(client(Server(httpx.Response(204))).inference.stream("t", after="2.1")) == []


def test_openai_stream_ends_at_done() -> None:
    server = Server(sse('data: {"n": 1}', "", "data: [DONE]", ""))
    assert [e.data for e in client(server).openai.stream_chat({"model": "m", "messages": []})] == [{"n": 1}]
    assert json.loads(server.requests[0].content)["stream"] is True


def test_followed_log_resumes() -> None:
    server = Server(
        httpx.Response(
            200, content=b'{"attempt":1,"stream":"stdout","data":"YWI=","next":2}\n{"attempt":1,"str'
        ),
        httpx.Response(
            200,
            content=b'{"attempt":2,"stream":"stderr","data":"Yw==","next":1}\n{"attempt":2,"next":1,"ended":true}\n',
        ),
    )
    lines = list(client(server).tasks.follow_logs("t"))
    assert b"".join(log_bytes(line) for line in lines) == b"abc"
    assert dict(server.requests[1].url.params) == {"attempt": "1", "offset": "2", "follow": "true"}


class Broken(httpx.SyncByteStream):
    def __iter__(self) -> Iterator[bytes]:
        yield b"abc"
        raise httpx.ReadError("gone")


def test_download_resumes(tmp_path: Path) -> None:
    server = Server(
        httpx.Response(200, stream=Broken(), headers={"ETag": '"e"', "Content-Length": "6"}),
        httpx.Response(206, content=b"def", headers={"ETag": '"e"'}),
    )
    path = tmp_path / "out"
    assert client(server).tasks.download("t", path) == 6
    assert path.read_bytes() == b"abcdef"
    assert server.requests[1].headers["Range"] == "bytes=3-"
    assert server.requests[1].headers["If-Range"] == '"e"'


def test_failed_download_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"before")
    server = Server(
        httpx.Response(200, stream=Broken(), headers={"ETag": '"e"', "Content-Length": "6"}),
        httpx.Response(200, content=b"another", headers={"ETag": '"f"'}),
    )
    with pytest.raises(errors.OutputChanged):
        client(server).tasks.download("t", path)
    assert path.read_bytes() == b"before"
    with pytest.raises(errors.NotFound):
        client(Server(httpx.Response(404))).tasks.download("t", path)
    assert [f.name for f in tmp_path.iterdir()] == ["out"]


def test_redirect_gets_no_token() -> None:
    server = Server(
        httpx.Response(302, headers={"Location": "https://store.test/o?X=1"}),
        httpx.Response(200, content=b"abc"),
    )
    assert client(server).tasks.output("t") == b"abc"
    assert "Authorization" in server.requests[0].headers
    assert "Authorization" not in server.requests[1].headers


def test_presigned_url_gets_nothing_of_the_client_and_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    answers: tuple[Any, ...] = (
        lambda _: httpx.Response(302, headers={"Location": "https://store.test/o?X-Amz-Signature=s3cret"}),
        lambda _: httpx.Response(200, content=b"abc"),
    )
    options: Any = {
        "headers": {"X-Proxy": "p", "Authorization": "p"},
        "cookies": {"c": "p"},
        "auth": ("u", "p"),
    }
    caplog.set_level("DEBUG")
    direct = Server(*answers)
    http = httpx.Client(transport=httpx.MockTransport(direct), **options)
    assert Client("http://api.test", http=http).tasks.output("t") == b"abc"
    waits = Server(*answers)
    later = httpx.AsyncClient(transport=httpx.MockTransport(waits), **options)
    assert asyncio.run(AsyncClient("http://api.test", http=later).tasks.output("t")) == b"abc"
    for server in (direct, waits):
        request = server.requests[1]
        assert request.url.query == b"X-Amz-Signature=s3cret"
        assert set(request.headers) == {"host", "accept-encoding"}
        assert "s3cret" not in repr(request) + repr(request.url)
    assert "store.test/o" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("location", ["", "file:///etc/passwd", "http://[", "http://store.test:x/"])
def test_malformed_location_is_refused(location: str) -> None:
    server = Server(httpx.Response(302, headers={"Location": location}))
    with pytest.raises(errors.ConnectionFailed, match=r"[Ll]ocation"):
        client(server).tasks.output("t")


@pytest.mark.parametrize("status", [301, 302, 304, 307])
def test_other_redirects_are_errors(status: int, tmp_path: Path) -> None:
    server = Server(
        lambda _: httpx.Response(status, content=b"x", headers={"Location": "https://evil.test/"})
    )
    one = client(server)
    calls: list[Callable[[], Any]] = [
        lambda: one.webhooks.delete("w"),
        lambda: one.tasks.logs("t"),
        lambda: one.artifacts.content("a"),
        lambda: next(one.events.stream()),
        lambda: one.tasks.describe_output("t"),
    ]
    if status != 302:
        calls.append(lambda: one.tasks.output("t"))
    for call in calls:
        server.requests.clear()
        with pytest.raises(errors.APIError, match="redirects") as caught:
            call()
        assert caught.value.status == status
        assert len(server.requests) == 1
    with pytest.raises(errors.APIError, match="redirects"):
        asyncio.run(waiting(server).webhooks.delete("w"))


def test_second_redirect_is_an_error() -> None:
    server = Server(httpx.Response(302, headers={"Location": "https://store.test/o?X=s3cret"}))
    with pytest.raises(errors.APIError, match="redirects"):
        client(server).tasks.output("t")
    assert len(server.requests) == 2


def test_long_retry_after_is_not_waited_for(_quick: list[float]) -> None:
    for after in ("61", "9" * 5000):
        server = Server(problem(503, "UNAVAILABLE", **{"Retry-After": after}))
        with pytest.raises(errors.ServerError) as caught:
            client(server).runs.get("r")
        assert caught.value.retry_after == float(after)
        assert len(server.requests) == 1
    server = Server(problem(429, "THROTTLED", **{"Retry-After": "86400"}))
    with pytest.raises(errors.RateLimited):
        next(client(server).events.stream())
    assert _quick == []


def test_reconnection_time_of_a_stream_is_bounded(_quick: list[float]) -> None:
    server = Server(sse("retry: 999999999999999", ""), sse(*event(1)))
    next(client(server).events.stream(most_outage=60))
    assert _quick == [60]


def test_endless_line_of_a_log_is_refused() -> None:
    server = Server(httpx.Response(200, content=b"x" * (2 << 20)))
    with pytest.raises(errors.SortieError, match="too large"):
        list(client(server).tasks.follow_logs("t"))


def test_no_repr_has_a_secret() -> None:
    one = Client("https://api.test", "t0ken")
    address = one.events.websocket()
    assert address.headers["Authorization"] == "Bearer t0ken"
    target = m.Upload.from_dict(
        {"url": "https://s/?X=s3cret", "key": "k", "expiresAt": "2026-01-02T03:04:05Z"}
    )
    shown = repr((one, address, one._transport, one._transport.settings, target))
    assert "t0ken" not in shown
    assert "s3cret" not in shown
    one.close()


@pytest.mark.parametrize(
    "url", ["https://u:s3cret@api.test", "https://api.test/?s3cret", "https://api.test/#s3cret"]
)
def test_url_with_other_parts_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="url") as caught:
        Client(url)
    assert "s3cret" not in str(caught.value)


def test_wait_follows_the_status() -> None:
    states = iter(["Pending", "Running", "Failed"])

    def answer(request: httpx.Request) -> httpx.Response:
        if "/status/" in request.url.path:
            assert 1 <= int(request.url.params["wait"]) <= 20
            return httpx.Response(200, json={})
        return httpx.Response(200, json={"taskId": "t", "runId": "r", "state": next(states)})

    one = client(Server(answer))
    with pytest.raises(errors.RunFailed) as caught:
        one.runs.wait("r", check=True)
    assert caught.value.run.state == "Failed"
    with pytest.raises(TimeoutError):
        client(Server({"taskId": "t", "state": "Running"})).runs.wait("r", timeout=0)


def test_events_and_items_of_a_job() -> None:
    server = Server(
        {"events": [{"id": "1", "source": "/shop", "result": "created", "runId": "r"}]},
        {"taskId": "t", "runId": "r", "state": "Pending"},
    )
    api = client(server)
    event = m.CloudEvent(id="1", source="/shop", type="order", data={"total": 12})
    assert api.jobs.send_events("j", [event, {"specversion": "1.0"}]).events[0].run_id == "r"
    api.jobs.run("j", m.JobRunRequest(items_from="r"))
    api.runs.retry("r", m.RetryRequest(only_failed=True, downstream=True))
    sent = [json.loads(request.content) for request in server.requests]
    assert sent == [
        [
            {"specversion": "1.0", "id": "1", "source": "/shop", "type": "order", "data": {"total": 12}},
            {"specversion": "1.0"},
        ],
        {"itemsFrom": "r"},
        {"onlyFailed": True, "downstream": True},
    ]
    assert server.requests[0].headers["content-type"] == "application/cloudevents-batch+json"


def test_artifacts() -> None:
    server = Server({"id": "0" * 64, "media_type": "image/png"})
    one = client(server)
    one.artifacts.create_bytes(
        b"\x00", kind="image", media_type="image/png", tags=["a", "b"], metadata={"n": 1}
    )
    assert dict(server.requests[0].url.params) == {"kind": "image", "tags": "a b", "metadata": '{"n": 1}'}
    assert server.requests[0].content == b"\x00"
    assert isinstance(one.artifacts.get("0" * 64), m.ArtifactSummary)


def test_websocket_address() -> None:
    address = client(Server({})).events.websocket(after="latest")
    assert address.url == "ws://api.test/base/v1/events/ws?after=latest"
    assert address.headers["Authorization"] == "Bearer t0ken"


def test_every_plain_call_is_accepted_by_the_document() -> None:
    """Each generated method makes the request of its operation."""
    import inspect

    import yaml

    document = Path(__file__).resolve().parents[4] / "wire" / "contract" / "openapi.yaml"
    paths = yaml.safe_load(document.read_text(encoding="utf-8"))["paths"]
    for path, item in paths.items():
        for method, operation in item.items():
            resource, name = NAMES[operation["operationId"]].split(".")
            if name in ("stream", "websocket", "output", "list") or operation["operationId"] in (
                "createArtifact",
            ):
                continue
            server = Server(httpx.Response(200, json={"id": "x", "media_type": "a/b"}))
            call = getattr(getattr(client(server), resource), name)
            given: list[Any] = []
            for p in inspect.signature(call).parameters.values():
                if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty:
                    given.append({"a": 1} if p.name == "body" else "p")
            result = call(*given)
            if hasattr(result, "pages"):
                next(iter(result.pages()))
            request = server.requests[0]
            import re

            assert request.method.lower() == method
            assert request.url.path == "/base" + re.sub(r"\{\w+\}", "p", path)
            body = operation.get("requestBody", {})
            if body.get("required") and operation["operationId"] != "createArtifact":
                assert json.loads(request.content) == {"a": 1}
                assert request.headers["Content-Type"] in body["content"]
