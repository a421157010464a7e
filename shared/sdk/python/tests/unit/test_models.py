from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from sortie import models as m
from sortie._time import format_time, parse_time

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT: dict[str, Any] = yaml.safe_load(
    (ROOT.parents[1] / "wire" / "contract" / "openapi.yaml").read_text(encoding="utf-8")
)


def test_generated_files_are_fresh() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_schema_has_a_model() -> None:
    assert not [name for name in DOCUMENT["components"]["schemas"] if not hasattr(m, name)]


def examples() -> list[tuple[str, Any]]:
    found = []
    schemas = DOCUMENT["components"]["schemas"]
    for name, schema in schemas.items():
        found += [(name, example) for example in schema.get("examples", [])]
    for item in DOCUMENT["paths"].values():
        for operation in item.values():
            parts = [operation.get("requestBody", {}), *operation["responses"].values()]
            for part in parts:
                content = part.get("content", {}).get("application/json", {})
                name = content.get("schema", {}).get("$ref", "").rsplit("/", 1)[-1]
                shown = content.get("examples", {}).values()
                if name and name in schemas:
                    found += [(name, example["value"]) for example in shown if "value" in example]
    return [
        (name, example)
        for name, example in found
        if isinstance(example, dict) and inspect.isclass(getattr(m, name))
    ]


def plain(value: Any) -> Any:
    """Drop nulls, and write times in one form."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str) and value[4:5] == "-" and "T" in value:
        try:
            return format_time(parse_time(value))
        except ValueError:
            return value
    return value


def test_each_example_is_encoded_alike() -> None:
    found = examples()
    assert len(found) >= 10
    for name, example in found:
        model = getattr(m, name).from_dict(example)
        assert plain(model.to_dict()) == plain(example), name


def test_unknown_members_and_values_survive() -> None:
    value = {
        "taskId": "t", "runId": "r", "state": "Paused", "later": {"a": [1]}, "createdAt": "2026-01-02T03:04:05.123456789+02:00",
        "fault": {"code": "NEW", "later": 1}, "attempt": 1.5, "fellBack": "odd",
    }  # fmt: skip
    task = m.Task.from_dict(value)
    assert task.state == "Paused"
    assert task.extra == {"later": {"a": [1]}}
    assert task.fault is not None
    assert task.fault.extra == {"later": 1}
    assert task.correlation_id is None
    assert task.created_at == datetime(2026, 1, 2, 1, 4, 5, 123456, timezone.utc)
    back = task.to_dict()
    for name in ("state", "later", "fault", "attempt", "fellBack"):
        assert back[name] == value[name]


def test_alternatives_are_chosen_by_their_members() -> None:
    keys = m.KeySet.from_dict(
        {
            "keys": [
                {"kty": "EC", "crv": "P-256", "x": "1", "y": "2", "kid": "k"},
                {"kty": "OKP", "crv": "Ed25519", "x": "1", "kid": "event-1"},
            ]
        }
    )
    assert [type(key) for key in keys.keys] == [m.TokenKey, m.EventKey]


def test_lists_in_alternatives_are_decoded() -> None:
    actions = m.JobActions.from_dict({"onFailure": [{"type": "notify"}], "onSkip": {"type": "webhook"}})
    assert actions.on_failure == [m.JobAction(type="notify")]
    assert actions.on_skip == m.JobAction(type="webhook")


def test_models_are_frozen_and_take_keywords_only() -> None:
    model = m.CancelRequest(reason="r")
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.reason = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        m.CancelRequest("r")  # type: ignore[call-arg,arg-type]
    assert dataclasses.replace(model, reason="s").to_dict() == {"reason": "s"}


def test_bytes_are_base64() -> None:
    definition = m.RunDefinition(image="exec:/bin/cat", input="aGk=")
    assert definition.to_dict() == {"image": "exec:/bin/cat", "input": "aGk="}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, 0, timezone.utc)),
        ("2026-01-02T03:04:05.1Z", datetime(2026, 1, 2, 3, 4, 5, 100_000, timezone.utc)),
        ("2026-01-02t03:04:05.123456789z", datetime(2026, 1, 2, 3, 4, 5, 123_456, timezone.utc)),
        (
            "2026-01-02T03:04:05-01:30",
            datetime(2026, 1, 2, 3, 4, 5, 0, timezone(-timedelta(hours=1, minutes=30))),
        ),
        ("2016-12-31T23:59:60Z", datetime(2017, 1, 1, 0, 0, 0, 0, timezone.utc)),
    ],
)
def test_times(text: str, want: datetime) -> None:
    assert parse_time(text) == want
    assert parse_time(format_time(want)) == want


@pytest.mark.parametrize(
    "text", ["", "2026-01-02", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z", "٢026-01-02T03:04:05Z"]
)
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_time(text)
