import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const names = [process.env.CHROMIUM, "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];
const chromium = names.find((name) => name && spawnSync(name, ["--version"]).status === 0);

function webhook() {
  const key = Buffer.alloc(32, 7);
  const body = '{"eventId":"urn:orch:event:1"}';
  const at = String(Math.floor(Date.now() / 1000));
  const signature = createHmac("sha256", key).update(`msg_1.${at}.${body}`).digest("base64");
  const headers = { "Webhook-Id": "msg_1", "Webhook-Timestamp": at, "Webhook-Signature": `v1,${signature}` };
  return { secret: `whsec_${key.toString("base64")}`, headers, body };
}

/** Returns the status, the media type and the text of an answer. */
function answer({ method, url, headers }, bundle) {
  if (url === "/") return [200, "text/html", '<!doctype html><script type="module" src="/page.js"></script>'];
  if (url === "/page.js") return [200, "text/javascript", bundle];
  if (url === "/webhook") return [200, "application/json", JSON.stringify(webhook())];
  if (url === "/result") return [204, "text/plain", ""];
  if (!url.startsWith("/v1/")) return [404, "text/plain", ""];
  if (headers.authorization !== "Bearer secret") return [401, "application/json", '{"status":401,"code":"UNAUTHORIZED"}'];
  if (method === "POST") return [202, "application/json", '{"taskId":"a","runId":"a","state":"Pending"}'];
  if (url.startsWith("/v1/events/stream")) {
    return [200, "text/event-stream", [1, 2].map((n) => `id: s-${n}\ndata: {"eventId":"${n}"}\n\n`).join("")];
  }
  return [404, "application/problem+json", '{"status":404,"code":"NOT_FOUND","title":"t","detail":"d"}'];
}

const missing = !chromium && "needs Chromium: apt-get install chromium-headless-shell, or set CHROMIUM";
test("client and webhooks in a browser", { skip: missing, timeout: 120_000 }, async () => {
  const bundle = await readFile(new URL("./bundle/page.mjs", import.meta.url));
  let report;
  const reported = new Promise((resolve) => { report = resolve; });
  const server = createServer((request, response) => {
    const [status, type, text] = answer(request, bundle);
    response.writeHead(status, { "Content-Type": type }).end(text);
    if (request.url !== "/result") return;
    let sent = "";
    request.on("data", (part) => { sent += part; }).on("end", () => report(JSON.parse(sent)));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const profile = await mkdtemp(join(tmpdir(), "sortie-browser-"));
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", `--user-data-dir=${profile}`, "--remote-debugging-port=0"];
  const browser = spawn(chromium, [...flags, `http://127.0.0.1:${server.address().port}/`], { stdio: "ignore", detached: true });
  const ended = once(browser, "exit").then(([code]) => ({ failed: `the browser exited with ${code}` }));
  try {
    assert.deepEqual(await Promise.race([reported, ended]), {
      created: "a", refused: "NOT_FOUND", events: ["1", "2"], webhook: { eventId: "urn:orch:event:1" },
    });
  } finally {
    if (browser.exitCode === null) process.kill(-browser.pid, "SIGKILL"); // its group: the program may be a script that starts it
    await ended;
    server.closeAllConnections();
    server.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
});
