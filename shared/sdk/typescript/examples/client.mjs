// Submits a run, prints its output while it runs, and fetches the file that it wrote.
import { Sortie } from "@sortie/sdk";

const sortie = new Sortie(); // SORTIE_URL and SORTIE_TOKEN of the environment
const { taskId } = await sortie.runs.create({
  image: "wordcount",
  completion: "callback", // the worker reports its end
  input: btoa("a rose is a rose is a rose"),
});

for await (const line of sortie.tasks.followLogs(taskId)) {
  if (line.data) process.stdout.write(atob(line.data));
}
const run = await sortie.runs.wait(taskId);
console.log(run.state);

const output = await sortie.outputs.download(taskId);
console.log(await output.json());
