import { TaskFailure, runTask } from "@sortie/sdk/worker";

export const code: Promise<number> = runTask(async (task) => {
  task.progress(50, "half");
  const input: Uint8Array | undefined = await task.input();
  if (!input) task.fail("DATA_QUALITY", "no input");
  task.signal satisfies AbortSignal;
  await task.output({ path: "x" }, { contentType: "text/plain" });
  throw new TaskFailure("INFRASTRUCTURE", "lost", { retryable: true });
});
