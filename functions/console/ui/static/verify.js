// Verifies events in the browser: their signatures (DSSE, Ed25519) and, with the checkpoints of
// the stream, that a range of it is complete and in order. events/verify.go does the same.

const payloadType = "application/vnd.orch.event.v1+json";
const encoder = new TextEncoder();

const bytesOf = (base64) => Uint8Array.from(atob(base64.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const textOf = (bytes) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
const hexOf = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");

function joined(...parts) {
  const all = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

const digest = async (...parts) => new Uint8Array(await crypto.subtle.digest("SHA-256", joined(...parts)));
const same = (a, b) => a.length === b.length && a.every((value, i) => value === b[i]);

/** importKeys returns the Ed25519 keys of a JSON Web Key set by id. The id follows from the key. */
export async function importKeys(set) {
  const keys = new Map();
  for (const { kty, crv, x } of set.keys) {
    if (kty !== "OKP" || crv !== "Ed25519") continue;
    const raw = bytesOf(x);
    const id = "event-" + hexOf((await digest(raw)).slice(0, 8));
    keys.set(id, { id, raw, key: await crypto.subtle.importKey("raw", raw, "Ed25519", false, ["verify"]) });
  }
  return keys;
}

/** open returns the event of a DSSE envelope and its text. It fails unless a known key signed it. */
export async function open(envelope, keys) {
  if (envelope.payloadType !== payloadType) throw new Error(`unknown payload type ${envelope.payloadType}`);
  const payload = bytesOf(envelope.payload);
  const signed = joined(encoder.encode(`DSSEv1 ${encoder.encode(payloadType).length} ${payloadType} ${payload.length} `), payload);
  for (const { keyid, sig } of envelope.signatures ?? []) {
    const known = keys.get(keyid);
    if (!known) continue;
    if (!await crypto.subtle.verify("Ed25519", known.key, bytesOf(sig), signed)) throw new Error("the signature does not match");
    const text = textOf(payload);
    return { event: JSON.parse(text), text, key: keyid };
  }
  throw new Error("no signature by a published key");
}

/** canonical returns JSON in the form of RFC 8785. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
}

/** rootOf returns the root of the tree with these subtrees, the largest first (RFC 6962). */
async function rootOf(subtrees) {
  if (subtrees.length === 0) return digest();
  let root = subtrees.at(-1);
  for (const left of subtrees.slice(0, -1).reverse()) root = await digest(Uint8Array.of(1), left, root);
  return root;
}

/** Proof verifies the lines of a part of a stream in order: events and checkpoints. */
export class Proof {
  constructor(keys) {
    Object.assign(this, { keys, size: 0, subtrees: [], events: 0, outside: 0, since: 0, from: 0, to: 0, seen: false, origin: "", tenant: undefined });
  }

  async line(text) {
    const entry = JSON.parse(text);
    return "checkpoint" in entry ? this.checkpoint(entry.checkpoint) : this.event(entry);
  }

  async event(envelope) {
    const { event } = await open(envelope, this.keys);
    if (this.tenant !== undefined && event.tenantId !== this.tenant) throw new Error("an event is of another tenant");
    this.tenant = event.tenantId;
    const { notifier, ...content } = event;
    let hash = await digest(Uint8Array.of(0), encoder.encode(canonical(content)));
    for (let n = this.size; n % 2 === 1; n = Math.floor(n / 2)) hash = await digest(Uint8Array.of(1), this.subtrees.pop(), hash);
    this.subtrees.push(hash);
    this.size++;
    this.events++;
    this.since++;
  }

  async checkpoint(note) {
    const end = note.indexOf("\n\n") + 1;
    const [text, signatures] = [note.slice(0, end), note.slice(end + 1)];
    await this.signedBy(text, signatures);
    const [origin, size, root, ...extensions] = text.trimEnd().split("\n");
    const subtrees = extensions.filter((line) => line.startsWith("subtree ")).map((line) => bytesOf(line.slice("subtree ".length)));
    if (!/^\d{1,15}$/.test(size) || !same(await rootOf(subtrees), bytesOf(root))) throw new Error("malformed checkpoint");
    if (subtrees.length !== BigInt(size).toString(2).replaceAll("0", "").length) throw new Error("malformed checkpoint");
    if (this.seen && origin !== this.origin) throw new Error("a checkpoint is of another stream");
    const complete = this.size === Number(size) && same(await rootOf(this.subtrees), bytesOf(root));
    if (this.seen && !complete) throw new Error(`the ${this.since} events after ${this.to} are not the events ${this.to + 1} to ${size} of the stream`);
    if (!complete) {
      this.outside += this.since;
      this.from = Number(size);
    }
    Object.assign(this, { since: 0, seen: true, origin, to: Number(size), size: Number(size), subtrees });
  }

  async signedBy(text, signatures) {
    for (const line of signatures.trimEnd().split("\n")) {
      const [, name, blob] = line.split(" ");
      const known = this.keys.get(name);
      if (!known) continue;
      const hash = (await digest(encoder.encode(`${name}\n\u0001`), known.raw)).slice(0, 4);
      const signature = bytesOf(blob);
      if (!same(hash, signature.slice(0, 4))) continue;
      if (await crypto.subtle.verify("Ed25519", known.key, signature.slice(4), encoder.encode(text))) return;
    }
    throw new Error("a checkpoint has no signature by a published key");
  }

  /** result describes what is proved. */
  result() {
    if (!this.seen) throw new Error("the range has no checkpoint, so nothing proves that it is complete; the last one is written within a minute after the last event");
    const outside = this.outside + this.since;
    if (this.to === this.from && this.events > 0) throw new Error("the range has no events between two checkpoints");
    return { origin: this.origin, from: this.from, to: this.to, events: this.events, outside };
  }
}

/** load returns the lines of signed events and the cursor after them. */
async function load(address, after, limit) {
  const url = new URL(address, location.href);
  url.searchParams.set("after", after);
  url.searchParams.set("limit", limit);
  const response = await fetch(url, { headers: { Accept: "application/vnd.dsse+x-ndjson" } });
  if (!response.ok) throw new Error(`the events are not available (${response.status})`);
  const text = await response.text();
  return { lines: text.split("\n").filter(Boolean), next: response.headers.get("X-Next-Cursor") };
}

const positionOf = (cursor) => Number(cursor.slice(cursor.lastIndexOf("-") + 1));

async function verifyEvent(place) {
  const keys = await importKeys(await (await fetch(place.dataset.keys)).json());
  const { lines } = await load(place.dataset.verify, place.dataset.after, 1);
  const line = lines.find((each) => !("checkpoint" in JSON.parse(each)));
  const { event, key } = await open(JSON.parse(line), keys);
  if (event.eventId !== place.dataset.event) throw new Error("the signed event is another one");
  return `The signature is valid. Key ${key} of this deployment has signed this text.`;
}

async function verifyRange(place) {
  const proof = new Proof(await importKeys(await (await fetch(place.dataset.keys)).json()));
  const until = Number(place.dataset.until);
  for (let after = place.dataset.after; positionOf(after) < until;) {
    const { lines, next } = await load(place.dataset.prove, after, Math.min(1000, until - positionOf(after)));
    for (const line of lines) await proof.line(line);
    show(place, "wait", `${proof.events} events are verified …`);
    if (!next || next === after) break;
    after = next;
  }
  const { origin, from, to, events, outside } = proof.result();
  const more = outside > 0 ? ` ${outside} more are signed, but are not between two checkpoints.` : "";
  return `The events ${from + 1} to ${to} of ${origin} are complete and unchanged; all ${events} signatures are valid.${more}`;
}

function show(place, look, text) {
  place.className = `verdict ${look}`;
  place.querySelector("[role=status]").textContent = text;
}

async function run(place, verify) {
  show(place, "wait", "Verifying …");
  try {
    if (!globalThis.isSecureContext || !crypto.subtle) throw new Error("browsers verify signatures only over HTTPS, or on this computer; use the commands");
    show(place, "good", await verify(place));
  } catch (error) {
    if (error.name === "NotSupportedError") show(place, "wait", "This browser cannot verify Ed25519 signatures; use the commands.");
    else show(place, "bad", `Not verified: ${error.message}`);
  }
}

if (globalThis.document) {
  for (const place of document.querySelectorAll("[data-verify]")) run(place, verifyEvent);
  for (const place of document.querySelectorAll("[data-prove]")) run(place, verifyRange);
}
