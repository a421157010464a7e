import { ApiError, ConnectionError, SortieError, TimeoutError } from "../errors.js";
import { keyed, paths } from "../generated/operations.js";
import type { operations } from "../generated/openapi.js";

export type OperationId = keyof typeof paths & keyof operations;

/** Options of one call. */
export interface CallOptions {
  /** Ends the call. */
  signal?: AbortSignal | undefined;
  /** Time limit of each try, in milliseconds. Of a stream, the limit of its beginning. */
  timeoutMs?: number | undefined;
  /** Makes a repeated request create once. The client makes one where the operation has keys. */
  idempotencyKey?: string | undefined;
  /** Changes only what has this entity tag. */
  ifMatch?: string | undefined;
  /** `*` creates only. */
  ifNoneMatch?: string | undefined;
  /** Further headers, such as X-Correlation-Id, traceparent, Range or X-Deadline-Ms. */
  headers?: Record<string, string> | undefined;
}

/** Settings of a client. */
export interface ClientOptions {
  /** The address of the server. Default: SORTIE_URL of the environment, or http://127.0.0.1:8080. */
  url?: string | undefined;
  /** The bearer token, or a function that returns the newest. Default: SORTIE_TOKEN of the environment. */
  token?: string | (() => string | undefined | Promise<string | undefined>) | undefined;
  /** Replaces the global fetch. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Time limit of each try, in milliseconds. Default: 30000. */
  timeoutMs?: number | undefined;
  /** How often a call is repeated. Default: 2. */
  maxRetries?: number | undefined;
}

export interface Call {
  path?: Record<string, string | number>;
  query?: object | undefined;
  body?: unknown;
  /** Media type of a body that is not JSON. */
  contentType?: string;
  headers?: Record<string, string>;
  accept?: string;
  /** The request changes nothing more if it is repeated. */
  repeatable?: boolean;
  follow?: boolean;
  /** The token of a worker, which replaces that of the client. */
  token?: string;
  maxRetries?: number;
  timeoutMs?: number;
}

