// Builds dist: each module as .mjs and .cjs, with declarations for both kinds.
import { execFileSync } from "node:child_process";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";

const root = fileURLToPath(new URL("../", import.meta.url));
const dist = join(root, "dist");
const staging = join(root, ".build");

await rm(dist, { recursive: true, force: true });
await rm(staging, { recursive: true, force: true });
execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", root, "--noEmit", "false", "--outDir", staging], { stdio: "inherit" });
for (const file of await readdir(staging, { recursive: true })) {
  // The thread is a text in src/generated; its own modules are of no use.
  if (!/\.(js|d\.ts)$/.test(file) || /^worker.(thread|outbox)\./.test(file)) continue;
  const text = await readFile(join(staging, file), "utf8");
  for (const kind of ["m", "c"]) {
    const isCode = file.endsWith(".js");
    const code = isCode && kind === "c" ? (await transform(text, { format: "cjs", target: "es2022", platform: "node" })).code : text;
    const target = join(dist, isCode ? file.replace(/\.js$/, `.${kind}js`) : file.replace(/\.d\.ts$/, `.d.${kind}ts`));
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, code.replace(/((?:from|require\(|import\(|import) ?["'])(\.\.?\/[^"']+)\.js(["'])/g, `$1$2.${kind}js$3`));
  }
}
await rm(staging, { recursive: true, force: true });
