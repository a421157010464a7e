import { randomBytes } from "node:crypto";
import { writeSync } from "node:fs";
import { hostname } from "node:os";
import { isMainThread, Worker } from "node:worker_threads";
import { threadCode } from "../generated/thread.js";
import { type Envelope, type Upload, parseEnvelope } from "./envelope.js";
import { type Category, TaskFailure, TaskStopped } from "./errors.js";
import { SharedState } from "./memory.js";
import type { Failure, Result, ThreadData, ToMain, ToThread } from "./messages.js";
import { Task } from "./task.js";

/** The work succeeded, and the control plane accepted the report. */
export const exitDone = 0;
/** The work failed or was cancelled, or the report was not accepted. */
export const exitFailed = 1;
/** The environment has no task, or an invalid one. */
export const exitNoTask = 2;
/** The process was signalled to stop. */
export const exitTerminated = 143;

/** Options of `runTask`. */
export interface RunOptions {
  /**
   * Sends what `task.log` writes while the work runs, so that clients can follow it. The log
   * of the task is then that output alone. Default: false.
   */
  sendOutput?: boolean;
  /** Treats SIGTERM and SIGINT as requests to stop. Default: true in the main thread. */
  signals?: boolean;
  /** Names this worker in every call. Default: the host name with a random suffix. */
  workerId?: string;
  /** Writes no lines about failed calls to standard error. Default: false. */
  quiet?: boolean;
  /** The environment with TASK_ENVELOPE. Default: process.env. */
  env?: Record<string, string | undefined>;
}

const categories: ReadonlySet<string> = new Set<Category>(["USER_CODE", "DATA_QUALITY", "INFRASTRUCTURE", "CONFIGURATION", "TIMEOUT"]);

/** The work of a worker. */
export type Work = (task: Task) => void | Promise<void>;

/**
 * Runs one task: it sends started, runs the work with heartbeats from a thread of their
 * own, and sends completed. It returns the exit code for the process and does not throw.
 *
 * If the work does not return in time after it has to stop, runTask reports without it. Call
 * `process.exit` with the result, because the work may still run.
 */
export async function runTask(work: Work, options: RunOptions = {}): Promise<number> {
  const env = options.env ?? process.env;
  const text = env.TASK_ENVELOPE?.trim();
  // Child processes inherit no token.
  delete env.TASK_ENVELOPE;
  delete env.CALLBACK_URL;
  let envelope: Envelope;
  try {
    if (!text) throw new Error("no task: TASK_ENVELOPE is not set");
    envelope = parseEnvelope(text);
  } catch (error) {
    say((error as Error).message);
    return exitNoTask;
  }
  return new Runner(envelope, options).run(work);
}

function say(why: string): void {
  try {
    writeSync(2, `${JSON.stringify({ time: new Date().toISOString(), level: "ERROR", msg: "the task was not done", why })}\n`);
  } catch {
    // Standard error is closed.
  }
}

class Runner {
  private readonly shared = new SharedState();
  private readonly thread: Worker;
  private readonly task: Task;
  private readonly handlesSignals: boolean;
  private readonly targets = new Map<number, (upload: Upload | undefined) => void>();
  private started: (() => void) | undefined;
  private finished: ((code: number) => void) | undefined;
  private completed = false;

  constructor(envelope: Envelope, options: RunOptions) {
    this.handlesSignals = isMainThread && options.signals !== false;
    const sendsOutput = options.sendOutput === true;
    const data: ThreadData = {
      envelope, workerId: options.workerId ?? `${hostname().slice(0, 63) || "worker"}-${randomBytes(4).toString("hex")}`,
      handlesSigterm: this.handlesSignals, sendsOutput, quiet: options.quiet === true, memory: this.shared.buffer,
    };
    // Loaders of the main program do not run in the thread.
    this.thread = new Worker(threadCode, { eval: true, workerData: data, env: {}, execArgv: [], name: "sortie" });
    const post = (message: ToThread): void => this.thread.postMessage(message);
    this.task = new Task(envelope, { shared: this.shared, post, sendsOutput, target: (renew) => this.target(renew) });
  }

