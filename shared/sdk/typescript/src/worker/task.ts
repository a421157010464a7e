import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Transform, pipeline } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { type Category, type StopCause, TaskFailure, TaskStopped } from "./errors.js";
import type { Envelope, Upload } from "./envelope.js";
import { backoff, isOk, isRetryable, send } from "./http.js";
import type { SharedState } from "./memory.js";
import type { Output, ToThread } from "./messages.js";

const maxUpload = 5 * 2 ** 30; // of one PUT
const uploadMs = 15 * 60_000;
const stallMs = 60_000;
const inputMs = 2 * 60_000;
const inputCallMs = 30_000;
const maxInput = 8 << 20;
const firstDelayMs = 500;
const maxDelayMs = 30_000;
const maxForbidden = 3;

/** Describes an output. All members are optional. */
export interface OutputOptions {
  /** Media type of the download. The default is that of the job, or application/octet-stream. */
  contentType?: string;
  /** Name of the downloaded file. */
  fileName?: string;
  rowCount?: number;
  materializationId?: string;
}

/** @internal */
export interface Link {
  shared: SharedState;
  post(message: ToThread): void;
  target(renew: boolean): Promise<Upload | undefined>;
  sendsOutput: boolean;
}

/** One attempt at a task. */
export class Task {
  /** The id of the task. */
  readonly id: string;
  readonly runId: string;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  /** When the attempt is killed. Nothing extends it. */
  readonly deadline: Date | undefined;
  /** The envelope without its token and its URLs. */
  readonly envelope: Readonly<Omit<Envelope, "taskToken" | "output" | "log" | "program" | "callbackBaseUrl">>;
  /** Aborts when the work has to stop. Its reason is a TaskStopped. */
  readonly signal: AbortSignal;
  /** Figures of the work, reported at its end. */
  metrics: Record<string, unknown> = {};
  /** How far cancelled work came: any value that encodes to JSON. */
  partialProgress: unknown = undefined;

  /** @internal */
  uploaded: Output | undefined;
  private readonly controller = new AbortController();
  // A print of the task contains neither: their URLs are secrets.
  readonly #program: Envelope["program"];
  readonly #link: Link;

  /** @internal */
  constructor(envelope: Envelope, link: Link) {
    const { taskToken: _token, output: _output, log: _log, program, callbackBaseUrl: _base, ...rest } = envelope;
    this.id = envelope.taskId;
    this.runId = envelope.runId;
    this.attempt = envelope.attempt;
    this.deadline = envelope.deadline ? new Date(envelope.deadline) : undefined;
    this.envelope = rest;
    this.#program = program;
    this.#link = link;
    this.signal = this.controller.signal;
  }

