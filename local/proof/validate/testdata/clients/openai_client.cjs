// Plays the OpenAI API of the server at the address in its argument with the official client,
// and reads the stream of a task with a ticket by an EventSource.
//
//	node openai_client.cjs URL TOKEN MODEL
//
// The model "mock" has embeddings.
const assert = require("node:assert");
const OpenAI = require("openai");
const { EventSource } = require("eventsource");

const [url, apiKey, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL: url + "/v1", apiKey, maxRetries: 0 });
const messages = [{ role: "user", content: "tell a story" }];

async function post(path, body) {
  const headers = { Authorization: "Bearer " + apiKey, "Content-Type": "application/json" };
  const answer = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  assert(answer.ok, `${path}: ${answer.status}`);
  return answer.json();
}

// A stream that has ended is read once: the server answers 204 when the EventSource connects
// again, and it gives up.
function readTask(address) {
  return new Promise((resolve, reject) => {
    const tokens = [];
    let ended = false;
    const source = new EventSource(address);
    source.addEventListener("token", ({ data }) => tokens.push(JSON.parse(data).i));
    source.addEventListener("end", () => (ended = true));
    source.addEventListener("error", (failure) => {
      if (source.readyState !== EventSource.CLOSED) return; // it connects again
      if (ended) resolve(tokens);
      else reject(new Error("the stream was given up: " + failure.code));
    });
  });
}

async function main() {
  const whole = await client.chat.completions.create({ model, messages, max_tokens: 6, seed: 7 });
  let text = "";
  for await (const part of await client.chat.completions.create({ model, messages, max_tokens: 6, seed: 7, stream: true })) {
    text += part.choices[0].delta.content ?? "";
  }
  assert.strictEqual(text, whole.choices[0].message.content);
  if (model === "mock") assert.strictEqual((await client.embeddings.create({ model, input: ["a", "b"] })).data.length, 2);
  assert.strictEqual((await client.models.retrieve(model)).id, model);
  console.log("chat, embeddings, models");

  const city = { type: "object", properties: { city: { enum: ["Oslo", "Rome"] } }, required: ["city"], additionalProperties: false };
  const shaped = await client.chat.completions.create({
    model, messages, max_tokens: 200, top_k: 20, response_format: { type: "json_schema", json_schema: { name: "city", schema: city, strict: true } },
  });
  assert(["Oslo", "Rome"].includes(JSON.parse(shaped.choices[0].message.content).city));
  if (model === "mock") {
    const weather = { name: "weather", parameters: city, parse: JSON.parse, function: ({ city }) => city + " is sunny" };
    const runner = client.chat.completions.runTools({ model, messages, max_tokens: 100, stream: true, tools: [{ type: "function", function: weather }] });
    assert(await runner.finalContent());
    assert.strictEqual(await runner.finalFunctionToolCallResult(), "Oslo is sunny");
  }
  console.log("formats, tools");

  const response = await client.responses.create({ model, input: "tell a story", max_output_tokens: 6 });
  assert.strictEqual((await client.responses.retrieve(response.id)).output_text, response.output_text);
  const numbers = [];
  let id;
  for await (const event of await client.responses.create({ model, input: "tell", max_output_tokens: 30, background: true, stream: true })) {
    numbers.push(event.sequence_number);
    id ??= event.response?.id;
    if (numbers.length === 9) break;
  }
  for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: numbers.at(-1) })) numbers.push(event.sequence_number);
  assert.deepStrictEqual(numbers, [...Array(4 + 30 + 4).keys()]);
  console.log("responses");

  const task = (await post("/v1/tasks", { model_ref: model, prompt: "tell", max_tokens: 7 })).task_id;
  const { ticket } = await post("/v1/events/tickets", { taskId: task });
  const tokens = await readTask(`${url}/v1/tasks/${task}/stream?ticket=${encodeURIComponent(ticket)}`);
  assert.deepStrictEqual(tokens, [...Array(7).keys()]);
  console.log("a task by an EventSource");
}

main().catch((failure) => {
  console.error(failure);
  process.exit(1);
});
