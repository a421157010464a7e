import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { inspect } from "node:util";
import * as vm from "node:vm";
import { readFile } from "node:fs/promises";
import { ApiError, ConnectionError, Sortie, SortieError, TimeoutError } from "@sortie/sdk";

const url = "http://sortie.test";

/** Answers calls in order, and records them. */
function fake(...answers) {
  const seen = [];
  const fetch = async (address, init) => {
    seen.push({ url: new URL(address), ...init });
    const answer = answers[Math.min(seen.length, answers.length) - 1];
    return typeof answer === "function" ? answer(init) : answer.clone();
  };
  return { seen, fetch, client: new Sortie({ url, token: "secret", fetch, maxRetries: 2 }) };
}

const json = (body, status = 200, headers = {}) => new Response(JSON.stringify(body), { status, headers });
const problem = (status, code, more = {}, headers = {}) =>
  json({ type: "urn:sortie:problem:x", title: "t", status, detail: "d", code, retryable: false, correlationId: "c1", ...more }, status, headers);

test("a problem document becomes an ApiError with its code", async () => {
  const { client } = fake(problem(404, "NOT_FOUND", { field: "run_id" }));
  const error = await client.runs.get("x").catch((caught) => caught);
  assert.ok(error instanceof ApiError && error instanceof SortieError && error instanceof Error);
  assert.deepEqual([error.status, error.code, error.correlationId, error.field, error.retryable], [404, "NOT_FOUND", "c1", "run_id", false]);
});

test("an error of an OpenAI route has its code", async () => {
  const { client } = fake(json({ error: { message: "no", code: "model_not_found" } }, 404));
  await assert.rejects(client.openai.model("m"), (error) => error instanceof ApiError && error.code === "model_not_found" && error.detail === "no");
});

test("errors of the CJS copy are instances, too", async () => {
  const other = createRequire(import.meta.url)("@sortie/sdk");
  assert.notEqual(other.ApiError, ApiError);
  const error = new other.ApiError(404, {});
  assert.ok(error instanceof ApiError && error instanceof SortieError);
  assert.ok(!(error instanceof TimeoutError));
});

test("a create is repeated with the same idempotency key", async () => {
  const lost = () => Promise.reject(new TypeError("fetch failed"));
  const { client, seen } = fake(lost, problem(503, "UNAVAILABLE", { retryable: true }), json({ taskId: "a", runId: "a", state: "Pending" }, 202));
  assert.equal((await client.runs.create({ image: "x" })).taskId, "a");
  assert.equal(seen.length, 3);
  assert.equal(new Set(seen.map((call) => call.headers["idempotency-key"])).size, 1);
  assert.ok(seen[0].headers["idempotency-key"]);
  assert.equal(seen[0].headers.authorization, "Bearer secret");
});

test("a retry sends its changes, a run of a job its items, and events are a batch", async () => {
  const { client, seen } = fake(json({ taskId: "a", runId: "a", state: "Pending" }, 202));
  await client.runs.retry("r", { onlyFailed: true, downstream: true });
  await client.tasks.retry("t");
  await client.jobs.run("j", { itemsFrom: "r" });
  await client.jobs.sendEvents("j", [{ specversion: "1.0", id: "1", source: "/shop", type: "order" }]);
  assert.deepEqual(seen.map(({ body }) => JSON.parse(body)), [
    { onlyFailed: true, downstream: true }, {}, { itemsFrom: "r" }, [{ specversion: "1.0", id: "1", source: "/shop", type: "order" }],
  ]);
  assert.equal(seen[3].headers["content-type"], "application/cloudevents-batch+json");
});

test("a change without a key is not repeated", async () => {
  const { client, seen } = fake(() => Promise.reject(new TypeError("fetch failed")));
  await assert.rejects(client.jobs.pause("j"), ConnectionError);
  assert.equal(seen.length, 1);
});

test("429 waits as long as the server says", async () => {
  const { client } = fake(problem(429, "THROTTLED", { retryable: true }, { "Retry-After": "1", "X-Backoff-Ms": "150" }), json({}));
  const begun = Date.now();
  await client.server.health();
  assert.ok(Date.now() - begun >= 145, `got ${Date.now() - begun} ms`);
});