  /**
   * Whether the work has to stop, for any cause. A loop that never yields sees it too,
   * because the heartbeat thread writes it to shared memory.
   */
  get cancelled(): boolean {
    const cause = this.#link.shared.stopCause;
    if (cause && !this.signal.aborted) this.controller.abort(new TaskStopped(cause, this.#link.shared.reason));
    return cause !== undefined;
  }

  /** Why the work has to stop; undefined while it has not to. */
  get stopCause(): StopCause | undefined {
    return this.#link.shared.stopCause;
  }

  /** The reason of the cancel request. */
  get cancelReason(): string | undefined {
    return this.cancelled ? this.#link.shared.reason : undefined;
  }

  /** Throws a TaskStopped if the work has to stop. */
  check(): void {
    if (this.cancelled) throw this.signal.reason;
  }

  /**
   * Sets the progress that heartbeats report. A change is sent within about a second, and no
   * more than once a second. It makes no call, and is cheap enough for an inner loop.
   */
  progress(percent: number, message = ""): void {
    const whole = Number.isFinite(percent) ? Math.max(-1, Math.min(Math.round(percent), 100)) : -1;
    this.#link.shared.setProgress(whole, message);
  }

  /** Names what the work is doing. A cancelled task reports it. */
  phase(name: string): void {
    this.#link.post({ kind: "phase", name });
  }

  /**
   * Writes text to the output of the task. With `sendOutput`, clients read it while the work
   * runs. It is also written to the stream of the process.
   */
  log(text: string, stream: "stdout" | "stderr" = "stdout"): void {
    const line = text.endsWith("\n") ? text : `${text}\n`;
    if (this.#link.sendsOutput) this.#link.post({ kind: "output", stream, data: new TextEncoder().encode(line) });
    process[stream].write(line);
  }

  /** Ends the work with a failure. */
  fail(category: Category, message: string, options: { retryable?: boolean; cause?: unknown } = {}): never {
    throw new TaskFailure(category, message, options);
  }

  /** Returns the input of the program; undefined without one. */
  async input(): Promise<Uint8Array | undefined> {
    const from = this.#program?.input;
    if (!from) return undefined;
    return this.repeat("cannot read the input", inputMs, async () => {
      const answer = await send({ method: "GET", url: from.url, headers: {}, timeoutMs: inputCallMs, signal: this.signal, maxBytes: maxInput });
      if (!isOk(answer.status)) return { why: `unexpected status ${answer.status}`, final: !isRetryable(answer.status) };
      if (answer.body.length !== from.size) return { why: "it has another size than the envelope says", final: false };
      return { value: new Uint8Array(answer.body) };
    });
  }

  /**
   * Stores the output of the task: bytes, text, or the content of a file. A repeated call
   * replaces it. It retries for 15 minutes and then throws a TaskFailure with category
   * INFRASTRUCTURE.
   */
  async output(content: Uint8Array | string | { path: string }, options: OutputOptions = {}): Promise<void> {
    const path = typeof content === "object" && "path" in content ? content.path : undefined;
    const bytes = path === undefined ? Buffer.from(content as string | Uint8Array) : undefined;
    const declared = this.#program?.output;
    const described = description(options);
    let forbidden = 0;
    this.uploaded = await this.repeat("cannot store the output", uploadMs, async () => {
      const size = bytes ? bytes.length : await sizeOf(path!);
      if (size > maxUpload) throw new TaskFailure("USER_CODE", `the output has ${size} bytes, want at most 5 GiB`, { retryable: false });
      const to = await this.#link.target(forbidden > 0);
      if (!to) throw new TaskFailure("CONFIGURATION", "the task has no URL for its output", { retryable: false });
      const hash = createHash("sha256");
      const headers: Record<string, string | number> = {
        "Content-Type": options.contentType ?? declared?.contentType ?? "application/octet-stream", "Content-Length": size,
      };
      for (const [name, value] of Object.entries(to.headers ?? {})) {
        for (const other of Object.keys(headers)) {
          if (other.toLowerCase() === name.toLowerCase()) delete headers[other];
        }
        headers[name] = value;
      }
      const hashing = new Transform({
        transform(part: Buffer, _encoding, done) {
          hash.update(part);
          done(null, part);
        },
      });
      // pipeline passes errors of the file on, and closes it when the request ends.
      const body = bytes ?? pipeline(createReadStream(path!, size > 0 ? { end: size - 1 } : {}), hashing, () => undefined);
      if (bytes) hash.update(bytes);
      const answer = await send({ method: "PUT", url: to.url, headers, body, timeoutMs: uploadMs, stallMs, signal: this.signal });
      if (answer.status === 403 && forbidden < maxForbidden) {
        forbidden++; // the URL may have expired; the answer to a heartbeat renews it
        return { why: "the URL was refused", final: false };
      }
      if (!isOk(answer.status)) return { why: `unexpected status ${answer.status}`, final: !isRetryable(answer.status) };
      const fileName = options.fileName ?? declared?.fileName;
      return {
        value: {
          outputPath: to.key, byteSize: size, digest: `sha256:${hash.digest("hex")}`,
          ...(fileName ? { fileName } : {}),
          ...described,
        },
      };
    });
  }

  private async repeat<T>(what: string, limitMs: number, call: () => Promise<{ value: T } | { why: string; final: boolean }>): Promise<T> {
    const until = Date.now() + limitMs;
    for (let failures = 0; ; failures++) {
      this.check();
      let why: string;
      try {
        const result = await call();
        if ("value" in result) return result.value;
        why = result.why;
        if (result.final) throw new TaskFailure("INFRASTRUCTURE", `${what}: ${why}`, { retryable: true });
      } catch (error) {
        this.check();
        if (error instanceof TaskFailure || isFileError(error)) throw error;
        why = error instanceof Error ? error.message : String(error);
      }
      const delay = backoff(failures, firstDelayMs, maxDelayMs);
      if (Date.now() + delay > until) throw new TaskFailure("INFRASTRUCTURE", `${what}: ${why}`, { retryable: true });
      await sleep(delay, undefined, { signal: this.signal }).catch(() => this.check());
    }
  }
}

/** Checks the options of an output: a malformed one would fail each upload, or the report. */
function description(options: OutputOptions): Pick<Output, "rowCount" | "materializationId"> {
  const { contentType, fileName, materializationId } = options;
  const rowCount = options.rowCount === undefined ? undefined : Number(options.rowCount); // of a database, it may be a bigint
  const valid = (isValid: boolean, problem: string): void => {
    if (!isValid) throw new TaskFailure("USER_CODE", problem, { retryable: false });
  };
  valid(contentType === undefined || /^[ -~]+$/.test(contentType), "contentType: want printable ASCII characters");
  valid(fileName === undefined || /^[^/\p{Cc}]+$/u.test(fileName) && typeof fileName === "string", "fileName: want a name without slashes and control characters");
  valid(rowCount === undefined || (Number.isSafeInteger(rowCount) && rowCount >= 0), "rowCount: want a whole number from 0");
  valid(materializationId === undefined || typeof materializationId === "string", "materializationId: want a text");
  return { ...(rowCount === undefined ? {} : { rowCount }), ...(materializationId === undefined ? {} : { materializationId }) };
}

async function sizeOf(path: string): Promise<number> {
  const file = await stat(path);
  if (!file.isFile()) throw new TaskFailure("USER_CODE", `the output ${path} is not a file`, { retryable: false });
  return file.size;
}

function isFileError(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "EACCES", "EPERM"].includes((error as NodeJS.ErrnoException)?.code ?? "") && "path" in (error as object);
}