const withKey: ReadonlySet<string> = new Set(keyed);
const tokenForm = /^[!-~]+$/;
const headerNameForm = /^[\w!#$%&'*+.^`|~-]+$/;
const headerForm = /^[\t -~\x80-\xff]*$/;
/** The headers that a redirected download keeps. The others may be secret. */
const headersOfDownload = ["accept", "range", "if-range", "if-match", "if-none-match"];
const firstDelayMs = 250;
const maxDelayMs = 8_000;
const maxRetryAfterMs = 60_000;
/** Bytes of a problem document. Another program may have answered. */
const maxProblem = 1 << 20;
/** A timer with a longer time ends at once. */
const maxTimerMs = 2 ** 31 - 1;

function variable(name: string): string | undefined {
  try {
    const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
    return process?.env?.[name] || undefined;
  } catch {
    return undefined; // Deno without --allow-env
  }
}

export class Http {
  readonly base: string;
  private readonly fetch: typeof globalThis.fetch;
  /** No print of the client contains it. */
  readonly #token: ClientOptions["token"];
  private readonly timeoutMs: number;
  private readonly maxRetries: number;

  constructor(options: ClientOptions) {
    const url = options.url ?? variable("SORTIE_URL") ?? "http://127.0.0.1:8080";
    if (!isServer(url)) throw new SortieError("url: want an http or https URL without a user, a query and a fragment");
    this.base = url.replace(/\/+$/, "");
    this.fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.#token = options.token ?? variable("SORTIE_TOKEN");
    this.timeoutMs = options.timeoutMs ?? 30_000;
    this.maxRetries = options.maxRetries ?? 2;
  }

  async bearer(): Promise<string | undefined> {
    return checked(typeof this.#token === "function" ? await this.#token() : this.#token);
  }

  /** Returns the decoded JSON of an answer; undefined if it has none. */
  async json<T>(operation: OperationId, call: Call, options: CallOptions = {}): Promise<T> {
    return this.perform(operation, { accept: "application/json", ...call }, options, async (response) => {
      const text = await response.text();
      if (text === "") return undefined as T;
      try {
        return JSON.parse(text) as T;
      } catch (error) {
        throw new SortieError("the answer is no JSON", { cause: error });
      }
    });
  }

  async text(operation: OperationId, call: Call, options: CallOptions = {}): Promise<string> {
    return this.perform(operation, call, options, (response) => response.text());
  }

  /** Returns an answer whose body is not read yet. The signal of the call also ends the body. */
  async raw(operation: OperationId, call: Call, options: CallOptions = {}): Promise<Response> {
    return this.perform(operation, call, options, undefined);
  }

  address(operation: OperationId, call: Call): string {
    const path = paths[operation][1].replace(/\{(\w+)\}/g, (_, name: string) => {
      const value: unknown = call.path?.[name];
      const text = typeof value === "number" ? String(value) : value;
      if (typeof text !== "string" || /^\.{0,2}$/.test(text) || /\p{Surrogate}/u.test(text)) throw new SortieError(`${name}: want an id`);
      return encodeURIComponent(text);
    });
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value === undefined || value === null) continue;
      query.append(name, Array.isArray(value) ? value.join(",") : String(value));
    }
    const text = query.toString();
    return this.base + path + (text ? `?${text}` : "");
  }

  private async perform<T>(operation: OperationId, call: Call, options: CallOptions, read: ((response: Response) => Promise<T>) | undefined): Promise<T> {
    const method = paths[operation][0];
    const address = this.address(operation, call);
    const headers = headersOf(call, options);
    const hasKey = withKey.has(operation);
    if (hasKey) headers["idempotency-key"] ??= options.idempotencyKey ?? globalThis.crypto.randomUUID();
    if (hasKey && !headers["idempotency-key"]) throw new SortieError("idempotencyKey: want a text");
    let body: BodyInit | undefined;
    if (call.body !== undefined) {
      headers["content-type"] ??= call.contentType ?? "application/json";
      body = call.contentType ? (call.body as BodyInit) : JSON.stringify(call.body);
    }
    checkHeaders(headers);
    const conditional = "if-match" in headers || headers["if-none-match"] === "*";
    const repeatable = call.repeatable === true || hasKey || method === "GET" || method === "HEAD" ||
      ((method === "PUT" || method === "DELETE") && !conditional);
    const isStream = typeof ReadableStream !== "undefined" && body instanceof ReadableStream;
    const maxRetries = isStream ? 0 : call.maxRetries ?? this.maxRetries;

    for (let failures = 0; ; failures++) {
      let error: SortieError;
      try {
        const token = call.token === undefined ? await this.bearer() : wellFormed(call.token);
        if (token) headers.authorization = `Bearer ${token}`;
        return await this.once(method, address, headers, body, call, options, read);
      } catch (caught) {
        if (!(caught instanceof SortieError)) throw caught; // the caller's own signal or hook
        error = caught;
      }
      if (failures >= maxRetries || !mayRetry(error, repeatable)) throw error;
      const after = error instanceof ApiError ? error.retryAfterMs ?? 0 : 0;
      if (after > maxRetryAfterMs) throw error;
      await pause(Math.max(after, Math.random() * Math.min(maxDelayMs, firstDelayMs * 2 ** failures)), options.signal);
    }
  }

  private async once<T>(
    method: string, address: string, headers: Record<string, string>, body: BodyInit | undefined, call: Call, options: CallOptions,
    read: ((response: Response) => Promise<T>) | undefined,
  ): Promise<T> {
    const { signal } = options;
    signal?.throwIfAborted();
    // A controller for each call: a signal that lives long collects no listeners.
    const controller = new AbortController();
    const abort = (): void => controller.abort(signal?.reason);
    const timeoutMs = options.timeoutMs ?? call.timeoutMs ?? this.timeoutMs;
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      controller.abort();
    }, Math.min(timeoutMs, maxTimerMs));
    let release = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
    signal?.addEventListener("abort", abort);
    try {
      const init: RequestInit & { duplex?: "half" } = { method, headers, signal: controller.signal, redirect: "manual" };
      if (body !== undefined) {
        init.body = body;
        if (typeof ReadableStream !== "undefined" && body instanceof ReadableStream) init.duplex = "half";
      }
      const { fetch } = this; // a fetch of a browser refuses to be a method of this object
      let response = await fetch(address, init);
      if (call.follow && (response.status === 302 || response.type === "opaqueredirect")) response = await redirected(fetch, address, init, response);
      if (!response.ok && response.status !== 304) throw await refusal(response);
      if (read) return await read(response);
      if (response.body === null) return guarded(response) as T;
      clearTimeout(timer);
      const done = release;
      release = () => undefined;
      return guarded(response, done) as T;
    } catch (error) {
      if (error instanceof SortieError) throw error;
      if (timedOut) throw new TimeoutError(`no answer within ${timeoutMs} ms`);
      if (signal?.aborted) throw signal.reason;
      throw new ConnectionError(`the server did not answer: ${reasonOf(error)}`, { cause: error });
    } finally {
      release();
    }
  }
}

