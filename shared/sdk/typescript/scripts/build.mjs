// Builds dist: each module as .mjs and .cjs, with declarations for both kinds.
import { execFileSync } from "node:child_process";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../", import.meta.url));
const tsc = join(root, "node_modules/typescript/bin/tsc");
const dist = join(root, "dist");
const staging = join(root, ".build");

await rm(dist, { recursive: true, force: true });
for (const [module, resolution, ext] of [["esnext", "bundler", "mjs"], ["commonjs", "node10", "cjs"]]) {
  await rm(staging, { recursive: true, force: true });
  execFileSync(process.execPath, [
    tsc, "-p", root, "--noEmit", "false", "--outDir", staging, "--module", module, "--moduleResolution", resolution,
  ], { stdio: "inherit" });
  for (const file of await readdir(staging, { recursive: true })) {
    if (!file.endsWith(".js") && !file.endsWith(".d.ts")) continue;
    const text = await readFile(join(staging, file), "utf8");
    const target = join(dist, file.replace(/\.js$/, `.${ext}`).replace(/\.d\.ts$/, `.d.${ext === "mjs" ? "mts" : "cts"}`));
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, text.replace(/((?:from|require\(|import\(|import) ?["'])(\.\.?\/[^"']+)\.js(["'])/g, `$1$2.${ext}$3`));
  }
}
await rm(staging, { recursive: true, force: true });
// The thread is a text in src/generated; its own module is of no use.
for (const name of await readdir(join(dist, "worker"))) {
  if (/^(thread|outbox)\./.test(name)) await rm(join(dist, "worker", name));
}
