import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

// The report of a task whose deadline is near is tried for a minute more. It is tried once more at
// the end of that, although the server asks for a longer delay.
test("a long Retry-After does not end the delivery of completed", { timeout: 120_000 }, async () => {
  let reports = 0;
  const server = createServer((request, response) => {
    request.resume();
    const busy = request.url.endsWith("/completed") && ++reports === 1;
    response.writeHead(busy ? 503 : 200, { "Content-Type": "application/json", ...(busy ? { "Retry-After": "300" } : {}) });
    response.end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const envelope = {
    taskId: "task_1", runId: "run_1", tenantId: "t", workspaceId: "w", attempt: 1, callbackBaseUrl: `http://127.0.0.1:${server.address().port}`,
    taskToken: "token", tokenExpiresAt: "2100-01-01T00:00:00Z", heartbeatIntervalMs: 5000, heartbeatTimeoutMs: 20_000, cancelGracePeriodMs: 2000,
    deadline: new Date(Date.now() + 30_000).toISOString(),
  };
  const program = 'import { runTask } from "@sortie/sdk/worker"; process.exit(await runTask(() => {}));';
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    cwd: new URL("./", import.meta.url), env: { PATH: process.env.PATH, TASK_ENVELOPE: JSON.stringify(envelope) }, stdio: "inherit",
  });
  const [code] = await once(child, "exit");
  server.close();
  assert.deepEqual([code, reports], [0, 2]);
});