test("a call ends after its time limit", async () => {
  const never = (init) => new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(init.signal.reason)));
  const { client } = fake(never);
  await assert.rejects(client.jobs.pause("j", { timeoutMs: 20 }), TimeoutError);
});

test("the signal of the caller ends a call with its reason", async () => {
  const never = (init) => new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(init.signal.reason)));
  const { client } = fake(never);
  const controller = new AbortController();
  const call = client.runs.get("x", { signal: controller.signal });
  controller.abort(new Error("enough"));
  await assert.rejects(call, /enough/);
});

test("many calls on one signal leave no listeners", async () => {
  const { client } = fake(json({}));
  const { signal } = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args) => (listeners++, addEventListener.apply(signal, args));
  signal.removeEventListener = (...args) => (listeners--, removeEventListener.apply(signal, args));
  for (let call = 0; call < 1000; call++) await client.server.health({ signal });
  assert.equal(listeners, 0);
});

test("redirects are not followed, so that no other server gets the token", async () => {
  const { client, seen } = fake(new Response(null, { status: 302, headers: { Location: "http://evil.test/" } }));
  await assert.rejects(client.runs.get("x"), /redirects/);
  assert.equal(seen[0].redirect, "manual");
});

test("a redirected download gives the other server no token and no header that may be secret", async () => {
  const got = [];
  const other = createServer((request, response) => {
    got.push(request.headers);
    response.end("bytes");
  }).listen(0, "127.0.0.1");
  await once(other, "listening");
  const location = `http://127.0.0.1:${other.address().port}/bucket?signature=x`;
  const server = createServer((_, response) => response.writeHead(302, { Location: location }).end()).listen(0, "127.0.0.1");
  await once(server, "listening");
  // This fetch keeps Authorization over redirects, as those of some runtimes do.
  const keeping = async (address, init) => {
    const response = await fetch(address, { ...init, redirect: "manual" });
    return init.redirect === "follow" && response.status === 302 ? fetch(response.headers.get("Location"), init) : response;
  };
  try {
    const client = new Sortie({ url: `http://127.0.0.1:${server.address().port}`, token: "secret", fetch: keeping });
    const response = await client.outputs.download("x", { headers: { "X-Api-Key": "secret", Range: "bytes=0-4" } });
    assert.equal(await response.text(), "bytes");
    assert.equal(got[0].range, "bytes=0-4");
    assert.ok(!JSON.stringify(got).includes("secret"));
  } finally {
    for (const one of [server, other]) one.close(), one.closeAllConnections();
  }
});

test("a browser, which does not show the target of a redirect, follows it", async () => {
  const opaque = () => Object.defineProperty(new Response(null), "type", { value: "opaqueredirect" });
  const { client, seen } = fake(opaque, new Response("bytes"));
  assert.equal(await (await client.outputs.download("x")).text(), "bytes");
  assert.deepEqual(seen.map((call) => call.redirect), ["manual", "follow"]);
});

test("a redirect without a target is an error", async () => {
  const { client } = fake(new Response(null, { status: 302 }));
  await assert.rejects(client.outputs.download("x"), /redirects/);
});

test("no print of a client contains its token", () => {
  const client = new Sortie({ url, token: "secret" });
  assert.ok(!inspect(client, { depth: 9, showHidden: true }).includes("secret"));
  assert.ok(!JSON.stringify(client).includes("secret"));
});

test("a token loses its line end, and a malformed one is refused without a quote", async () => {
  const seen = [];
  const fetch = async (_, init) => (seen.push(init.headers.authorization), new Response("{}", init));
  await new Sortie({ url, token: "secret\n", fetch }).server.health();
  assert.deepEqual(seen, ["Bearer secret"]);
  for (const token of ["sec\nret", "sec\u0142ret", "sec ret"]) {
    await assert.rejects(new Sortie({ url, token, fetch }).server.health(), { name: "SortieError", message: "token: want printable ASCII characters without spaces" });
  }
});

test("a url with a password, a query or a fragment is refused without a quote", () => {
  for (const wrong of ["http://user:secret@sortie.test", "http://sortie.test?secret", "http://sortie.test#secret", "http://", "ftp://secret"]) {
    assert.throws(() => new Sortie({ url: wrong }), (error) => error instanceof SortieError && !error.message.includes("secret"), wrong);
  }
});

