import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

const here = new URL("./", import.meta.url);

/**
 * Plays the control plane and the bucket. answer(name, body, n) may return { status, body, delayMs }.
 * It refuses the first earlyPuts uploads without reading them.
 */
async function plane(answer = () => undefined, earlyPuts = 0) {
  const calls = [];
  const counts = {};
  const server = createServer(async (request, response) => {
    if (request.method === "PUT" && earlyPuts-- > 0) return void response.writeHead(503, { Connection: "close" }).end(() => request.destroy());
    const parts = [];
    for await (const part of request) parts.push(part);
    const raw = Buffer.concat(parts);
    const name = request.method === "PUT" ? "put" : request.url.split("?")[0].split("/").pop();
    const body = name === "put" || raw.length === 0 ? raw : JSON.parse(raw);
    const call = { name, body, at: Date.now(), headers: request.headers, url: request.url };
    calls.push(call);
    counts[name] = (counts[name] ?? 0) + 1;
    const said = { status: 200, body: {}, delayMs: 0, ...answer(name, body, counts[name], request) };
    await new Promise((resolve) => setTimeout(resolve, said.delayMs));
    response.writeHead(said.status, { "Content-Type": "application/json" });
    response.end(JSON.stringify({ acknowledged: true, shouldCancel: false, ...said.body }));
    call.answered = Date.now();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const base = `http://127.0.0.1:${server.address().port}`;
  return { calls, base, of: (name) => calls.filter((call) => call.name === name), close: () => server.close() };
}

function envelope(base, changes = {}) {
  return {
    taskId: "task_1.a~b", runId: "run_1", tenantId: "t", workspaceId: "w", attempt: 3, callbackBaseUrl: `${base}/edge/`, taskToken: "token.secret",
    tokenExpiresAt: "2100-01-01T00:00:00Z", heartbeatIntervalMs: 200, heartbeatTimeoutMs: 6000, cancelGracePeriodMs: 2000,
    output: { url: `${base}/bucket/output?signature=secret`, key: "exports/output", expiresAt: "2100-01-01T00:00:00Z", headers: { "x-amz-meta-a": "b" } },
    newer: { member: true }, ...(typeof changes === "function" ? changes(base) : changes),
  };
}

/** Runs a program as a worker. */
function run(program, env, { kind = "module", onOutput = () => {} } = {}) {
  const head = kind === "module" ? 'import { runTask } from "@sortie/sdk/worker";' : 'const { runTask } = require("@sortie/sdk/worker");';
  const child = spawn(process.execPath, [`--input-type=${kind}`, "-e", head + program], {
    cwd: here, env: { PATH: process.env.PATH, TASK_ENVELOPE: typeof env === "string" ? env : JSON.stringify(env) }, stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => onOutput((output += part), child));
  const ended = once(child, "exit").then(([code, signal]) => ({ code: code ?? signal, output }));
  return { child, ended };
}

async function play(program, { answer, changes, kind, onOutput, earlyPuts } = {}) {
  const server = await plane(answer, earlyPuts);
  try {
    const { code, output } = await run(program, envelope(server.base, changes), { kind, onOutput }).ended;
    return { ...server, code, output, completed: server.of("completed").map((call) => call.body) };
  } finally {
    server.close();
  }
}

const exits = "process.exit(await runTask(work))";
const options = { concurrency: 1, timeout: 120_000 };

test("a task is started, reported and ended", options, async () => {
  const got = await play(`
    const work = async (task) => {
      task.progress(33.4, "x".repeat(3000));
      task.metrics.rows = 5;
      await new Promise((resolve) => setTimeout(resolve, 1500));
      await task.output("hello", { contentType: "text/plain", fileName: "h.txt", rowCount: 1 });
    };` + exits);
  assert.equal(got.code, 0, got.output);
  assert.equal(got.calls[0].name, "started");
  const started = got.calls[0].body;
  assert.equal(started.handlesSigterm, true);
  assert.equal(started.sendsOutput, undefined);
  assert.ok(got.calls.filter((call) => call.name !== "put").every((call) =>
    call.body.attempt === 3 && call.body.workerId === started.workerId && call.headers.authorization === "Bearer token.secret" &&
    call.url.startsWith("/edge/v1/tasks/task_1.a~b/")));
  assert.ok(got.of("heartbeat").some((call) => call.body.progressPct === 33 && call.body.message.endsWith(" [cut]") && call.body.message.length === 2048));
  const put = got.of("put")[0];
  assert.equal(put.headers.authorization, undefined);
  assert.deepEqual([put.headers["content-type"], put.headers["x-amz-meta-a"], put.headers["content-length"]], ["text/plain", "b", "5"]);
  const [body] = got.completed;
  assert.equal(body.outcome, "SUCCEEDED");
  assert.equal(body.metrics.rows, 5);
  assert.ok(body.metrics.cpuTimeMs > 0 && body.metrics.peakMemoryBytes > 0);
  assert.deepEqual(body.output, {
    outputPath: "exports/output", byteSize: 5, digest: `sha256:${createHash("sha256").update("hello").digest("hex")}`, fileName: "h.txt", rowCount: 1,
  });
});

test("a busy loop sends heartbeats and sees the cancel request", options, async () => {
  const got = await play(`
    const work = (task) => {
      task.phase("spinning");
      const end = Date.now() + 20000;
      let turns = 0;
      while (Date.now() < end && !task.cancelled) task.progress(++turns % 100, "busy");
      task.partialProgress = { reason: task.cancelReason, cause: task.stopCause };
      task.check();
    };` + exits, { answer: (name, _, n) => (name === "heartbeat" && n > 10 ? { body: { shouldCancel: true, cancelReason: "not needed" } } : undefined) });
  assert.equal(got.code, 1);
  assert.ok(got.of("heartbeat").length >= 10);
  const [body] = got.completed;
  assert.equal(body.outcome, "CANCELLED");
  assert.equal(body.cancelledDuringPhase, "spinning");
  assert.deepEqual(body.partialProgress, { reason: "not needed", cause: "cancelled" });
});

test("a loop that ignores the cancel request is reported and killed", options, async () => {
  const got = await play("const work = () => { for (;;); };" + exits, { answer: (name, _, n) => (name === "heartbeat" && n > 2 ? { body: { shouldCancel: true } } : undefined) });
  assert.equal(got.code, "SIGKILL");
  assert.deepEqual(got.completed.map((body) => body.outcome), ["CANCELLED"]);
});

test("work that ignores the signal is reported, and the process ends", options, async () => {
  const got = await play("const work = () => new Promise(() => setInterval(() => {}, 1000));" + exits, {
    answer: (name, _, n) => (name === "heartbeat" && n > 2 ? { body: { shouldCancel: true } } : undefined),
  });
  assert.equal(got.code, 1);
  assert.deepEqual(got.completed.map((body) => body.outcome), ["CANCELLED"]);
});

test("a cancel request after SIGTERM is a cancel, with its own reason", options, async () => {
  let terminated = false;
  const got = await play(`const work = (task) => { console.log("working"); return new Promise((_, reject) => task.signal.addEventListener("abort", () => {
      setTimeout(() => { task.partialProgress = task.cancelReason; reject(task.signal.reason); }, 600);
    })); };` + exits, {
    onOutput: (text, child) => void (text.includes("working") && !terminated && (terminated = child.kill("SIGTERM"))),
    answer: (name) => (name === "heartbeat" && terminated ? { body: { shouldCancel: true, cancelReason: "" } } : undefined),
  });
  assert.equal(got.code, 1);
  assert.deepEqual([got.completed[0].outcome, got.completed[0].partialProgress], ["CANCELLED", ""]);
});

test("an expired attempt reports nothing", options, async () => {
  const got = await play(`const work = (task) => new Promise((_, reject) => task.signal.addEventListener("abort", () => reject(task.signal.reason)));` + exits, {
    answer: (name, _, n) => (name === "heartbeat" && n > 2 ? { status: 410, body: { error: "task_expired" } } : undefined),
  });
  assert.equal(got.code, 1);
  assert.deepEqual(got.completed, []);
});

test("a refused start does no work", options, async () => {
  const got = await play(`const work = () => { console.log("worked"); };` + exits, { answer: () => ({ status: 409, body: { error: "task_already_terminal", state: "CANCELLED" } }) });
  assert.equal(got.code, 1);
  assert.ok(!got.output.includes("worked"));
  assert.equal(got.calls.length, 1);
});

test("failures have their category", options, async () => {
  const programs = {
    'task.fail("DATA_QUALITY", "bad rows", { retryable: true })': ["DATA_QUALITY", "bad rows", true],
    'throw new TypeError("broken")': ["USER_CODE", "broken", undefined],
    'throw Object.assign(new Error("full"), { code: "ENOSPC" })': ["INFRASTRUCTURE", "full", undefined],
    'Promise.reject(new Error("lost")); await new Promise(() => {})': ["USER_CODE", "lost", undefined],
    'setTimeout(() => { throw new Error("thrown") }); await new Promise(() => {})': ["USER_CODE", "thrown", undefined],
  };
  for (const [program, want] of Object.entries(programs)) {
    const got = await play(`const work = async (task) => { ${program} };` + exits);
    assert.equal(got.code, 1, program);
    const { outcome, error } = got.completed[0];
    assert.deepEqual([outcome, error.category, error.message, error.retryable], ["FAILED", ...want], program);
    assert.match(error.stackTrace, /^\w*(Error|TaskFailure): .*\n    at /);
  }
});

test("an error of any form is reported", options, async () => {
  const programs = {
    'throw Object.assign(new Error("m"), { message: () => 1 })': "USER_CODE",
    'throw Object.assign(new Error("m"), { stack: Symbol("s") })': "USER_CODE",
    "throw Object.create(null)": "USER_CODE",
    "Promise.reject(Object.create(null)); await new Promise(() => {})": "USER_CODE",
    'throw Object.defineProperty(new Error("m"), "message", { get() { throw new Error("again"); } })': "USER_CODE",
    'task.fail("NO_CATEGORY", "m")': "USER_CODE",
    'task.fail("TIMEOUT", "m", { retryable: () => true })': "TIMEOUT",
    'task.metrics = 10n; task.fail("TIMEOUT", "m")': "TIMEOUT",
  };
  for (const [program, category] of Object.entries(programs)) {
    const got = await play(`const work = async (task) => { ${program} };` + exits);
    assert.equal(got.code, 1, program + got.output);
    assert.deepEqual(got.completed.map(({ outcome, error }) => [outcome, error.category, typeof error.message]), [["FAILED", category, "string"]], program + got.output);
  }
});

test("the options of an output cannot prevent the report", options, async () => {
  const got = await play(`
    const work = async (task) => {
      const wrong = [{ contentType: "text/plain\\n" }, { contentType: "\u0142" }, { rowCount: NaN }, { rowCount: -1 }, { fileName: "a/b" }, { fileName: 5 }, { materializationId: 7 }];
      for (const one of wrong) await task.output("x", one).then(() => console.log("stored"), (error) => console.log("refused", error.category, error.retryable));
      await task.output("x", { rowCount: 10n });
    };` + exits);
  assert.equal(got.code, 0, got.output);
  assert.equal(got.output.match(/refused USER_CODE false/g)?.length, 7, got.output);
  assert.equal(got.completed[0].output.rowCount, 10);
});

test("the deadline is a timeout", options, async () => {
  const got = await play("const work = (task) => new Promise((_, reject) => task.signal.addEventListener('abort', () => reject(task.signal.reason)));" + exits, {
    changes: { resources: { timeoutMs: 2000 } },
  });
  assert.equal(got.code, 1);
  assert.deepEqual([got.completed[0].outcome, got.completed[0].error.category], ["FAILED", "TIMEOUT"]);
});

test("SIGTERM without a cancel request is neither cancel nor failure", options, async () => {
  const got = await play(`const work = (task) => { console.log("working"); return new Promise((_, reject) => task.signal.addEventListener("abort", () => reject(task.signal.reason))); };` + exits, {
    onOutput: (text, child) => void (text.includes("working") && !child.killed && child.kill("SIGTERM")),
  });
  assert.equal(got.code, 143);
  assert.deepEqual(got.completed, []);
});

test("SIGTERM during completed changes nothing", options, async () => {
  let worker;
  const got = await play(`console.log("pid");const work = () => {};` + exits, {
    onOutput: (_, child) => void (worker = child),
    answer: (name) => {
      if (name !== "completed") return undefined;
      worker.kill("SIGTERM");
      return { delayMs: 700 };
    },
  });
  assert.equal(got.code, 0, got.output);
  assert.deepEqual(got.completed.map((body) => body.outcome), ["SUCCEEDED"]);
});

test("heartbeats end last", options, async () => {
  const got = await play("const work = () => {};" + exits, { answer: (name) => (name === "completed" ? { delayMs: 1500 } : undefined) });
  assert.equal(got.code, 0);
  const completed = got.of("completed")[0];
  const meanwhile = got.of("heartbeat").filter((call) => call.at > completed.at && call.at <= completed.answered);
  assert.ok(meanwhile.length >= 2, `got ${meanwhile.length}`);
  assert.ok(!got.of("heartbeat").some((call) => call.at > completed.answered + 500));
});

test("a child process inherits no token", options, async () => {
  const got = await play(`
    import { execFileSync } from "node:child_process";
    const work = () => { console.log("child:", execFileSync("env").toString()); };` + exits);
  assert.equal(got.code, 0);
  assert.match(got.output, /child:/);
  assert.ok(!got.output.includes("token.secret"));
});

test("a file is stored, with the URL of a renewal", options, async () => {
  const got = await play(`
    import { rmSync, writeFileSync } from "node:fs";
    import { tmpdir } from "node:os";
    import { join } from "node:path";
    const path = join(tmpdir(), "sortie-output-" + process.pid);
    writeFileSync(path, "z".repeat(300000));
    const work = (task) => task.output({ path }).finally(() => rmSync(path));` + exits, {
    answer: (name, _, n, request) => {
      if (name === "put" && !request.url.includes("renewed")) return { status: 403 };
      if (name === "heartbeat") return { body: { taskToken: "token.second", output: { url: `http://${request.headers.host}/renewed/put`, key: "exports/second" } } };
      return undefined;
    },
  });
  assert.equal(got.code, 0, got.output);
  const { output } = got.completed[0];
  assert.deepEqual([output.outputPath, output.byteSize], ["exports/second", 300000]);
  assert.equal(output.digest, `sha256:${createHash("sha256").update("z".repeat(300000)).digest("hex")}`);
  assert.equal(got.of("completed")[0].headers.authorization, "Bearer token.second");
});

test("an output that is no file is an error of the work", options, async () => {
  const got = await play(`
    import { tmpdir } from "node:os";
    const work = async (task) => {
      for (const path of [tmpdir(), process.execPath + "/x"]) {
        await task.output({ path }).then(() => console.log("stored"), (error) => console.log("refused", error.category ?? error.code));
      }
    };` + exits);
  assert.equal(got.code, 0, got.output);
  assert.match(got.output, /refused USER_CODE\nrefused ENOTDIR\n/);
});

// Defines opened(), the number of descriptors of the file path. Connections of heartbeats come and go.
const largeFile = `
    import { fstatSync, rmSync, statSync, writeFileSync } from "node:fs";
    import { tmpdir } from "node:os";
    import { join } from "node:path";
    const path = join(tmpdir(), "sortie-repeated-" + process.pid);
    writeFileSync(path, "z".repeat(30_000_000));
    const { dev, ino } = statSync(path);
    const opens = (fd) => { try { const file = fstatSync(fd); return file.dev === dev && file.ino === ino; } catch { return false; } };
    const opened = () => Array.from({ length: 256 }, (_, fd) => fd).filter(opens).length;
    const closed = async () => {
      for (const end = Date.now() + 5000; opened() > 0 && Date.now() < end; ) await new Promise((resolve) => setTimeout(resolve, 50));
      console.log("left open:", opened());
    };`;

test("repeated uploads leave no open file", options, async () => {
  const got = await play(`${largeFile}
    const work = async (task) => {
      await task.output({ path });
      await closed();
    };
    const code = await runTask(work);
    rmSync(path);
    process.exit(code);`, { earlyPuts: 2 });
  assert.equal(got.code, 0, got.output);
  assert.match(got.output, /left open: 0\n/);
});

test("uploads that cannot begin leave no open file", options, async () => {
  const got = await play(`${largeFile}
    const work = async (task) => {
      const upload = task.output({ path }).catch(() => {});
      await new Promise((resolve) => task.signal.addEventListener("abort", resolve));
      await upload;
      await closed();
      rmSync(path);
    };` + exits, {
    changes: (base) => ({ output: { url: `${base}/put`, key: "k", headers: { "x-a": "b\nc" } } }),
    answer: (name, _, n) => (name === "heartbeat" && n > 8 ? { body: { shouldCancel: true } } : undefined),
  });
  assert.match(got.output, /left open: 0\n/);
});

test("no print of a task contains a URL or a token", options, async () => {
  const got = await play(`
    import { inspect } from "node:util";
    const work = (task) => { console.log("print:", inspect(task, { depth: 9, showHidden: true }), JSON.stringify(task)); };` + exits, {
    changes: (base) => ({ program: { input: { url: `${base}/input?signature=secret`, size: 1, expiresAt: "2100-01-01T00:00:00Z" } } }),
  });
  assert.equal(got.code, 0, got.output);
  assert.match(got.output, /print: Task/);
  assert.ok(!got.output.includes("secret"), got.output);
});

test("output is sent in order before completed", options, async () => {
  const got = await play(`
    const work = (task) => { for (let n = 0; n < 3; n++) { task.log("line " + n); task.log("error " + n, "stderr"); } task.log("x".repeat(70000)); };
    process.exit(await runTask(work, { sendOutput: true }));`, { answer: (name, _, n) => (name === "logs" && n === 1 ? { status: 503 } : undefined) });
  assert.equal(got.code, 0);
  assert.equal(got.calls[0].body.sendsOutput, true);
  const taken = new Map(got.of("logs").map(({ body }) => [body.sequence, body]));
  assert.deepEqual([...taken.keys()], [...taken.keys()].map((_, at) => at + 1));
  const text = (stream) => [...taken.values()].filter((one) => one.stream === stream).map((one) => Buffer.from(one.data, "base64").toString()).join("");
  assert.equal(text("stderr"), "error 0\nerror 1\nerror 2\n");
  assert.equal(text("stdout"), `line 0\nline 1\nline 2\n${"x".repeat(70000)}\n`);
  assert.ok([...taken.values()].every((one) => one.data.length <= 32 << 10));
  assert.equal(got.calls.findLast((call) => call.name !== "heartbeat").name, "completed");
});

test("the input is read", options, async () => {
  // The plane answers a GET with this JSON, too.
  const want = JSON.stringify({ acknowledged: true, shouldCancel: false });
  const got = await play(`const work = async (task) => { console.log("input", Buffer.from(await task.input()).toString()); };` + exits, {
    changes: (base) => ({ program: { input: { url: `${base}/input`, size: want.length, expiresAt: "2100-01-01T00:00:00Z" } } }),
  });
  assert.equal(got.code, 0, got.output);
  assert.ok(got.output.includes(`input ${want}`));
});

test("CommonJS works", options, async () => {
  const got = await play("runTask(() => {}).then(process.exit);", { kind: "commonjs" });
  assert.equal(got.code, 0, got.output);
  assert.equal(got.completed[0].outcome, "SUCCEEDED");
});

test("an invalid envelope names every problem and no value", options, async () => {
  const program = "process.exit(await runTask(() => {}))";
  const none = await run(program, "").ended;
  assert.deepEqual([none.code, none.output.includes("no task")], [2, true]);
  const bad = await run(program, { taskToken: "secret token", attempt: 0, callbackBaseUrl: "ftp://secret", heartbeatIntervalMs: -1 }).ended;
  assert.equal(bad.code, 2);
  for (const name of ["taskId", "attempt", "callbackBaseUrl", "taskToken", "heartbeatIntervalMs"]) assert.ok(bad.output.includes(name), name);
  assert.ok(!bad.output.includes("secret"));
});
