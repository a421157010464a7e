// A worker that never yields to the event loop, but asks whether it has to stop.
import { runTask } from "@sortie/sdk/worker";

process.exit(await runTask((task) => {
  const begun = Date.now();
  while (Date.now() - begun < 4000) {
    task.check();
    task.progress((Date.now() - begun) / 40, "busy");
  }
}));
