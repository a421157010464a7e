"""The table that the SDKs of all languages share."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

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
