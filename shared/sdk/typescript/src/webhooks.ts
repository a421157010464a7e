import { WebhookVerificationError } from "./errors.js";
import type * as Schemas from "./generated/schemas.js";

/** Bytes of a body. They are read before the signature is known. */
const maxBody = 4 << 20;

/** A request as a server framework has it: its headers and its raw body. */
export interface RawRequest {
  headers: Headers | Record<string, string | string[] | undefined>;
  body: string | Uint8Array;
}

export interface VerifyOptions {
  /** The greatest difference of the clocks, in seconds. Default: 300. */
  toleranceSeconds?: number;
  /** The time in milliseconds. Default: Date.now. */
  now?: () => number;
}

/**
 * Verifies the signature and the age of a webhook (Standard Webhooks) and returns its event.
 * It throws a WebhookVerificationError. Several secrets permit a rotation.
 *
 * Delivery is at least once: ignore an event whose eventId you have seen.
 */
export async function verifyWebhook(request: Request | RawRequest, secrets: string | readonly string[], options: VerifyOptions = {}): Promise<Schemas.Event> {
  if (!request.headers) throw new WebhookVerificationError("the request has no headers");
  const id = header(request.headers, "webhook-id");
  const timestamp = header(request.headers, "webhook-timestamp");
  const signatures = header(request.headers, "webhook-signature");
  if (!id || !timestamp || !signatures) throw new WebhookVerificationError("the request has no Webhook-Id, Webhook-Timestamp or Webhook-Signature");
  const seconds = /^\d{1,15}$/.test(timestamp) ? Number(timestamp) : NaN;
  const skew = Math.abs((options.now ?? Date.now)() / 1000 - seconds);
  if (!(skew <= (options.toleranceSeconds ?? 300))) throw new WebhookVerificationError("the Webhook-Timestamp is too old or too new");

  const body = isRequest(request) ? await bodyOf(request) : typeof request.body === "string" ? encode(request.body) : request.body;
  if (!ArrayBuffer.isView(body)) throw new WebhookVerificationError("want the raw body, as text or bytes");
  const signed = joined([encode(`${id}.${timestamp}.`), body]);
  if (!(await isSigned(signed, signatures, typeof secrets === "string" ? [secrets] : secrets))) {
    throw new WebhookVerificationError("no signature is valid");
  }
  let event: unknown;
  try {
    event = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw new WebhookVerificationError("the body is no JSON");
  }
  if (typeof event !== "object" || event === null || Array.isArray(event)) throw new WebhookVerificationError("the body is no object");
  return event as Schemas.Event;
}

async function bodyOf(request: Request): Promise<Uint8Array> {
  if (request.bodyUsed) throw new WebhookVerificationError("want the raw body: that of the request was read");
  const reader = request.body?.getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    size += part.value.length;
    parts.push(part.value);
    if (size > maxBody) {
      await reader?.cancel();
      throw new WebhookVerificationError(`the body has more than ${maxBody} bytes`);
    }
  }
  return joined(parts);
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

async function isSigned(signed: Uint8Array<ArrayBuffer>, signatures: string, secrets: readonly string[]): Promise<boolean> {
  if (!Array.isArray(secrets) || secrets.length === 0) throw new WebhookVerificationError("there is no secret");
  for (const secret of secrets) {
    const bytes = typeof secret === "string" ? decode(secret.replace(/^whsec_/, "")) : undefined;
    if (!bytes || bytes.length === 0) throw new WebhookVerificationError("a secret is not base64");
    const key = await globalThis.crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    // One MAC for each secret: a header with many signatures costs no more.
    const expected = new Uint8Array(await globalThis.crypto.subtle.sign("HMAC", key, signed));
    for (const one of signatures.split(" ")) {
      const signature = one.startsWith("v1,") ? decode(one.slice(3)) : undefined;
      if (signature && isSame(signature, expected)) return true;
    }
  }
  return false;
}

/** Takes the same time for each signature of the right length. */
function isSame(signature: Uint8Array, expected: Uint8Array): boolean {
  let difference = signature.length ^ expected.length;
  for (const [at, byte] of expected.entries()) difference |= byte ^ (signature[at] ?? 0);
  return difference === 0;
}

function isRequest(request: Request | RawRequest): request is Request {
  return typeof (request as Request).arrayBuffer === "function";
}

function header(headers: RawRequest["headers"], name: string): string | undefined {
  if (typeof (headers as Headers).get === "function") return (headers as Headers).get(name) ?? undefined;
  for (const [key, value] of Object.entries(headers as Record<string, string | string[] | undefined>)) {
    if (key.toLowerCase() === name) return Array.isArray(value) ? value[0] : value;
  }
  return undefined;
}

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>;
}

function decode(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  } catch {
    return undefined;
  }
}
