import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { WebhookVerificationError, verifyWebhook } from "@sortie/sdk";

const key = Buffer.alloc(32, 7);
const secret = `whsec_${key.toString("base64")}`;
const body = '{"eventId":"urn:orch:event:1","later":"ü"}';
const seconds = 1_800_000_000;
const now = () => seconds * 1000;

function signed(changes = {}) {
  const id = "msg_1";
  const signature = createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64");
  return { "Webhook-Id": id, "Webhook-Timestamp": String(seconds), "Webhook-Signature": `v1,${signature}`, ...changes };
}

test("a valid webhook is its event", async () => {
  const want = JSON.parse(body);
  assert.deepEqual(await verifyWebhook({ headers: signed(), body }, secret, { now }), want);
  assert.deepEqual(await verifyWebhook({ headers: new Headers(signed()), body: new TextEncoder().encode(body) }, [secret], { now }), want);
  assert.deepEqual(await verifyWebhook(new Request("http://x/", { method: "POST", headers: signed(), body }), secret, { now }), want);
});

test("one of several secrets and signatures is enough", async () => {
  const other = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
  const headers = signed();
  headers["Webhook-Signature"] = `v1,${Buffer.alloc(32).toString("base64")} v2,x ${headers["Webhook-Signature"]}`;
  await verifyWebhook({ headers, body }, [other, secret], { now });
});

const cases = {
  "another body": { body: body.replace("1", "2") },
  "another secret": { secrets: `whsec_${Buffer.alloc(32, 1).toString("base64")}` },
  "an old timestamp": { now: () => (seconds + 301) * 1000 },
  "a future timestamp": { now: () => (seconds - 301) * 1000 },
  "another id": { headers: signed({ "Webhook-Id": "msg_2" }) },
  "no signature": { headers: signed({ "Webhook-Signature": undefined }) },
  "a malformed signature": { headers: signed({ "Webhook-Signature": "v1,*** v1" }) },
  "a malformed timestamp": { headers: signed({ "Webhook-Timestamp": "NaN" }) },
  "a malformed secret": { secrets: "whsec_*" },
  "no secret": { secrets: [] },
};
for (const [name, change] of Object.entries(cases)) {
  test(`${name} is refused`, async () => {
    const request = { headers: change.headers ?? signed(), body: change.body ?? body };
    await assert.rejects(verifyWebhook(request, change.secrets ?? secret, { now: change.now ?? now }), WebhookVerificationError);
  });
}
