import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Sortie } from "@sortie/sdk";

const operations = JSON.parse(await readFile(new URL("./testdata/operations.json", import.meta.url), "utf8"));

// One call of each method. Streams are read to their end.
const calls = {
  export: (c) => c.exports.create("mods", { pi: "p" }),
  callback: (c) => c.workers.callback("x", "t", {}),
  started: (c) => c.workers.started("x", "t", {}),
  heartbeat: (c) => c.workers.heartbeat("x", "t", {}),
  completed: (c) => c.workers.completed("x", "t", {}),
  sendLog: (c) => c.workers.sendLog("x", "t", {}),
  status: (c) => c.exports.status("x"),
  download: (c) => c.outputs.download("x"),
  describeOutput: (c) => c.outputs.describe("x"),
  deleteOutput: (c) => c.outputs.delete("x"),
  listTasks: (c) => c.tasks.list(),
  createTask: (c) => c.tasks.create({}),
  createChatCompletion: (c) => c.openai.chat({}),
  createCompletion: (c) => c.openai.complete({}),
  createEmbedding: (c) => c.openai.embed({}),
  createRerank: (c) => c.openai.rerank({}),
  listServedModels: (c) => c.openai.models(),
  createResponse: (c) => c.openai.respond({}),
  getResponse: (c) => c.openai.response("x"),
  deleteResponse: (c) => c.openai.deleteResponse("x"),
  cancelResponse: (c) => c.openai.cancelResponse("x"),
  getServedModel: (c) => c.openai.model("x"),
  task: (c) => c.tasks.get("x"),
  taskEvents: (c) => c.tasks.events("x"),
  taskLogs: (c) => c.tasks.logs("x"),
  streamTask: (c) => first(c.tasks.stream("x")),
  session: (c) => c.sessions.get("x"),
  deleteSession: (c) => c.sessions.delete("x"),
  budget: (c) => c.budgets.get("x"),
  putBudget: (c) => c.budgets.put("x", {}),
  usage: (c) => c.budgets.usage(),
  cancelTask: (c) => c.tasks.cancel("x"),
  retryTask: (c) => c.tasks.retry("x"),
  labelTask: (c) => c.tasks.label("x", { labels: { a: "b" } }),
  listRuns: (c) => c.runs.list(),
  createRun: (c) => c.runs.create({ image: "x" }),
  cancelRuns: (c) => c.runs.cancelMany({ filter: {} }),
  retryRuns: (c) => c.runs.retryMany({ filter: {} }),
  labelRuns: (c) => c.runs.labelMany({ filter: {}, labels: {} }),
  labelRun: (c) => c.runs.label("x", { labels: { a: null } }),
  getRun: (c) => c.runs.get("x"),
  pinRun: (c) => c.runs.pin("x"),
  unpinRun: (c) => c.runs.unpin("x"),
  redeliverActions: (c) => c.runs.redeliver("x"),
  explainRun: (c) => c.runs.explain("x"),
  activity: (c) => c.runs.activity(),
  planRun: (c) => c.runs.plan({ image: "x" }),
  runUpdates: (c) => c.runs.updates("x"),
  listChildren: (c) => c.runs.children("x"),
  cancelRun: (c) => c.runs.cancel("x"),
  retryRun: (c) => c.runs.retry("x"),
  listJobs: (c) => c.jobs.list(),
  putJob: (c) => c.jobs.put("x", {}),
  job: (c) => c.jobs.get("x"),
  patchJob: (c) => c.jobs.patch("x", {}),
  deleteJob: (c) => c.jobs.delete("x"),
  jobVersion: (c) => c.jobs.version("x", 1),
  pauseJob: (c) => c.jobs.pause("x"),
  resumeJob: (c) => c.jobs.resume("x"),
  clearJob: (c) => c.jobs.clear("x"),
  explainJob: (c) => c.jobs.explain("x"),
  sendJobEvents: (c) => c.jobs.sendEvents("x", []),
  runJob: (c) => c.jobs.run("x"),
  listJobRuns: (c) => c.jobs.runs("x"),
  capabilities: (c) => c.pools.capabilities(),
  listPools: (c) => c.pools.list(),
  putPool: (c) => c.pools.put("x", {}),
  pool: (c) => c.pools.get("x"),
  deletePool: (c) => c.pools.delete("x"),
  drainPool: (c) => c.pools.drain("x"),
  resumePool: (c) => c.pools.resume("x"),
  reloadPool: (c) => c.pools.reload("x", {}),
  poolHealth: (c) => c.pools.health("x"),
  poolGuests: (c) => c.pools.guests("x", { day: "2026-11-29" }),
  listEvents: (c) => c.events.list(),
  createEventTicket: (c) => c.events.ticket(),
  replayEvents: (c) => c.events.replay({}),
  streamEvents: (c) => first(c.events.stream()),
  jobSchema: (c) => c.jobs.schema(),
  keys: (c) => c.server.keys(),
  health: (c) => c.server.health(),
  ready: (c) => c.server.ready(),
  createArtifact: (c) => c.artifacts.create({ kind: "note", content: {} }),
  listArtifacts: (c) => c.artifacts.list(),
  artifact: (c) => c.artifacts.get("x"),
  createModel: (c) => c.models.create({}),
  listModels: (c) => c.models.list(),
  model: (c) => c.models.get("x"),
  patchModel: (c) => c.models.patch("x", {}),
  deleteModel: (c) => c.models.delete("x"),
  verifyModel: (c) => c.models.verify("x"),
  setModelState: (c) => c.models.setState("x", {}),
  createWebhook: (c) => c.webhooks.create({ url: "x" }),
  listWebhooks: (c) => c.webhooks.list(),
  webhook: (c) => c.webhooks.get("x"),
  patchWebhook: (c) => c.webhooks.patch("x", {}),
  deleteWebhook: (c) => c.webhooks.delete("x"),
  rotateWebhook: (c) => c.webhooks.rotate("x"),
  testWebhook: (c) => c.webhooks.test("x"),
  webhookDeliveries: (c) => c.webhooks.deliveries("x"),
  redeliverWebhook: (c) => c.webhooks.redeliver("x", {}),
  reportMachines: (c) => c.server.reportMachines({}),
  metrics: (c) => c.server.metrics(),
  openapi: (c) => c.server.openapi(),
};