/** Whether a text is an address of a server, without what could be secret. */
export function isServer(text: string): boolean {
  try {
    const { protocol, username, password } = new URL(text);
    return (protocol === "http:" || protocol === "https:") && !username && !password && !/[?#]/.test(text);
  } catch {
    return false;
  }
}

/** Returns a token without its line end. The error of fetch would quote a malformed one. */
function checked(token: string | undefined): string | undefined {
  const text = token?.trim();
  return text ? wellFormed(text) : undefined;
}

function wellFormed(token: string): string {
  if (!tokenForm.test(token)) throw new SortieError("token: want printable ASCII characters without spaces");
  return token;
}

/** The error of fetch would quote a malformed header, which may be secret. */
function checkHeaders(headers: Record<string, string>): void {
  for (const [name, value] of Object.entries(headers)) {
    if (!headerNameForm.test(name)) throw new SortieError("headers: malformed name");
    if (!headerForm.test(value)) throw new SortieError(`header ${name}: want printable characters of Latin-1`);
  }
}

/** Returns the headers of a call, with their names in lower case. */
function headersOf(call: Call, options: CallOptions): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries({ ...call.headers, ...options.headers })) headers[name.toLowerCase()] = value;
  if (call.accept) headers.accept ??= call.accept;
  if (options.ifMatch !== undefined) headers["if-match"] = options.ifMatch;
  if (options.ifNoneMatch !== undefined) headers["if-none-match"] = options.ifNoneMatch;
  return headers;
}

function isRedirect(response: Response): boolean {
  return response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400 && response.status !== 304);
}

/** Follows a redirect to a bucket. Not every runtime keeps the token from another server. */
async function redirected(fetch: typeof globalThis.fetch, address: string, init: RequestInit, response: Response): Promise<Response> {
  // A browser does not show where it leads, and removes the token itself.
  if (response.type === "opaqueredirect") return fetch(address, { ...init, redirect: "follow" });
  await response.body?.cancel();
  const target = locationOf(response, address);
  const headers = Object.entries(init.headers as Record<string, string>).filter(([name]) => headersOfDownload.includes(name));
  try {
    return await fetch(target, { ...init, headers: Object.fromEntries(headers) });
  } catch (error) {
    // The errors of some runtimes contain the URL, which is a secret.
    throw new Error(`the bucket did not answer: ${codeOf(error) ?? "fetch failed"}`);
  }
}

function locationOf(response: Response, address: string): string {
  const location = response.headers.get("Location");
  if (location) {
    try {
      const target = new URL(location, address);
      if (/^https?:$/.test(target.protocol) && !target.username && !target.password) return target.href;
    } catch {
      // An error of URL contains the text.
    }
  }
  throw new SortieError(`the server redirects to a malformed Location (status ${response.status})`);
}

/**
 * Returns a response without its URL, which may be presigned. It calls done when the body
 * has ended or is not wanted any more.
 */
function guarded(response: Response, done = (): void => undefined): Response {
  const { status, statusText, headers } = response;
  if (response.body === null) return new Response(null, { status, statusText, headers });
  const reader = response.body.getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const part = await reader.read();
        if (!part.done) return controller.enqueue(part.value);
        done();
        controller.close();
      } catch (error) {
        done();
        controller.error(error);
      }
    },
    async cancel(reason) {
      done();
      await reader.cancel(reason);
    },
  }, { highWaterMark: 0 });
  return new Response(body, { status, statusText, headers });
}

function reasonOf(error: unknown): string {
  const { message, cause } = (error ?? {}) as { message?: string; cause?: { message?: string } };
  return [message, codeOf(error) ?? cause?.message].filter(Boolean).join(": ") || String(error);
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { cause?: { code?: unknown } } | undefined)?.cause?.code;
  return typeof code === "string" ? code : undefined;
}

function mayRetry(error: SortieError, repeatable: boolean): boolean {
  if (error instanceof ApiError) {
    if (error.status === 429) return error.retryable; // refused before anything was done
    if (error.status === 503 && error.problem.retryable === true) return true; // the same, said by the server itself
    return repeatable && (error.status === 408 || error.status === 425 || error.status >= 500) && error.retryable;
  }
  return repeatable && (error instanceof ConnectionError || error instanceof TimeoutError);
}

async function refusal(response: Response): Promise<SortieError> {
  if (isRedirect(response)) {
    await response.body?.cancel().catch(() => undefined);
    return new SortieError(`the server redirects: check the url (status ${response.status})`);
  }
  let problem: Record<string, unknown> = {};
  try {
    const value: unknown = JSON.parse(await textOf(response, maxProblem));
    if (typeof value === "object" && value !== null) problem = value as Record<string, unknown>;
  } catch {
    // Another program answered; the status says enough.
  }
  const ms = Number(response.headers.get("X-Backoff-Ms") ?? NaN);
  const seconds = Number(response.headers.get("Retry-After") ?? NaN);
  const retryAfterMs = Number.isFinite(ms) ? ms : Number.isFinite(seconds) ? seconds * 1000 : undefined;
  return new ApiError(response.status, problem, { correlationId: response.headers.get("X-Correlation-Id") ?? undefined, retryAfterMs });
}

/** Reads a body, at most about limit bytes of it. */
async function textOf(response: Response, limit: number): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    text += decoder.decode(part.value, { stream: true });
    if (text.length > limit) {
      await reader?.cancel();
      break;
    }
  }
  return text;
}

/** Waits, and throws the reason of the signal if it ends first. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, Math.min(ms, maxTimerMs));
    signal?.addEventListener("abort", abort, { once: true });
  });
}