test("headers of the caller replace those of the client in any case", async () => {
  const { client, seen } = fake(json({}));
  await client.runs.create({ image: "x" }, { headers: { "idempotency-KEY": "mine", "content-TYPE": "application/x", authorization: "Basic x" } });
  assert.deepEqual(seen[0].headers, {
    "accept": "application/json", "authorization": "Bearer secret", "content-type": "application/x", "idempotency-key": "mine",
  });
});

test("fetch is not called as a method", async () => {
  let receiver = "none";
  await new Sortie({ url, fetch: async function () {
    receiver = this;
    return json({});
  } }).server.health();
  assert.equal(receiver, undefined);
});

test("a call without a time limit waits", async () => {
  const slow = () => new Promise((resolve) => setTimeout(() => resolve(json({ status: "ok" })), 30));
  assert.equal((await fake(slow).client.server.health({ timeoutMs: Infinity })).status, "ok");
});

test("a class of a user that extends an error has only its own instances", () => {
  class Mine extends ApiError {}
  assert.ok(!(new ApiError(404, {}) instanceof Mine));
  const mine = new Mine(404, {});
  assert.ok(mine instanceof Mine && mine instanceof ApiError && mine instanceof SortieError && !(mine instanceof TimeoutError));
});

test("ids are escaped, and dots are refused", async () => {
  const { client, seen } = fake(json({}));
  await client.jobs.get("a/b c");
  assert.equal(seen[0].url.pathname, "/v1/jobs/a%2Fb%20c");
  await assert.rejects(async () => client.jobs.get(".."), SortieError);
  await assert.rejects(async () => client.jobs.get(""), SortieError);
});

test("a list is a page, all items, or all pages", async () => {
  const pages = [json({ tasks: [{ taskId: "a" }], nextCursor: "n" }), json({ tasks: [] , nextCursor: "m" }), json({ tasks: [{ taskId: "b" }] })];
  const once = fake(...pages);
  const page = await once.client.runs.list({ state: "Running", limit: 1 });
  assert.deepEqual(page, { items: [{ taskId: "a" }], next: "n" });
  assert.equal(once.seen[0].url.search, "?state=Running&limit=1");
  const all = fake(...pages);
  const ids = [];
  for await (const run of all.client.runs.list()) ids.push(run.taskId);
  assert.deepEqual(ids, ["a", "b"]);
  assert.deepEqual(all.seen.map((call) => call.url.search), ["", "?cursor=n", "?cursor=m"]);
});

test("unknown members and enum values survive", async () => {
  const body = { taskId: "a", state: "Dreaming", later: { nested: [1] } };
  assert.deepEqual(await fake(json(body)).client.runs.get("a"), body);
});

function sse(...chunks) {
  return () => new Response(new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk));
      controller.close();
    },
  }), { headers: { "Content-Type": "text/event-stream" } });
}

test("a stream of events continues behind the last id", async () => {
  const { client, seen } = fake(
    sse("id: s-1\n\n", 'retry: 10\nid: s-2\nevent: a\ndata: {"eventId":"2"}\n\n'),
    () => Promise.reject(new TypeError("fetch failed")),
    sse("id: s-7\n\n"),
    sse('id: s-8\nevent: a\ndata: {"eventId":"8"}\n\n'),
  );
  const stream = client.events.stream({ after: "earliest", types: ["job.*", "x"] });
  const ids = [];
  for await (const event of stream) {
    ids.push([event.eventId, stream.cursor]);
    if (ids.length === 2) break;
  }
  assert.deepEqual(ids, [["2", "s-2"], ["8", "s-8"]]);
  assert.deepEqual(seen.map((call) => call.url.searchParams.get("after")), ["earliest", "s-2", "s-2", "s-7"]);
  assert.equal(seen[0].url.search, "?types=job.*%2Cx&after=earliest&gap=fail");
});

test("a page of another program ends a stream", async () => {
  const { client, seen } = fake(() => new Response("<html>", { headers: { "Content-Type": "text/html; charset=utf-8" } }));
  await assert.rejects(async () => {
    for await (const _ of client.events.stream({ signal: AbortSignal.timeout(2000) }));
  }, { name: "SortieError", message: /check the url/ });
  assert.equal(seen.length, 1);
});

