// Tests against a real server: SORTIE_BIN is the program.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ApiError, Sortie } from "@sortie/sdk";

const bin = process.env.SORTIE_BIN;
const here = fileURLToPath(new URL("./", import.meta.url));
const options = { timeout: 240_000 };
let folder;
let server;
let url;
let token;
let sortie;

async function freePort() {
  const probe = createServer();
  probe.listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}

async function start(address) {
  server = spawn(bin, [
    "dev", "--addr", address, "--data", join(folder, "data"), "--json", "--engine", "mock", "--image", `wordcount=${process.execPath} ${join(here, "examples/worker.mjs")}`,
  ], { cwd: folder, env: { PATH: process.env.PATH, HOME: folder, SORTIE_HOOK_ALLOW: "127.0.0.1" }, stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  server.stderr.on("data", (part) => (log = (log + part).slice(-4000)));
  const [line] = await Promise.race([
    once(createInterface(server.stdout), "line"),
    once(server, "exit").then(() => assert.fail(`the server ended: ${log}`)),
  ]);
  const ready = JSON.parse(line);
  url = ready.url;
  token = (await readFile(ready.tokenFile, "utf8")).trim();
  sortie = new Sortie({ url, token });
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "sortie-live-"));
  await start(`127.0.0.1:${await freePort()}`);
}, options);

after(async () => {
  server.kill("SIGTERM");
  await Promise.race([once(server, "exit"), new Promise((resolve) => setTimeout(resolve, 30_000).unref())]);
  server.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
}, options);

const wordcount = (text) => ({ image: "wordcount", completion: "callback", input: Buffer.from(text).toString("base64") });

test("the example client submits, follows and fetches", options, async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [join(here, "examples/client.mjs")], { env: { PATH: process.env.PATH, SORTIE_URL: url, SORTIE_TOKEN: token } });
  assert.match(stdout, /counted 8 words/);
  assert.match(stdout, /Completed/);
  assert.match(stdout, /rose: 3/);
});

test("the events and the states of a run are complete", options, async () => {
  const { taskId } = await sortie.runs.create(wordcount("one two"));
  const run = await sortie.runs.wait(taskId);
  assert.equal(run.state, "Completed");
  const types = [];
  for await (const event of sortie.tasks.events(taskId, { limit: 3 })) types.push([event.seq, event.type]);
  assert.deepEqual(types.map(([seq]) => seq), types.map((_, at) => at + 1));
  assert.equal(types.at(-1)[1], "job.completed");
  // Events are published after the run has changed, so follow them until the last one.
  const published = [];
  for await (const event of sortie.events.stream({ taskId, after: "earliest" })) {
    published.push(event.eventId);
    if (event.eventType === "job.completed") break;
  }
  const stored = [];
  for await (const event of sortie.events.list({ taskId, limit: 4 })) stored.push(event.eventId);
  assert.deepEqual(stored.slice(0, published.length), published);
  const states = [];
  for await (const update of sortie.runs.updates(taskId)) states.push(update.status);
  assert.equal(states.at(-1), "Completed");
  assert.ok((await sortie.outputs.describe(taskId)).get("Content-Disposition").includes("counts.json"));
  assert.match(await sortie.tasks.logs(taskId), /counted 2 words/);
  assert.equal((await sortie.runs.explain(taskId)).runId, run.runId);
  await sortie.outputs.delete(taskId);
  await assert.rejects(sortie.outputs.download(taskId), (error) => error instanceof ApiError && error.code.startsWith("OUTPUT_"));
});

test("a repeated create is one run", options, async () => {
  const request = { image: "exec:/bin/echo", command: ["hello"] };
  const ids = [];
  for (let n = 0; n < 2; n++) ids.push((await sortie.runs.create(request, { idempotencyKey: "once" })).taskId);
  assert.equal(ids[0], ids[1]);
  assert.equal((await sortie.runs.wait(ids[0])).state, "Completed");
});

test("a cancel ends the work with its partial progress", options, async () => {
  const { taskId } = await sortie.runs.create(wordcount("some words to count"));
  for await (const line of sortie.tasks.followLogs(taskId)) if (line.data) break; // it works
  await sortie.runs.cancel(taskId, { reason: "not needed" });
  const run = await sortie.runs.wait(taskId);
  assert.equal(run.state, "Cancelled");
});

test("a failure has its category and is not retried", options, async () => {
  const { taskId } = await sortie.runs.create(wordcount("123"));
  const run = await sortie.runs.wait(taskId);
  assert.equal(run.state, "Failed");
  assert.equal(run.attempt, 1);
  assert.match(JSON.stringify(run), /DATA_QUALITY/);
});

test("an unknown run is NOT_FOUND", options, async () => {
  await assert.rejects(sortie.runs.get("job_01M8FF8N1V3QZB57K12SNBP2NT"), (error) =>
    error instanceof ApiError && error.code === "NOT_FOUND" && error.status === 404 && error.correlationId !== undefined);
});

test("a token without the scope is refused", options, async () => {
  await assert.rejects(new Sortie({ url, token: "not-a-token-of-this-server" }).runs.create({ image: "exec:/bin/echo" }), (error) =>
    error instanceof ApiError && error.code === "RUNNER_NOT_ALLOWED" && error.retryable === false);
});

