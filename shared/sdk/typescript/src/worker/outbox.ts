export type Stream = "stdout" | "stderr";

export interface Chunk {
  stream: Stream;
  data: Buffer;
  /** When its oldest byte was written. */
  since: number;
}

/** Bytes of a chunk: at most 32 KiB as base64. */
const chunkSize = 24 << 10;
/** Bytes that are held while the control plane does not answer. */
const outboxSize = 768 << 10;

/** Holds output until it is sent. Output that does not fit replaces the oldest. */
export class Outbox {
  private pending: Chunk[] = [];
  private size = 0;
  private missing: Record<Stream, number> = { stdout: 0, stderr: 0 };

  add(stream: Stream, data: Uint8Array, now: number): void {
    for (let at = 0; at < data.length; ) {
      let last = this.pending[this.pending.length - 1];
      if (!last || last.stream !== stream || last.data.length >= chunkSize) {
        last = { stream, data: Buffer.alloc(0), since: now };
        this.pending.push(last);
      }
      const part = data.subarray(at, at + chunkSize - last.data.length);
      last.data = Buffer.concat([last.data, part]);
      at += part.length;
      this.size += part.length;
      while (this.size > outboxSize) this.drop();
    }
  }

  private drop(): void {
    const oldest = this.pending.shift();
    if (!oldest) return;
    this.size -= oldest.data.length;
    this.missing[oldest.stream] += oldest.data.length;
  }

  get bytes(): number {
    return this.size;
  }

  /** Removes the oldest chunk. A line in it says how many bytes are missing before it. */
  take(): Chunk | undefined {
    const chunk = this.pending.shift();
    if (!chunk) return undefined;
    this.size -= chunk.data.length;
    const missing = this.missing[chunk.stream];
    if (missing > 0) {
      this.missing[chunk.stream] = 0;
      chunk.data = Buffer.concat([Buffer.from(`\n[${missing} bytes are cut out here]\n`), chunk.data]);
    }
    return chunk;
  }

  /** Drops what is left and returns the number of its bytes. */
  close(): number {
    const lost = this.size + this.missing.stdout + this.missing.stderr;
    this.pending = [];
    this.size = 0;
    this.missing = { stdout: 0, stderr: 0 };
    return lost;
  }
}
