// The heartbeat thread. It makes all calls to the control plane, so that they do not
// wait for the event loop of the work. scripts/generate.mjs bundles it into a text.
import { writeSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { causeOf, object } from "./answer.js";
import { type Upload, isHttpUrl, isToken } from "./envelope.js";
import type { StopCause } from "./errors.js";
import { type Answer, backoff, isOk, isRetryable, send } from "./http.js";
import { SharedState, cut } from "./memory.js";
import type { Result, ThreadData, ToMain, ToThread } from "./messages.js";
import { Sender } from "./sender.js";
import { Timer } from "./timer.js";
import { usage } from "./usage.js";

const port = parentPort!;
const data = workerData as ThreadData;
const { envelope } = data;
const shared = new SharedState(data.memory);

const firstDelayMs = 500;
const maxDelayMs = 30_000;
const maxCallMs = 30_000;
const minCallMs = 500;
const hourMs = 3_600_000;
const minRetryMs = 60_000;
const maxMarginMs = 5_000;
const abortGraceMs = 1_000;
const receiptMs = 2_000;
const progressMs = 1_000;
const outputMs = 30_000;
const maxTraceBytes = 16 << 10;

const interval = envelope.heartbeatIntervalMs;
const grace = envelope.cancelGracePeriodMs;
const callMs = Math.min(maxCallMs, Math.max(envelope.heartbeatTimeoutMs / 3, minCallMs));
const base = `${envelope.callbackBaseUrl.replace(/\/+$/, "")}/v1/tasks/${encodeURIComponent(envelope.taskId)}/`;

// Only after these causes may something still be reported.
const ranks: Record<StopCause, number> = { terminated: 1, deadline: 1, cancelled: 2, expired: 3, superseded: 3, ended: 3 };

let token = envelope.taskToken;
let targets: { output: Upload | undefined } = { output: envelope.output };
let cause: StopCause | undefined;
let cancelRequested = false;
let terminated = false;
let phase = "";
let over = false;
let completing = false;

function tell(message: ToMain): void {
  port.postMessage(message);
}

/** Writes one line of JSON to standard error. It does not wait for the main thread. */
function log(level: "INFO" | "WARN" | "ERROR", msg: string, more: Record<string, unknown> = {}): void {
  if (data.quiet) return;
  try {
    writeSync(2, `${JSON.stringify({ time: new Date().toISOString(), level, msg, task_id: envelope.taskId, ...more })}\n`);
  } catch {
    // A full pipe loses a line of the log, not the task.
  }
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function post(name: string, body: Record<string, unknown>): Promise<Answer> {
  return send({
    method: "POST",
    url: base + name,
    headers: { "Authorization": `Bearer ${token}`, "Content-Type": "application/json" },
    body: Buffer.from(JSON.stringify(body)),
    timeoutMs: callMs,
  });
}

let graceTimer: NodeJS.Timeout | undefined;

/** Ends the work. A stronger cause replaces a weaker one. */
function stop(next: StopCause, reason = ""): void {
  if (over || (cause && ranks[next] <= ranks[cause])) return;
  cause = next;
  shared.setStop(next, reason);
  tell({ kind: "stop" });
  armGrace();
}

function graceMs(): number {
  const usual = (grace / 5) * 4;
  if (cause && ranks[cause] === 3) return Math.min(usual, abortGraceMs);
  if (cause === "deadline") return Math.min(usual, (maxMarginMs / 5) * 4);
  return usual;
}

/** Reports without the work if it does not return in time. */
function armGrace(): void {
  if (completing || !started) return;
  clearTimeout(graceTimer);
  graceTimer = setTimeout(() => {
    void complete({ failure: { category: undefined, message: `the work did not stop in time: ${cause}`, stackTrace: "", retryable: undefined } }, true);
  }, graceMs());
}

// ---- started ----

let started = false;
const starting = new Timer();

function retryUntil(): number {
  if (!envelope.deadline) return Date.now() + hourMs;
  return Math.max(Date.parse(envelope.deadline), Date.now() + minRetryMs);
}

/** Returns the delay before a retry. The last one is at the end of the time that is left. */
function delayOf(failures: number, after: number, left: number): number {
  return Math.min(Math.max(backoff(failures, firstDelayMs, maxDelayMs), after), left);
}

async function start(): Promise<void> {
  const until = retryUntil();
  const body = {
    attempt: envelope.attempt, workerId: data.workerId, startedAt: new Date().toISOString(),
    ...(data.handlesSigterm ? { handlesSigterm: true } : {}), ...(data.sendsOutput ? { sendsOutput: true } : {}),
  };
  for (let failures = 0; ; failures++) {
    let why: string;
    let after = 0;
    try {
      const answer = await post("started", body);
      if (isOk(answer.status)) break;
      const refused = causeOf(answer);
      if (refused || !isRetryable(answer.status)) {
        log("ERROR", "started was refused, the work does not begin", { status: answer.status });
        return finish(1);
      }
      why = `unexpected status ${answer.status}`;
      after = answer.retryAfterMs;
    } catch (error) {
      why = words(error);
    }
    const left = until - Date.now();
    if (left <= 0) {
      log("ERROR", "started was not delivered", { why });
      return finish(1);
    }
    log("WARN", "started failed, retrying", { why });
    if (!terminated) await starting.wait(delayOf(failures, after, left));
    if (terminated) return finish(143);
  }
  started = true;
  watchDeadline();
  tell({ kind: "started" });
  void heartbeats();
  if (data.sendsOutput) void sender.run();
  if (cause) armGrace(); // SIGTERM during the last call
}

/** Stops the work a little before the attempt is killed, so that it can be reported. */
function watchDeadline(): void {
  let left = envelope.resources?.timeoutMs || Infinity;
  if (envelope.deadline) left = Math.min(left, Math.max(Date.parse(envelope.deadline) - Date.now(), 1));
  if (left === Infinity) return;
  const wait = (ms: number): void => {
    const part = Math.min(ms, 2 ** 31 - 1);
    setTimeout(() => (ms > part ? wait(ms - part) : stop("deadline")), part).unref();
  };
  wait(left - Math.min(maxMarginMs, left / 10));
}

// ---- heartbeats ----

const beat = new Timer();
let sentAt = Date.now();
let heartbeatFailures = 0;
let deliveredVersion = 0;
let answeredTerm = (): void => undefined;
/** Resolves when the control plane has answered a heartbeat after SIGTERM. */
const termAnswered = new Promise<void>((resolve) => (answeredTerm = resolve));
let renewals: (() => void)[] = [];

async function heartbeats(): Promise<void> {
  // The first one leaves early: it may bring a cancel request.
  let delay = Math.min(interval, progressMs);
  const watch = setInterval(() => {
    const version = shared.readProgress()?.version;
    if (heartbeatFailures === 0 && version !== undefined && version !== deliveredVersion && Date.now() - sentAt >= progressMs) beat.poke();
  }, progressMs);
  while (!over) {
    await beat.wait(delay);
    if (over) break;
    const afterTerm = terminated;
    sentAt = Date.now();
    try {
      const again = await heartbeat();
      if (again === "stop") break;
      if (again === undefined) {
        heartbeatFailures = 0;
        delay = interval - (Date.now() - sentAt);
        if (afterTerm) answeredTerm();
        continue;
      }
      log("WARN", "heartbeat failed, retrying", { why: again.why });
      delay = Math.min(Math.max(backoff(heartbeatFailures++, Math.min(firstDelayMs, interval / 8), interval), again.after), interval);
    } catch (error) {
      log("WARN", "heartbeat failed, retrying", { why: words(error) });
      delay = backoff(heartbeatFailures++, Math.min(firstDelayMs, interval / 8), interval);
    }
  }
  clearInterval(watch);
  answeredTerm();
  renewed();
}

function renewed(): void {
  for (const resolve of renewals) resolve();
  renewals = [];
}

async function heartbeat(): Promise<undefined | "stop" | { why: string; after: number }> {
  const progress = shared.readProgress();
  const answer = await post("heartbeat", {
    attempt: envelope.attempt, workerId: data.workerId, heartbeatAt: new Date().toISOString(),
    ...(progress && progress.percent >= 0 ? { progressPct: progress.percent } : {}),
    ...(progress?.message ? { message: progress.message } : {}),
  });
  const ended = causeOf(answer);
  if (ended) {
    if (ended === "cancelled") cancelRequested = true;
    if (!completing) stop(ended);
    return "stop";
  }
  if (!isOk(answer.status)) return { why: `unexpected status ${answer.status}`, after: answer.retryAfterMs };
  const said = object(answer);
  if (!said) return { why: "malformed answer", after: 0 };
  if (isToken(said.taskToken)) token = said.taskToken;
  const output = said.output as Upload | undefined;
  if (isHttpUrl(output?.url)) targets = { output };
  if (progress) deliveredVersion = progress.version;
  if (said.shouldCancel === true) cancel(said.cancelReason);
  renewed();
  return undefined;
}

function cancel(reason: unknown): void {
  cancelRequested = true;
  stop("cancelled", typeof reason === "string" ? reason : "");
}

// ---- output ----

const sender = new Sender({
  post: (chunk) => post("logs", { attempt: envelope.attempt, workerId: data.workerId, ...chunk }),
  warn: (msg, more) => log("WARN", msg, more),
  isOver: () => over,
  answered: (said) => {
    if (said.shouldCancel === true) cancel(said.cancelReason);
  },
  ended: (ended) => {
    if (ended === "cancelled") cancelRequested = true;
    if (!completing) stop(ended);
    return !completing;
  },
});

// ---- completed ----

async function complete(result: Result, overtime: boolean): Promise<void> {
  if (completing || over) return;
  completing = true;
  clearTimeout(graceTimer);
  const { failure } = result;
  const abandoned = (): boolean => cause !== undefined && ranks[cause] === 3;
  if (abandoned()) {
    log("WARN", "nothing is reported", { why: cause });
    return finish(1, overtime);
  }
  if (failure && terminated && !cancelRequested && cause !== "deadline") {
    // The heartbeat that the signal caused says whether a cancel was requested.
    await Promise.race([termAnswered, new Timer().wait(Math.min(3_000, grace / 10))]);
    if (!cancelRequested) {
      log("WARN", "nothing is reported", { why: "the process was signalled to stop" });
      return finish(143, overtime);
    }
  }
  const lost = data.sendsOutput ? await sender.flush(cause ? Math.min(outputMs, grace / 8) : outputMs) : 0;
  const body = report(result, lost);
  const until = retryUntil();
  for (let failures = 0; ; failures++) {
    let why: string;
    let after = 0;
    try {
      const answer = await post("completed", body);
      if (isOk(answer.status)) {
        log("INFO", `the task ended: ${body.outcome as string}`, { final_state: object(answer)?.finalState });
        return finish(body.outcome === "SUCCEEDED" ? 0 : 1, overtime);
      }
      why = `unexpected status ${answer.status}`;
      after = answer.retryAfterMs;
      if (!isRetryable(answer.status)) {
        log("ERROR", "the result was refused", { status: answer.status });
        return finish(1, overtime);
      }
    } catch (error) {
      why = words(error);
    }
    const left = until - Date.now();
    if (left <= 0) {
      log("ERROR", "the result was not delivered", { why });
      return finish(1, overtime);
    }
    log("WARN", "completed failed, retrying", { why });
    await new Timer().wait(delayOf(failures, after, left));
  }
}

function report(result: Result, lost: number): Record<string, unknown> {
  const { failure } = result;
  const metrics = { ...usage(), ...(JSON.parse(result.metrics ?? "{}") as object), ...(lost > 0 ? { outputBytesLost: lost } : {}) };
  const body: Record<string, unknown> = {
    attempt: envelope.attempt, workerId: data.workerId, outcome: "SUCCEEDED", completedAt: new Date().toISOString(), metrics,
  };
  if (!failure) {
    if (result.output) body.output = result.output;
  } else if (cancelRequested) {
    body.outcome = "CANCELLED";
    body.cancelledDuringPhase = phase || "processing";
    if (result.partialProgress !== undefined) body.partialProgress = JSON.parse(result.partialProgress);
  } else {
    body.outcome = "FAILED";
    body.error = {
      category: failure.category ?? (cause === "deadline" ? "TIMEOUT" : "USER_CODE"),
      message: cut(failure.message || "no message", 2048),
      ...(failure.stackTrace ? { stackTrace: cut(failure.stackTrace, maxTraceBytes) } : {}),
      ...(failure.retryable === undefined ? {} : { retryable: failure.retryable }),
    };
  }
  return body;
}

/** Ends the heartbeats, last of all. The main thread then ends this one. */
function finish(code: number, overtime = false): void {
  over = true;
  clearTimeout(graceTimer);
  beat.poke();
  sender.poke();
  tell({ kind: "done", code });
  if (!overtime) return;
  // The attempt is over for the control plane. A main thread that is busy would do its
  // work without anyone waiting for it.
  setTimeout(() => {
    log("ERROR", "the main thread is busy after the end of the task: killing the process");
    process.kill(process.pid, "SIGKILL");
  }, receiptMs);
}

port.on("message", (message: ToThread) => {
  switch (message.kind) {
    case "phase":
      phase = message.name;
      break;
    case "output":
      sender.add(message.stream, message.data);
      break;
    case "terminated":
      terminated = true;
      stop("terminated", "SIGTERM");
      starting.poke();
      beat.poke();
      break;
    case "target":
      void target(message.id, message.renew);
      break;
    case "complete":
      void complete(message.result, false);
  }
});

async function target(id: number, renew: boolean): Promise<void> {
  if (renew) {
    const answered = new Promise<void>((resolve) => renewals.push(resolve));
    beat.poke();
    await Promise.race([answered, new Timer().wait(callMs)]);
  }
  tell({ kind: "target", id, upload: targets.output });
}

void start();
