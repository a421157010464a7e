"""The table that the SDKs of all languages share."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from sortie import sse
from sortie.errors import SortieError
from sortie.sse import Decoder, Message

TABLE = Path(__file__).resolve().parents[3] / "testdata" / "sse.json"
CASES: list[dict[str, Any]] = json.loads(TABLE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_table(case: dict[str, Any]) -> None:
    decoder = Decoder()
    got: list[Message] = []
    for chunk in case["chunks"]:
        got += decoder.feed(base64.b64decode(chunk))
    assert [{"id": m.id, "event": m.event, "data": m.data} for m in got] == case["events"]
    assert decoder.last_event_id == case["lastEventId"]
    assert decoder.retry == case["retry"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_each_split_gives_the_same(case: dict[str, Any]) -> None:
    content = b"".join(base64.b64decode(chunk) for chunk in case["chunks"])
    if len(content) > 1000:
        return
    for at in range(len(content)):
        decoder = Decoder()
        got = decoder.feed(content[:at]) + decoder.feed(content[at:])
        assert [{"id": m.id, "event": m.event, "data": m.data} for m in got] == case["events"], at


@pytest.mark.parametrize("piece", [b"x" * 1024, b"data: " + b"x" * 1017 + b"\n", b"data\n" * 1024])
def test_endless_event_is_refused(piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "_MOST_CHARACTERS", 8192)
    decoder = Decoder()
    with pytest.raises(SortieError, match="too large"):
        for _ in range(100):
            decoder.feed(piece)


def test_endless_stream_of_small_events_and_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "_MOST_CHARACTERS", 8192)
    decoder = Decoder()
    for _ in range(100):
        assert len(decoder.feed(b": " + b"x" * 1000 + b"\ndata: " + b"y" * 1000 + b"\n\n")) == 1


def test_huge_retry_is_ignored() -> None:
    decoder = Decoder()
    decoder.feed(b"retry: 1500\nretry: " + b"9" * 5000 + b"\n\n")
    assert decoder.retry == 1500