test("jobs are stored, run and deleted", options, async () => {
  const job = await sortie.jobs.put("hello", { image: "exec:/bin/echo", command: ["hello"] });
  assert.equal(job.id, "hello");
  await assert.rejects(sortie.jobs.put("hello", { image: "exec:/bin/echo" }, {}, { ifNoneMatch: "*" }), (error) => error.code === "PRECONDITION_FAILED");
  await sortie.jobs.put("hello", "image: exec:/bin/echo\ncommand: [again]\n");
  await sortie.jobs.patch("hello", { name: "Hello" });
  const { taskId } = await sortie.jobs.run("hello");
  assert.equal((await sortie.runs.wait(taskId)).state, "Completed");
  const runs = [];
  for await (const run of sortie.jobs.runs("hello", { limit: 1 })) runs.push(run.taskId);
  assert.deepEqual(runs, [taskId]);
  await sortie.jobs.delete("hello");
  const jobs = await sortie.jobs.list();
  assert.deepEqual(jobs.items, []);
});

test("artifacts are stored once", options, async () => {
  const note = await sortie.artifacts.create({ kind: "note", content: { text: "hello" } });
  assert.deepEqual((await sortie.artifacts.get(note.id)).content, { text: "hello" });
  const bytes = new Uint8Array([1, 2, 3]);
  const stored = await sortie.artifacts.upload(bytes, { kind: "blob", tags: ["a", "b"], metadata: { n: 1 }, contentType: "image/png" });
  assert.deepEqual(new Uint8Array(await (await sortie.artifacts.download(stored.id)).arrayBuffer()), bytes);
  const described = await sortie.artifacts.describe(stored.id);
  assert.deepEqual([described.tags, described.metadata], [["a", "b"], { n: 1 }]);
  const found = [];
  for await (const artifact of sortie.artifacts.list({ tag: "a" })) found.push(artifact.id);
  assert.deepEqual(found, [stored.id]);
});

test("an inference task is streamed", options, async () => {
  const model = (await sortie.openai.models()).data[0].id;
  const parts = [];
  for await (const part of sortie.openai.streamChat({ model, messages: [{ role: "user", content: "Hello" }], max_tokens: 5 })) parts.push(part);
  assert.ok(parts.length >= 2 && parts.every((part) => part.object === "chat.completion.chunk"));
  const whole = await sortie.openai.chat({ model, messages: [{ role: "user", content: "Hello" }], max_tokens: 5 });
  assert.equal(whole.object, "chat.completion");
});

test("the example receiver verifies a webhook", options, async () => {
  const port = await freePort();
  const webhook = await sortie.webhooks.create({ url: `http://127.0.0.1:${port}/`, eventTypes: ["job.completed"] });
  const secret = webhook.secret ?? webhook.secrets?.find?.((one) => String(one).startsWith("whsec_"));
  assert.match(secret, /^whsec_/);
  const receiver = spawn(process.execPath, [join(here, "examples/webhook.mjs")], { env: { PATH: process.env.PATH, PORT: String(port), WEBHOOK_SECRET: secret }, stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface(receiver.stdout)[Symbol.asyncIterator]();
  try {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const { taskId } = await sortie.runs.create({ image: "exec:/bin/echo", command: ["hello"] });
    // An earlier run may have ended after the webhook was created: its event comes, too.
    let line;
    do line = (await lines.next()).value;
    while (line !== undefined && line !== `job.completed ${taskId}`);
    assert.equal(line, `job.completed ${taskId}`);
    // Another secret is refused.
    await sortie.webhooks.rotate(webhook.id, { revokeOlder: true });
    const attempt = await sortie.webhooks.test(webhook.id);
    assert.equal(attempt.status, 401);
    const deliveries = await sortie.webhooks.deliveries(webhook.id);
    assert.ok(Array.isArray(deliveries.items));
  } finally {
    receiver.kill();
    await sortie.webhooks.delete(webhook.id);
  }
});

test("a stream of events and a wait survive the death of the server", options, async () => {
  const stream = sortie.events.stream({ types: ["job.accepted", "job.completed"] });
  const events = stream[Symbol.asyncIterator]();
  const got = [];
  const next = async () => {
    const { value } = await events.next();
    got.push(value.eventId);
    return value;
  };
  const opening = next();
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const before = (await sortie.runs.create({ image: "exec:/bin/sleep", command: ["4"] })).taskId;
  assert.equal((await opening).job.id, before);
  const cursor = stream.cursor;
  const address = new URL(url).host;
  server.kill("SIGKILL");
  await once(server, "exit");
  await start(address);
  const later = (await sortie.runs.create({ image: "exec:/bin/echo", command: ["after"] })).taskId;
  const waits = [sortie.runs.wait(before), sortie.runs.wait(later)];
  const ended = new Set();
  while (ended.size < 2) {
    const event = await next();
    if (event.eventType === "job.completed") ended.add(event.job.id);
  }
  await events.return?.();
  assert.deepEqual(ended, new Set([before, later]));
  for (const run of await Promise.all(waits)) assert.equal(run.state, "Completed");
  const stored = [];
  for await (const event of sortie.events.list({ after: cursor, types: ["job.accepted", "job.completed"] })) stored.push(event.eventId);
  assert.deepEqual(got.slice(1), stored.slice(0, got.length - 1));
});
