import { ApiError, type Schemas, Sortie, verifyWebhook } from "@sortie/sdk";

export async function use(signal: AbortSignal): Promise<void> {
  const sortie = new Sortie({ url: "https://sortie.example.org", token: () => "token" });
  const accepted: Schemas.RunAccepted = await sortie.runs.create({ image: "x", env: { A: "b", C: { secretRef: "d" } } }, { idempotencyKey: "k", signal });
  const { items, next } = await sortie.runs.list({ state: "Failed", limit: 10 });
  const state: Schemas.State | undefined = items[0]?.state;
  for await (const run of sortie.runs.list({ jobId: "j" })) run.taskId satisfies string;
  const stream = sortie.events.stream({ after: next, types: ["job.*"], signal, onGap: (gap) => gap.oldest satisfies string });
  for await (const event of stream) (event.job?.id ?? "") satisfies string;
  const event: Schemas.Event = await verifyWebhook(new Request("https://x.example.org"), ["whsec_x"]);
  try {
    await sortie.jobs.put("j", { image: "x", schedule: "0 2 * * *" }, { dryRun: true });
  } catch (error) {
    if (error instanceof ApiError && error.code === "NOT_FOUND") error.problems satisfies readonly unknown[];
  }
  // @ts-expect-error: there is no such filter
  await sortie.runs.list({ colour: "red" });
  // @ts-expect-error: an image is a text
  await sortie.runs.create({ image: 1 });
  void [accepted, state, event];
}
