import { causeOf, object } from "./answer.js";
import type { StopCause } from "./errors.js";
import { type Answer, backoff, isOk, isRetryable } from "./http.js";
import { type Chunk, Outbox, type Stream } from "./outbox.js";
import { Timer } from "./timer.js";

const firstDelayMs = 500;
const maxDelayMs = 30_000;
const followedMs = 2_000;
const idleMs = 30_000;
// Much output is sent before the next interval, until the first part is sent.
const earlyBytes = 256 << 10;
const earlyTotal = 1 << 20;

/** What the sender needs of the attempt. */
export interface SenderHooks {
  post(chunk: { stream: Stream; sequence: number; data: string; ageMs: number }): Promise<Answer>;
  warn(msg: string, more: Record<string, unknown>): void;
  isOver(): boolean;
  /** Called with each accepted answer. */
  answered(said: Record<string, unknown>): void;
  /** Called when an answer says that the attempt ended. Returns whether the work stops for it. */
  ended(cause: StopCause): boolean;
}

/** Sends the output of the work while it runs. */
export class Sender {
  private readonly outbox = new Outbox();
  private readonly timer = new Timer();
  private unsent: Chunk | undefined; // it may have been received
  private sequence = 1;
  private sentBytes = 0;
  private followed = false;
  private off = false;
  private flushing = false;
  private sending: Promise<string> = Promise.resolve("");

  constructor(private readonly hooks: SenderHooks) {}

  add(stream: Stream, data: Uint8Array): void {
    this.outbox.add(stream, data, Date.now());
    if (this.outbox.bytes >= earlyBytes && this.sentBytes < earlyTotal) this.timer.poke();
  }

  poke(): void {
    this.timer.poke();
  }

  /** Sends output until the end, or until flush is called. */
  async run(): Promise<void> {
    let wait = followedMs;
    for (let failures = 0; !this.hooks.isOver() && !this.flushing && !this.off; ) {
      await this.timer.wait(wait);
      if (this.hooks.isOver() || this.flushing) return;
      this.sending = this.sendAll();
      const why = await this.sending;
      if (why) this.hooks.warn("output was not sent, retrying", { why });
      wait = why ? Math.max(followedMs, backoff(failures++, firstDelayMs, maxDelayMs)) : this.followed ? followedMs : idleMs;
      if (!why) failures = 0;
    }
  }

  /** Sends what there is. It returns why it failed. */
  private async sendAll(): Promise<string> {
    while (!this.off) {
      this.unsent ??= this.outbox.take();
      const chunk = this.unsent;
      if (!chunk) return "";
      try {
        const answer = await this.hooks.post({
          stream: chunk.stream, sequence: this.sequence, data: chunk.data.toString("base64"), ageMs: 1 + Math.max(Date.now() - chunk.since, 0),
        });
        if (isOk(answer.status)) {
          const said = object(answer);
          if (!said) return "malformed answer";
          this.followed = said.followed === true;
          this.hooks.answered(said);
          this.sentBytes += chunk.data.length;
          this.unsent = undefined;
          this.sequence++;
          continue;
        }
        if (isRetryable(answer.status)) return `unexpected status ${answer.status}`;
        this.off = true;
        const error = object(answer)?.error;
        const ended = error === "sequence_gap" || error === "sequence_conflict" ? undefined : causeOf(answer);
        if (!ended || !this.hooks.ended(ended)) this.hooks.warn("the control plane does not take output", { status: answer.status });
      } catch (error) {
        return error instanceof Error ? error.message : String(error);
      }
    }
    return "";
  }

  /** Sends the rest of the output, for at most ms, and returns how many bytes were lost. */
  async flush(ms: number): Promise<number> {
    this.flushing = true;
    this.timer.poke();
    const until = Date.now() + ms;
    await this.sending;
    for (let failures = 0; !this.off; failures++) {
      const why = await this.sendAll();
      const delay = backoff(failures, firstDelayMs, maxDelayMs);
      if (!why || Date.now() + delay > until) break;
      await new Timer().wait(delay);
    }
    return this.outbox.close() + (this.unsent?.data.length ?? 0);
  }
}
