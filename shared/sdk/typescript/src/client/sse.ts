import { SortieError } from "../errors.js";

/** Characters of one message. A server that sends more is not one of Sortie. */
const maxMessage = 16 << 20;

/** A message of a stream of Server-Sent Events. */
export interface SseMessage {
  /** The id of the last message that had one. */
  id: string;
  /** `message` if the message names no event. */
  event: string;
  data: string;
}

/**
 * Decodes a stream of Server-Sent Events, as the WHATWG specifies it. Chunks may end
 * anywhere: in a character, between CR and LF, in a field. It holds one message, and
 * throws a SortieError if that is too large.
 */
export class SseDecoder {
  /** The id of the newest complete message, with or without data. */
  lastEventId: string;
  /** The newest `retry` of the server, in milliseconds. */
  retryMs: number | undefined;

  private readonly text = new TextDecoder("utf-8"); // strips a byte order mark
  private line = "";
  private afterCarriageReturn = false;
  private id: string;
  private event = "";
  private data: string[] = [];
  private size = 0; // of data

  /** A client that resumes a stream begins with the id that it has. */
  constructor(lastEventId = "") {
    this.lastEventId = lastEventId;
    this.id = lastEventId;
  }

  /** Returns the messages that a chunk completes. */
  decode(chunk: Uint8Array): SseMessage[] {
    const messages: SseMessage[] = [];
    let text = this.text.decode(chunk, { stream: true });
    if (text === "") return messages;
    if (this.afterCarriageReturn && text.startsWith("\n")) text = text.slice(1);
    this.afterCarriageReturn = text === "" ? false : text.endsWith("\r");
    const lines = text.split(/\r\n|\n|\r/);
    lines[0] = this.line + (lines[0] ?? "");
    this.line = lines.pop() ?? "";
    for (const line of lines) {
      const message = this.take(line);
      if (message) messages.push(message);
    }
    if (this.size + this.line.length > maxMessage) throw new SortieError("a message of the stream is too large");
    return messages;
  }

  private take(line: string): SseMessage | undefined {
    if (line === "") return this.dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return undefined; // a comment
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    switch (field) {
      case "data":
        this.data.push(value);
        this.size += value.length + 1;
        break;
      case "event":
        this.event = value;
        break;
      case "id":
        if (!value.includes("\0")) this.id = value;
        break;
      case "retry":
        if (/^[0-9]+$/.test(value)) this.retryMs = Number(value);
    }
    return undefined;
  }

  private dispatch(): SseMessage | undefined {
    this.lastEventId = this.id;
    const { data, event } = this;
    this.data = [];
    this.size = 0;
    this.event = "";
    return data.length === 0 ? undefined : { id: this.id, event: event || "message", data: data.join("\n") };
  }
}
