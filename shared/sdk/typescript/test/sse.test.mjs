import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { SseDecoder } from "@sortie/sdk";

test("a message of many lines without an end is refused", () => {
  const decoder = new SseDecoder();
  const line = Buffer.from(`data: ${"x".repeat(1 << 20)}\n`);
  assert.throws(() => {
    for (let n = 0; n < 20; n++) decoder.decode(line);
  }, /too large/);
  const other = new SseDecoder();
  for (let n = 0; n < 20; n++) assert.equal(other.decode(Buffer.concat([line, Buffer.from("\n")])).length, 1);
});

test("a message of many empty lines without an end is refused", () => {
  const decoder = new SseDecoder();
  const lines = Buffer.from("data\n".repeat(1 << 20));
  assert.throws(() => {
    for (let n = 0; n < 20; n++) decoder.decode(lines);
  }, /too large/);
});

// The table is that of all SDKs.
const table = JSON.parse(await readFile(new URL("./testdata/sse.json", import.meta.url), "utf8"));

for (const { name, chunks, events, lastEventId, retry } of table) {
  test(name, () => {
    const decoder = new SseDecoder();
    const got = chunks.flatMap((chunk) => decoder.decode(Buffer.from(chunk, "base64")));
    assert.deepEqual(got, events);
    assert.equal(decoder.lastEventId, lastEventId);
    assert.equal(decoder.retryMs ?? null, retry);
  });
}