  async run(work: Work): Promise<number> {
    const isStarted = new Promise<boolean>((resolve) => (this.started = () => resolve(true)));
    const code = new Promise<number>((resolve) => (this.finished = resolve));
    this.thread.on("message", (message: ToMain) => this.receive(message));
    this.thread.on("error", (error) => {
      say(`the heartbeat thread failed: ${error.message}`);
      this.finished?.(exitFailed);
    });
    this.thread.on("exit", () => this.finished?.(exitFailed));
    const terminate = (): void => {
      process.off("SIGTERM", terminate);
      process.off("SIGINT", terminate); // a second signal has its usual effect
      this.thread.postMessage({ kind: "terminated" } satisfies ToThread);
    };
    const crash = (error: unknown): void => this.complete({ failure: failureOf(error) });
    if (this.handlesSignals) {
      process.on("SIGTERM", terminate);
      process.on("SIGINT", terminate);
    }
    process.on("uncaughtException", crash); // unhandled rejections, too
    try {
      if (await Promise.race([isStarted, code.then(() => false)])) void this.work(work);
      return await code;
    } finally {
      process.off("uncaughtException", crash);
      process.off("SIGTERM", terminate);
      process.off("SIGINT", terminate);
      this.thread.removeAllListeners();
      await this.thread.terminate();
    }
  }

  private async work(work: Work): Promise<void> {
    let failure: Failure | undefined;
    try {
      await work(this.task);
    } catch (error) {
      failure = failureOf(error);
    }
    this.complete({ failure });
  }

  private complete(result: Result): void {
    if (this.completed) return;
    this.completed = true;
    const { uploaded, metrics, partialProgress } = this.task;
    if (uploaded) result.output = uploaded;
    // What does not encode to JSON is left out, so that it does not prevent the report.
    const text = { metrics: json(metrics), partialProgress: json(partialProgress) };
    if (text.metrics?.startsWith("{")) result.metrics = text.metrics;
    if (text.partialProgress !== undefined) result.partialProgress = text.partialProgress;
    this.thread.postMessage({ kind: "complete", result } satisfies ToThread);
  }

  private receive(message: ToMain): void {
    switch (message.kind) {
      case "started":
        this.started?.();
        break;
      case "stop":
        void this.task.cancelled; // aborts the signal
        break;
      case "target":
        this.targets.get(message.id)?.(message.upload);
        this.targets.delete(message.id);
        break;
      case "done":
        this.finished?.(message.code);
    }
  }

  private nextTarget = 0;

  private target(renew: boolean): Promise<Upload | undefined> {
    const id = this.nextTarget++;
    return new Promise((resolve) => {
      this.targets.set(id, resolve);
      this.thread.postMessage({ kind: "target", id, renew } satisfies ToThread);
    });
  }
}

function json(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** Describes anything that was thrown. It cannot throw itself. */
function failureOf(error: unknown): Failure {
  const known = error instanceof TaskFailure ? error : undefined;
  const { message, name, stack } = partsOf(error);
  return {
    category: known && categories.has(known.category) ? known.category : categoryOf(error),
    message: message || name,
    stackTrace: error instanceof TaskStopped ? "" : stack,
    retryable: typeof known?.retryable === "boolean" ? known.retryable : undefined,
  };
}

function partsOf(error: unknown): { message: string; name: string; stack: string } {
  try {
    if (!(error instanceof Error)) return { message: String(error), name: "", stack: "" };
    const { message, name, stack } = error;
    return { message: String(message), name: String(name), stack: typeof stack === "string" ? stack : "" };
  } catch {
    return { message: "an error that has no text", name: "", stack: "" };
  }
}

function categoryOf(error: unknown): Failure["category"] {
  const { code, name } = (typeof error === "object" && error !== null ? error : {}) as { code?: unknown; name?: unknown };
  if (code === "ENOSPC" || code === "EDQUOT" || code === "ENOMEM") return "INFRASTRUCTURE";
  if (name === "TimeoutError") return "TIMEOUT";
  return undefined;
}
