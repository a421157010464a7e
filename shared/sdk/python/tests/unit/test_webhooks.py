from __future__ import annotations

import base64
import json
import runpy
import socket
import threading
import time
from email.message import Message
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sortie import webhooks
from sortie.errors import InvalidSignature

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + base64.b64encode(b"other" * 6).decode()
EVENT = {"schemaVersion": "orch.event.v1", "eventId": "urn:orch:event:1", "eventType": "job.completed",
         "occurredAt": "2026-01-02T03:04:05Z", "idempotencyKey": "k", "tenantId": "t",
         "actor": {"subject": "worker/w"}, "later": [1]}  # fmt: skip
BODY = json.dumps(EVENT).encode()
NOW = 1_700_000_000


def headers(secret: str = SECRET, body: bytes = BODY, at: int = NOW) -> dict[str, str]:
    return {
        "Webhook-Id": "urn:orch:event:1",
        "Webhook-Timestamp": str(at),
        "Webhook-Signature": webhooks.sign(secret, "urn:orch:event:1", at, body),
    }


def test_valid_webhook_is_an_event() -> None:
    event = webhooks.verify(BODY, headers(), SECRET, now=NOW)
    assert event.event_type == "job.completed"
    assert event.actor.subject == "worker/w"
    assert event.extra == {"later": [1]}


def test_example_of_standard_webhooks() -> None:
    secret = "whsec_plJ3nmyCDGBKInavdOK15jsl"
    body = b'{"event_type":"ping","data":{"success":true}}'
    given = {
        "webhook-id": "msg_loFOjxBNrRLzqYUf",
        "webhook-timestamp": "1731705121",
        "webhook-signature": "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
    }
    assert webhooks.verify(body, given, secret, now=1731705121).extra["event_type"] == "ping"


def test_headers_of_any_kind() -> None:
    message = Message()
    for name, value in headers().items():
        message[name.upper()] = value
    assert webhooks.verify(BODY, message, SECRET, now=NOW)
    assert webhooks.verify(BODY.decode(), {k.lower(): [v] for k, v in headers().items()}, SECRET, now=NOW)


def test_rotation() -> None:
    both = headers()
    both["Webhook-Signature"] += " " + headers(OTHER)["Webhook-Signature"] + " v2,x"
    for secrets in (SECRET, OTHER, [OTHER, SECRET]):
        assert webhooks.verify(BODY, both, secrets, now=NOW)
    assert webhooks.verify(BODY, headers(), [OTHER, SECRET], now=NOW)


@pytest.mark.parametrize(
    ("changed", "body", "secret", "now"),
    [
        ({}, BODY + b" ", SECRET, NOW),
        ({}, BODY, OTHER, NOW),
        ({"Webhook-Id": "another"}, BODY, SECRET, NOW),
        ({"Webhook-Timestamp": str(NOW + 1)}, BODY, SECRET, NOW),
        ({"Webhook-Timestamp": "x"}, BODY, SECRET, NOW),
        ({"Webhook-Signature": "v1,"}, BODY, SECRET, NOW),
        ({"Webhook-Signature": "v1,é"}, BODY, SECRET, NOW),
        ({"Webhook-Signature": "v1,\udcff"}, BODY, SECRET, NOW),
        ({"Webhook-Signature": ""}, BODY, SECRET, NOW),
        ({"Webhook-Id": "\udcff"}, BODY, SECRET, NOW),
        ({}, BODY, SECRET, NOW + 301),
        ({}, BODY, SECRET, NOW - 301),
    ],
)
def test_invalid_webhooks_are_refused(changed: Any, body: bytes, secret: str, now: int) -> None:
    with pytest.raises(InvalidSignature):
        webhooks.verify(body, {**headers(), **changed}, secret, now=now)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_%%"])
def test_malformed_secret_is_a_value_error(secret: str) -> None:
    with pytest.raises(ValueError, match="malformed secret"):
        webhooks.verify(BODY, headers(), secret, now=NOW)


def test_signed_body_must_be_an_object() -> None:
    for body in (b"", b"[]", b"{", b"[" * 100_000):
        with pytest.raises(InvalidSignature, match="body"):
            webhooks.verify(body, headers(body=body), SECRET, now=NOW)


@pytest.mark.parametrize(
    ("length", "status"), [("-1", 411), ("x", 411), ("99999999999999999999", 413), (str(len(BODY)), 204)]
)
def test_receiver_of_the_examples(length: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBHOOK_SECRET", f"{OTHER},{SECRET}")
    names = runpy.run_path(str(Path(__file__).resolve().parents[2] / "examples" / "webhook_receiver.py"))
    with ThreadingHTTPServer(("127.0.0.1", 0), names["Receiver"]) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            with socket.create_connection(("127.0.0.1", server.server_address[1]), 30) as connection:
                given = {**headers(at=int(time.time())), "Content-Length": length}
                head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
                connection.sendall(f"POST / HTTP/1.0\r\n{head}\r\n".encode() + BODY)
                assert connection.makefile("rb").readline().split()[1] == str(status).encode()
        finally:
            server.shutdown()
            thread.join()
