// Resumes a response in the background whose server is killed, with the official client.
//
//	node openai_resume.cjs URL TOKEN MODEL
//
// It prints "begun" during the response, and "resumed" with the last event once it has all of
// them.
const assert = require("node:assert");
const OpenAI = require("openai");

const [url, apiKey, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL: url + "/v1", apiKey, maxRetries: 0 });
const ends = ["response.completed", "response.incomplete", "response.failed"];

async function main() {
  const numbers = [];
  let id;
  let last;
  while (!ends.includes(last?.type)) {
    try {
      const stream = id
        ? await client.responses.retrieve(id, { stream: true, starting_after: numbers.at(-1) })
        : await client.responses.create({ model, input: "tell a story", max_output_tokens: 1900, background: true, stream: true });
      for await (last of stream) {
        numbers.push(last.sequence_number);
        id ??= last.response?.id;
        if (numbers.length === 9) console.log("begun");
      }
    } catch (failure) {
      // The connection was cut, or the server is not there yet.
      if (failure instanceof OpenAI.APIError && !(failure instanceof OpenAI.APIConnectionError)) throw failure;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  assert.deepStrictEqual(numbers, [...numbers.keys()]);
  console.log("resumed", last.type);
}

main().catch((failure) => {
  console.error(failure);
  process.exit(1);
});