async function first(stream) {
  for await (const one of stream) return one;
}

const fillings = { version: "1", format: "mods" };

for (const { operationId, method, path } of operations) {
  test(`operation ${operationId}`, async () => {
    const want = path.replace(/\{(\w+)\}/g, (_, name) => fillings[name] ?? "x");
    if (operationId === "connectEvents") {
      let opened;
      class Socket {
        constructor(url) {
          opened = url;
        }
      }
      const fetch = async () => new Response('{"ticket":"secret"}', { status: 201 });
      await new Sortie({ url: "http://sortie.test", token: "t", fetch }).events.connect({ WebSocket: Socket, types: ["job.*"] });
      assert.equal(opened, "ws://sortie.test/v1/events/ws?types=job.*&ticket=secret");
      return;
    }
    const seen = [];
    const fetch = async (url, init) => {
      seen.push(`${init.method} ${new URL(url).pathname}`);
      const isStream = (init.headers.accept ?? "").includes("event-stream");
      return new Response(isStream ? 'id: 1\nevent: end\ndata: {"eventType":"x"}\n\n' : "{}", { status: 200 });
    };
    assert.ok(calls[operationId], `no method for ${operationId}`);
    await calls[operationId](new Sortie({ url: "http://sortie.test", token: "t", fetch }));
    assert.deepEqual(seen, [`${method} ${want}`]);
  });
}

test("no call is for an unknown operation", () => {
  const known = new Set(operations.map((one) => one.operationId));
  assert.deepEqual(Object.keys(calls).filter((name) => !known.has(name)), []);
});
