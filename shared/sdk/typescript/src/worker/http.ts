import * as http from "node:http";
import * as https from "node:https";
import type { Readable } from "node:stream";

/** The answer to one request. */
export interface Answer {
  status: number;
  body: Buffer;
  retryAfterMs: number;
}

export interface Request {
  method: string;
  url: string;
  headers: Record<string, string | number>;
  body?: Buffer | Readable;
  /** Time limit of the whole request. */
  timeoutMs: number;
  /** Time limit without any byte of the body being sent; 0 is none. */
  stallMs?: number;
  signal?: AbortSignal;
  maxBytes?: number;
}

const maxRetryAfterMs = 300_000;
// A connection for each call: one that the server closed meanwhile costs a retry.
const plain = new http.Agent({ keepAlive: false });
const secure = new https.Agent({ keepAlive: false });

/** Sends a request. It follows no redirect, and its errors do not contain the URL. */
export function send(request: Request): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const source = Buffer.isBuffer(request.body) ? undefined : request.body;
    const call = open(request, source, reject);
    if (!call) return;
    const limit = setTimeout(() => call.destroy(new Error("no answer in time")), request.timeoutMs);
    let stalled: NodeJS.Timeout | undefined;
    const abort = (): void => void call.destroy(new Error("aborted"));
    const release = (): void => {
      clearTimeout(limit);
      clearTimeout(stalled);
      request.signal?.removeEventListener("abort", abort);
    };
    const fail = (error: Error): void => {
      release();
      source?.destroy();
      reject(error);
    };
    call.on("error", fail);
    call.on("response", (response) => {
      const parts: Buffer[] = [];
      let size = 0;
      response.on("data", (part: Buffer) => {
        size += part.length;
        if (size > (request.maxBytes ?? 64 << 10)) response.destroy(new Error("the answer is too large"));
        else parts.push(part);
      });
      response.on("error", fail);
      response.on("close", () => {
        if (!response.complete) fail(new Error("truncated answer"));
      });
      response.on("end", () => {
        release();
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(parts), retryAfterMs: retryAfter(response.headers["retry-after"]) });
      });
    });
    if (request.signal?.aborted) return abort();
    request.signal?.addEventListener("abort", abort);
    if (!source) return void call.end(request.body);
    const stallMs = request.stallMs ?? 0;
    const moved = (): void => {
      if (stallMs === 0) return;
      clearTimeout(stalled);
      stalled = setTimeout(() => call.destroy(new Error("the upload stalled")), stallMs);
    };
    moved();
    source.on("data", moved);
    source.on("error", (error) => call.destroy(error));
    call.on("close", () => source.destroy());
    source.pipe(call);
  });
}

/** Opens the request. A malformed header throws at once: the body is then not needed. */
function open({ url: address, method, headers }: Request, body: Readable | undefined, fail: (error: unknown) => void): http.ClientRequest | undefined {
  try {
    const url = new URL(address);
    const isSecure = url.protocol === "https:";
    return (isSecure ? https : http).request(url, { method, headers, agent: isSecure ? secure : plain });
  } catch (error) {
    body?.destroy();
    fail(error);
    return undefined;
  }
}

function retryAfter(header: string | undefined): number {
  if (!header) return 0;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), maxRetryAfterMs);
}

export function isOk(status: number): boolean {
  return status >= 200 && status < 300;
}

/** Reports whether the same call may succeed later. */
export function isRetryable(status: number): boolean {
  return status === 401 || status === 408 || status === 425 || status === 429 || status >= 500;
}

/** Returns a random delay under a bound that doubles from first to most. */
export function backoff(failures: number, first: number, most: number): number {
  return Math.random() * Math.min(most, first * 2 ** Math.min(failures, 20));
}
