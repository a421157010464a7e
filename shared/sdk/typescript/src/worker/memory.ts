import type { StopCause } from "./errors.js";

// The memory that the main thread and the heartbeat thread share. A busy loop sees a
// cancel request in it, and the heartbeat thread sees the progress, without a message.

const causes: readonly (StopCause | undefined)[] = [undefined, "cancelled", "terminated", "deadline", "expired", "superseded", "ended"];

export const maxText = 2048;
const cells = 8;
const stop = 0;
const reasonLength = 1;
const version = 2;
const percent = 3;
const messageLength = 4;
const textOffset = cells * 4;

export interface Progress {
  version: number;
  percent: number; // -1 if unknown
  message: string;
}

export class SharedState {
  readonly buffer: SharedArrayBuffer;
  private readonly cells: Int32Array;
  private readonly reasonBytes: Uint8Array;
  private readonly messageBytes: Uint8Array;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(textOffset + 2 * maxText)) {
    this.buffer = buffer;
    this.cells = new Int32Array(buffer, 0, cells);
    this.reasonBytes = new Uint8Array(buffer, textOffset, maxText);
    this.messageBytes = new Uint8Array(buffer, textOffset + maxText, maxText);
  }

  get stopCause(): StopCause | undefined {
    return causes[Atomics.load(this.cells, stop)];
  }

  get reason(): string {
    return new TextDecoder().decode(this.reasonBytes.slice(0, Atomics.load(this.cells, reasonLength)));
  }

  /** Only the heartbeat thread calls this. */
  setStop(cause: StopCause, reason: string): void {
    Atomics.store(this.cells, reasonLength, put(reason, this.reasonBytes));
    Atomics.store(this.cells, stop, causes.indexOf(cause));
  }

  /** Only the main thread calls this. The version is odd during the write. */
  setProgress(value: number, message: string): void {
    Atomics.add(this.cells, version, 1);
    Atomics.store(this.cells, percent, value);
    Atomics.store(this.cells, messageLength, put(message, this.messageBytes));
    Atomics.add(this.cells, version, 1);
  }

  /** Returns undefined if the main thread is writing. */
  readProgress(): Progress | undefined {
    const before = Atomics.load(this.cells, version);
    const value = Atomics.load(this.cells, percent);
    const bytes = this.messageBytes.slice(0, Atomics.load(this.cells, messageLength));
    if (before % 2 === 1 || before !== Atomics.load(this.cells, version)) return undefined;
    return { version: before, percent: before === 0 ? -1 : value, message: new TextDecoder().decode(bytes) };
  }
}

/** Writes a text and cuts it at a whole character. */
function put(text: string, to: Uint8Array): number {
  const encoded = new TextEncoder().encode(cut(text, maxText));
  to.set(encoded);
  return encoded.length;
}

const mark = " [cut]";

/** Shortens a text to at most limit bytes of UTF-8 and marks that it did. */
export function cut(text: string, limit: number): string {
  const encoded = new TextEncoder().encode(text);
  if (encoded.length <= limit) return text;
  let end = limit - mark.length;
  while (end > 0 && ((encoded[end] ?? 0) & 0xc0) === 0x80) end--;
  return new TextDecoder().decode(encoded.subarray(0, end)) + mark;
}
