// A worker that counts the words of its input. It reports its progress, stops when the
// task is cancelled, and stores the counts as JSON.
import { setTimeout as sleep } from "node:timers/promises";
import { runTask } from "@sortie/sdk/worker";

const rounds = 40;
const sample = "to be or not to be that is the question";

const code = await runTask(async (task) => {
  task.phase("reading");
  const input = await task.input();
  const words = (input ? new TextDecoder().decode(input) : sample).toLowerCase().match(/\p{L}+/gu) ?? [];
  if (words.length === 0) task.fail("DATA_QUALITY", "the input has no words");

  task.phase("counting");
  const counts = {};
  for (let round = 0; round < rounds; round++) {
    task.check(); // throws after a cancel request
    const from = Math.floor((words.length * round) / rounds);
    const to = Math.floor((words.length * (round + 1)) / rounds);
    for (const word of words.slice(from, to)) counts[word] = (counts[word] ?? 0) + 1;
    task.partialProgress = { words: to };
    task.progress((100 * (round + 1)) / rounds, `${to} of ${words.length} words`);
    if (to > from) task.log(`counted ${to} words`);
    await sleep(80, undefined, { signal: task.signal }); // the real work would take this time
  }

  task.phase("storing");
  task.metrics.words = words.length;
  await task.output(JSON.stringify(counts), { contentType: "application/json", fileName: "counts.json" });
}, { sendOutput: true });
process.exit(code);
