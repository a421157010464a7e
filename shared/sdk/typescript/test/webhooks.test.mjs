import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { request as send } from "node:http";
import { createServer } from "node:net";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { WebhookVerificationError, verifyWebhook } from "@sortie/sdk";

const key = Buffer.alloc(32, 7);
const secret = `whsec_${key.toString("base64")}`;
const body = '{"eventId":"urn:orch:event:1","later":"ü"}';
const seconds = 1_800_000_000;
const now = () => seconds * 1000;

function signed(changes = {}, content = body) {
  const id = "msg_1";
  const signature = createHmac("sha256", key).update(`${id}.${seconds}.${content}`).digest("base64");
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

test("a signed body that is no object is refused", async () => {
  for (const content of ["null", "[]", '"x"', "{"]) {
    await assert.rejects(verifyWebhook({ headers: signed({}, content), body: content }, secret, { now }), WebhookVerificationError, content);
  }
});

test("what is no raw body and no secret is refused", async () => {
  for (const content of [undefined, null, {}, [], JSON.parse(body)]) {
    await assert.rejects(verifyWebhook({ headers: signed(), body: content }, secret, { now }), { name: "WebhookVerificationError", message: /raw/ });
  }
  for (const secrets of [undefined, null, [undefined], [42], ""]) {
    await assert.rejects(verifyWebhook({ headers: signed(), body }, secrets, { now }), WebhookVerificationError, String(secrets));
  }
  await assert.rejects(verifyWebhook({ body }, secret, { now }), WebhookVerificationError);
});

test("a Request whose body was read is refused", async () => {
  const request = new Request("http://x/", { method: "POST", headers: signed(), body });
  await request.text();
  await assert.rejects(verifyWebhook(request, secret, { now }), { name: "WebhookVerificationError", message: /raw/ });
});

test("many signatures cost one MAC for each secret", async (t) => {
  const sign = t.mock.method(crypto.subtle, "sign");
  const verify = t.mock.method(crypto.subtle, "verify");
  const headers = signed({ "Webhook-Signature": Array(300).fill(`v1,${Buffer.alloc(32).toString("base64")}`).join(" ") });
  await assert.rejects(verifyWebhook({ headers, body }, [secret, secret], { now }), WebhookVerificationError);
  assert.equal(sign.mock.callCount() + verify.mock.callCount(), 2);
});

test("a signature with another length is refused", async () => {
  const valid = Buffer.from(signed()["Webhook-Signature"].slice(3), "base64");
  for (const wrong of [valid.subarray(0, 31), Buffer.concat([valid, Buffer.alloc(1)]), Buffer.alloc(0)]) {
    await assert.rejects(verifyWebhook({ headers: signed({ "Webhook-Signature": `v1,${wrong.toString("base64")}` }), body }, secret, { now }), WebhookVerificationError);
  }
});

test("a body without an end is not read to it", async () => {
  let sent = 0;
  const endless = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(++sent && 1 << 20)) });
  const request = new Request("http://x/", { method: "POST", headers: signed(), body: endless, duplex: "half" });
  await assert.rejects(verifyWebhook(request, secret, { now }), /the body has more than/);
  assert.ok(sent < 10);
});

test("the example receiver survives an aborted and a huge request", { timeout: 60_000 }, async () => {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  const receiver = spawn(process.execPath, [fileURLToPath(new URL("examples/webhook.mjs", import.meta.url))], {
    env: { PATH: process.env.PATH, PORT: String(port), WEBHOOK_SECRET: secret }, stdio: ["ignore", "ignore", "inherit"],
  });
  const call = (content, length = content.length) => new Promise((resolve) => {
    const request = send({ port, host: "127.0.0.1", method: "POST", agent: false, headers: { "Content-Length": length } }, (response) => resolve(response.resume().statusCode));
    request.on("error", (error) => resolve(error.code));
    request.write(content);
    if (length > content.length) setTimeout(() => request.destroy(), 100);
    else request.end();
  });
  try {
    for (let tries = 0; (await call("{}")) === "ECONNREFUSED"; tries++) {
      assert.ok(tries < 100);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await call("{", 1000);
    await call(Buffer.alloc(2 << 20));
    assert.equal(await call("{}"), 401);
    assert.equal(receiver.exitCode, null);
  } finally {
    receiver.kill();
  }
});
