import { ApiError, ConnectionError, SortieError, TimeoutError } from "../errors.js";
import { type CallOptions, pause } from "./http.js";
import { SseDecoder, type SseMessage } from "./sse.js";

const firstDelayMs = 500;
const maxDelayMs = 30_000;
/** The longest wait that a server can ask for. */
const maxWaitMs = 300_000;
/** Characters of one line of a log. A line has at most 64 KiB of output. */
const maxLine = 1 << 20;
/** The server sends something at least every 15 seconds. */
const silenceMs = 45_000;

/** Yields the chunks of a body, and fails if none comes for too long. */
export async function* chunks(response: Response, limitMs = silenceMs): AsyncGenerator<Uint8Array> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  let ended = false;
  try {
    for (;;) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const silence = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new TimeoutError(`the stream was silent for ${limitMs} ms`)), limitMs);
      });
      try {
        const part = await Promise.race([reader.read(), silence]);
        if (part.done) {
          ended = true;
          return;
        }
        yield part.value;
      } finally {
        clearTimeout(timer);
      }
    }
  } catch (error) {
    if (error instanceof SortieError) throw error;
    throw new ConnectionError("the stream ended early", { cause: error });
  } finally {
    if (!ended) await reader.cancel().catch(() => undefined);
  }
}

/** Yields the complete lines of a body. */
export async function* lines(response: Response, limitMs: number): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks(response, limitMs)) {
    const complete = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = complete.pop() ?? "";
    if (rest.length > maxLine) throw new SortieError("a line of the stream is too long");
    yield* complete;
  }
}

/** Decodes a message or a line, which is a JSON object. */
export function parsed<T>(text: string): T {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value as T;
  } catch {
    // The error of JSON.parse quotes the text.
  }
  throw new SortieError("malformed message of the stream");
}

/** Whether a new connection may continue a stream that ended with this error. */
export function isBreak(error: unknown): boolean {
  return error instanceof ConnectionError || error instanceof TimeoutError ||
    (error instanceof ApiError && error.retryable && (error.status === 408 || error.status === 429 || error.status >= 500));
}

/** Yields the messages of one answer, which is not resumed. */
export async function* messages(response: Response, signal: AbortSignal | undefined): AsyncGenerator<SseMessage> {
  const decoder = new SseDecoder();
  try {
    for await (const chunk of chunks(response)) yield* decoder.decode(chunk);
  } catch (error) {
    throw signal?.aborted ? signal.reason : error;
  }
}

export interface Resumable {
  /** Opens the stream behind a cursor; undefined at the first time without one. */
  open: (cursor: string | undefined) => Promise<Response>;
  /** Whether the stream has ended for good with this message. */
  isLast?: (message: SseMessage) => boolean;
  /** Called before a message is yielded, and for ids without data. */
  moved: (cursor: string) => void;
  cursor?: string | undefined;
}

/** Yields messages, and connects again until the caller stops or the stream ends for good. */
export async function* resumed(stream: Resumable, options: CallOptions): AsyncGenerator<SseMessage> {
  let cursor = stream.cursor;
  let retryMs: number | undefined;
  for (let failures = 0; ; failures++) {
    try {
      options.signal?.throwIfAborted();
      const response = await stream.open(cursor);
      if (response.status === 204) return;
      if (/^text\/html\b/i.test(response.headers.get("Content-Type") ?? "")) {
        await response.body?.cancel();
        throw new SortieError("the answer is a page, not a stream: check the url");
      }
      const decoder = new SseDecoder(cursor);
      for await (const chunk of chunks(response)) {
        failures = 0;
        const complete = decoder.decode(chunk);
        retryMs = decoder.retryMs ?? retryMs;
        for (const message of complete) {
          if (message.id !== "") stream.moved((cursor = message.id));
          yield message;
          if (stream.isLast?.(message)) return;
        }
        // The id of a message without data moves the cursor, too.
        if (decoder.lastEventId !== "" && decoder.lastEventId !== cursor) stream.moved((cursor = decoder.lastEventId));
      }
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      if (!isBreak(error)) throw error;
      if (error instanceof ApiError && error.retryAfterMs) retryMs = error.retryAfterMs;
    }
    const bound = Math.min(maxDelayMs, firstDelayMs * 2 ** failures);
    await pause(Math.max(Math.min(retryMs ?? 0, maxWaitMs), Math.random() * bound), options.signal);
    retryMs = undefined;
  }
}