test("a gap ends a stream, or is reported", async () => {
  const gone = fake(problem(410, "CURSOR_EXPIRED"));
  await assert.rejects(async () => {
    for await (const _ of gone.client.events.stream({ after: "s-1" }));
  }, (error) => error.code === "CURSOR_EXPIRED");
  const gaps = [];
  const reported = fake(sse('id: s-9\nevent: stream.gap\ndata: {"oldest":"s-10"}\n\nid: s-10\ndata: {"eventId":"10"}\n\n'));
  for await (const event of reported.client.events.stream({ after: "s-1", onGap: (gap) => gaps.push(gap) })) {
    assert.equal(event.eventId, "10");
    break;
  }
  assert.deepEqual(gaps, [{ oldest: "s-10" }]);
  assert.equal(reported.seen[0].url.searchParams.has("gap"), false);
});

test("an aborted stream throws the reason of its signal", async () => {
  const controller = new AbortController();
  const { client } = fake((init) => new Response(new ReadableStream({
    start(body) {
      init.signal.addEventListener("abort", () => body.error(init.signal.reason));
    },
  })));
  setTimeout(() => controller.abort(new Error("enough")), 30);
  await assert.rejects(async () => {
    for await (const _ of client.events.stream({ signal: controller.signal }));
  }, /enough/);
});

test("the stream of a task ends with its end, or with 204", async () => {
  const { client, seen } = fake(sse('id: 1.1\nevent: token\ndata: {"t":"a"}\n\n', ": comment\n\n"), sse('id: 2.1\nevent: end\ndata: {}\n\n'));
  const events = [];
  for await (const one of client.tasks.stream("x")) events.push(one.event);
  assert.deepEqual(events, ["token", "end"]);
  assert.deepEqual(seen.map((call) => call.headers["last-event-id"]), [undefined, "1.1"]);
  for await (const _ of fake(new Response(null, { status: 204 })).client.tasks.stream("x")) assert.fail("got an event");
});

test("a stream of completions ends with [DONE]", async () => {
  const { client, seen } = fake(sse('data: {"n":1}\n\n', "data: [DO", "NE]\n\n", 'data: {"n":2}\n\n'));
  const parts = [];
  for await (const part of client.openai.streamChat({ model: "m", messages: [] })) parts.push(part);
  assert.deepEqual(parts, [{ n: 1 }]);
  assert.equal(JSON.parse(seen[0].body).stream, true);
});

test("logs continue at their offset until the end of the run", async () => {
  const { client, seen } = fake(
    sse('{"attempt":1,"stream":"stdout","data":"YQ==","ne', 'xt":1}\n{"attempt":1,"next"'),
    sse('{"attempt":2,"data":"Yg==","next":1}\n{"attempt":2,"next":1,"ended":true}\n'),
  );
  const lines = [];
  for await (const line of client.tasks.followLogs("x")) lines.push(line.next);
  assert.deepEqual(lines, [1, 1, 1]);
  assert.equal(seen[1].url.search, "?attempt=1&offset=1&follow=true");
});

test("a stream waits, however long the server says", async () => {
  const answers = [problem(429, "THROTTLED", { retryable: true }, { "Retry-After": "9999999" }), sse("retry: 99999999999\n\n")];
  for (const answer of answers) {
    const { client, seen } = fake(answer);
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error("enough")), 300);
    await assert.rejects(async () => {
      for await (const _ of client.events.stream({ signal: controller.signal }));
    }, /enough/);
    assert.equal(seen.length, 1);
  }
});

test("logs continue after a refusal that may end", async () => {
  const { client } = fake(...Array(3).fill(problem(502, "HTTP_502", { retryable: true })), sse('{"ended":true}\n'));
  const lines = [];
  for await (const line of client.tasks.followLogs("x")) lines.push(line);
  assert.deepEqual(lines, [{ ended: true }]);
});

