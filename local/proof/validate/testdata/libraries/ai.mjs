// Plays the OpenAI API with the AI SDK of Vercel. Its arguments are those of server.py.
import assert from "node:assert";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// Modules are not searched in NODE_PATH, so their paths are looked up.
const require = createRequire(process.env.LIBRARIES + "/package.json");
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { generateText, streamText, tool, Output, jsonSchema } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");

const [url, apiKey, name] = process.argv.slice(2);
const members = JSON.parse(process.argv[5]);
const provider = createOpenAICompatible({ name: "sortie", baseURL: url + "/v1", apiKey, includeUsage: true, supportsStructuredOutputs: true });
const prompt = "tell a story";
const city = jsonSchema({ type: "object", properties: { city: { enum: ["Oslo", "Rome"] } }, required: ["city"], additionalProperties: false });

// request returns the arguments of a call. more are members of the request that the SDK does not know.
const request = (maxOutputTokens, more = {}) => ({
  model: provider(name), prompt, seed: 7, maxOutputTokens, maxRetries: 0, providerOptions: { sortie: more },
});
const passed = (part) => console.log(part);

const whole = await generateText(request(6));
assert(whole.text && whole.usage.outputTokens === 6 && whole.finishReason === "length");
passed("text");

const stream = streamText(request(6));
let text = "";
for await (const part of stream.textStream) text += part;
assert.strictEqual(text, whole.text);
assert.strictEqual((await stream.usage).outputTokens, 6);
passed("stream");

const weather = tool({ description: "Returns the weather.", inputSchema: city, execute: ({ city }) => city + " is sunny" });
const tools = { weather };
const toolChoice = { type: "tool", toolName: "weather" };
const steps = streamText({ ...request(300, members.tools), tools, toolChoice });
await steps.consumeStream();
const called = await generateText({ ...request(300, members.tools), tools, toolChoice });
for (const results of [await steps.toolResults, called.toolResults]) {
  assert(["Oslo is sunny", "Rome is sunny"].includes(results[0].output), JSON.stringify(results));
}
const { prompt: asked, ...rest } = request(5);
const last = await generateText({ ...rest, tools, toolChoice: "none", messages: [{ role: "user", content: asked }, ...called.response.messages] });
assert(last.text);
passed("tools");

const shaped = await generateText({ ...request(300, members.schema), output: Output.object({ schema: city }) });
assert(["Oslo", "Rome"].includes(shaped.output.city));
passed("structured output");

const { prompt: reasons = prompt, ...more } = members.reasoning;
const thoughtful = { ...request(60, more), prompt: reasons };
const thought = streamText(thoughtful);
await thought.consumeStream();
const answer = await generateText(thoughtful);
for (const [reasoning, text] of [[await thought.reasoningText, await thought.text], [answer.reasoningText, answer.text]]) assert(reasoning && text);
passed("reasoning");

const stop = new AbortController();
let parts = 0;
for await (const _ of streamText({ ...request(1900), abortSignal: stop.signal }).textStream) if (++parts === 2) stop.abort();
const get = async (path) => (await fetch(url + path, { headers: { Authorization: "Bearer " + apiKey } })).json();
for (const limit = Date.now() + 60000; ; await new Promise((done) => setTimeout(done, 50))) {
  const task = (await get("/v1/tasks?limit=1")).tasks[0];
  if (task.state === "Cancelled" && (await get("/v1/pools/pool0/health")).held === 0) break;
  assert(Date.now() < limit, JSON.stringify(task));
}
passed("cancel");
