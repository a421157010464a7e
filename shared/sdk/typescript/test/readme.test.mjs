import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

const readme = await readFile(new URL("./README.md", import.meta.url), "utf8");

test("the programs of the README are the examples, which are tested", async () => {
  const blocks = [...readme.matchAll(/```js\n([\s\S]*?)```/g)].map(([, code]) => code);
  const examples = await Promise.all(["client", "worker"].map((name) => readFile(new URL(`./examples/${name}.mjs`, import.meta.url), "utf8")));
  assert.deepEqual(blocks, examples);
});

test("the README has at most 700 words", () => {
  const prose = readme.replace(/```[\s\S]*?```/g, "");
  const words = prose.split(/\s+/).filter(Boolean).length;
  assert.ok(words <= 700, `got ${words}`);
});