test("an endless line ends a stream", async () => {
  const endless = () => new Response(new ReadableStream({ pull: (body) => body.enqueue(new Uint8Array(1 << 20).fill(97)) }));
  const { client } = fake(endless);
  await assert.rejects(async () => {
    for await (const _ of client.tasks.followLogs("x"));
  }, { name: "SortieError", message: "a line of the stream is too long" });
  await assert.rejects(async () => {
    for await (const _ of client.events.stream());
  }, { name: "SortieError", message: "a message of the stream is too large" });
});

test("an abandoned download releases its body", async () => {
  let cancelled = false;
  const { client } = fake(() => new Response(new ReadableStream({ pull: (body) => body.enqueue(new Uint8Array(9)), cancel: () => void (cancelled = true) })));
  const response = await client.outputs.download("x");
  await response.body.cancel();
  assert.ok(cancelled);
});

test("the client runs where there is no Node.js and no environment may be read", async () => {
  const modules = new Map();
  const process = { env: new Proxy({}, { get: () => { throw new Error("not permitted"); } }) }; // as in Deno
  const globals = { process, fetch: async () => json({ status: "ok" }), crypto, URL, URLSearchParams, TextDecoder, TextEncoder, AbortController, ReadableStream, Response, setTimeout, clearTimeout, atob };
  const context = vm.createContext(globals);
  const root = new URL("./", import.meta.resolve("@sortie/sdk"));
  const load = async (name) => {
    if (modules.has(name)) return modules.get(name);
    const exports = {};
    const module = { exports };
    modules.set(name, module);
    const text = await readFile(new URL(name.replace(/\.mjs$/, ".cjs"), root), "utf8");
    for (const [, needed] of text.matchAll(/require\("([^"]+)"\)/g)) {
      assert.match(needed, /^\./, `${name} needs ${needed}`);
      await load(new URL(needed, new URL(name, "http://x/")).pathname.slice(1));
    }
    const require = (needed) => modules.get(new URL(needed, new URL(name, "http://x/")).pathname.slice(1)).exports;
    vm.runInContext(`(function (module, exports, require) {${text}\n})`, context)(module, exports, require);
    return module;
  };
  const { exports } = await load("index.cjs");
  // The object is of another realm.
  assert.equal((await new exports.Sortie({ url }).server.health()).status, "ok");
});

test("a redirect leads a download to one http address, and no error has it", async () => {
  for (const location of ["file:///etc/secret", "data:,secret", "http://[secret", "http://user:secret@store.test/"]) {
    const { client, seen } = fake(new Response(null, { status: 302, headers: { Location: location } }));
    await assert.rejects(client.outputs.download("x"), (error) => error instanceof SortieError && !inspect(error, { depth: 9 }).includes("secret"), location);
    assert.equal(seen.length, 1);
  }
  const store = "http://store.test/o?signature=secret";
  const twice = fake(new Response(null, { status: 302, headers: { Location: store } }));
  await assert.rejects(twice.client.outputs.download("x"), /redirects/);
  assert.equal(twice.seen.length, 2);
  for (const status of [301, 303, 307]) {
    const other = fake(new Response(null, { status, headers: { Location: store } }));
    await assert.rejects(other.client.outputs.download("x"), /redirects/);
    assert.equal(other.seen.length, 1);
  }
});

test("an error of a bucket has no presigned URL", async () => {
  const address = "http://store.test/o?signature=secret";
  const redirect = new Response(null, { status: 302, headers: { Location: address } });
  const lost = () => Promise.reject(Object.assign(new TypeError(`error sending request for url (${address})`), { path: address }));
  const { client, seen } = fake(redirect, lost, redirect, lost, redirect, lost);
  const error = await client.outputs.download("x").catch((caught) => caught);
  assert.ok(error instanceof ConnectionError);
  assert.ok(!inspect(error, { depth: 9 }).includes("secret"), inspect(error));
  assert.equal(seen.length, 6);
});

test("a response without a body has no presigned URL", async () => {
  const got = Object.defineProperty(new Response(null), "url", { value: "http://store.test/o?signature=secret" });
  const { client } = fake(new Response(null, { status: 302, headers: { Location: "http://store.test/o?signature=secret" } }), () => got);
  const response = await client.outputs.download("x");
  assert.equal(response.status, 200);
  assert.ok(!inspect(response).includes("secret"));
});

test("a malformed header is refused without a quote, and not sent again", async () => {
  for (const headers of [{ "X-Api-Key": "secret\n" }, { "X-Api-Key": "\u0142secret" }, { "secret\n": "x" }]) {
    const { client, seen } = fake(json({}));
    await assert.rejects(client.server.health({ headers }), (error) => error instanceof SortieError && !inspect(error, { depth: 9 }).includes("secret"));
    assert.equal(seen.length, 0);
  }
  await assert.rejects(fake(json({})).client.runs.create({ image: "x" }, { idempotencyKey: "a\nb" }), { name: "SortieError", message: "header idempotency-key: want printable characters of Latin-1" });
});

test("only a key that the operation takes makes a request repeatable", async () => {
  const lost = () => Promise.reject(new TypeError("fetch failed"));
  for (const options of [{ headers: { "Idempotency-Key": "k" } }, { idempotencyKey: "k" }]) {
    const { client, seen } = fake(lost);
    await assert.rejects(client.webhooks.test("w", options), ConnectionError);
    assert.equal(seen.length, 1);
  }
  await assert.rejects(fake(json({})).client.runs.create({ image: "x" }, { idempotencyKey: "" }), { name: "SortieError", message: "idempotencyKey: want a text" });
});

test("503 of a program between does not repeat a change", async () => {
  const { client, seen } = fake(new Response("down", { status: 503 }));
  await assert.rejects(client.jobs.patch("j", {}), ApiError);
  assert.equal(seen.length, 1);
  const refused = fake(problem(503, "UNAVAILABLE", { retryable: true }), json({}));
  await refused.client.jobs.patch("j", {});
  assert.equal(refused.seen.length, 2);
});

test("a worker's call without its token does not send that of the client", async () => {
  const { client, seen } = fake(json({}));
  await assert.rejects(client.workers.started("x", "", {}), { name: "SortieError", message: "token: want printable ASCII characters without spaces" });
  assert.equal(seen.length, 0);
});

test("a problem document of another program is read to a limit", async () => {
  let sent = 0;
  const { client } = fake(() => new Response(new ReadableStream({ pull: (body) => body.enqueue(new Uint8Array(++sent && 1 << 20)) }), { status: 404 }));
  await assert.rejects(client.runs.get("x"), { status: 404, code: "HTTP_404" });
  assert.ok(sent < 10, `got ${sent} MiB`);
});

test("malformed messages of a stream are an error of this package", async () => {
  for (const text of ["data: {\n\n", "data: null\n\n"]) {
    for (const open of [(one) => one.events.stream(), (one) => one.tasks.stream("x"), (one) => one.openai.streamChat({ model: "m", messages: [] })]) {
      await assert.rejects(async () => {
        for await (const _ of open(fake(sse(text)).client));
      }, { name: "SortieError", message: "malformed message of the stream" });
    }
  }
  for (const text of ["{\n", "null\n"]) {
    await assert.rejects(async () => {
      for await (const _ of fake(sse(text)).client.tasks.followLogs("x"));
    }, { name: "SortieError", message: "malformed message of the stream" });
  }
});

test("an id that is not text is refused", async () => {
  const { client } = fake(json({}));
  for (const id of ["\ud800", undefined, null, {}, true]) await assert.rejects(async () => client.jobs.get(id), SortieError, String(id));
});

test("wait asks the server for less than the time limit of a request", async () => {
  const answers = [json({ taskId: "t", state: "Running" }), json({ state: "Completed" }), json({ taskId: "t", state: "Completed" })];
  for (const [timeoutMs, wait] of [[undefined, "20"], [10_000, "5"], [500, "0"]]) {
    const { client, seen } = fake(...answers);
    await client.runs.wait("r", { timeoutMs });
    assert.equal(seen[1].url.searchParams.get("wait"), wait);
  }
});

test("a URL of sockets is an address without a user", async () => {
  const { client } = fake(json({ ticket: "secret" }));
  for (const wrong of ["", "ftp://x", "http://u:p@x/", "http://x/?a"]) {
    await assert.rejects(client.events.connect({ url: wrong, WebSocket: class {} }), { name: "SortieError", message: /^url: want/ });
  }
});
