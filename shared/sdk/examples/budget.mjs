// Asks questions with OpenAI's own client until the budget is used up. Limit the budget first:
//   sortie budgets set tenant --tokens 400
// Sortie reserves max_tokens when it accepts a question, and charges what the answer used.
import OpenAI from "openai";
import { Sortie } from "@sortie/sdk";

const url = process.env.SORTIE_URL ?? "http://127.0.0.1:8080";
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: process.env.SORTIE_TOKEN });
const sortie = new Sortie({ url }); // with SORTIE_TOKEN

for (let question = 1; ; question++) {
  try {
    const answer = await openai.chat.completions.create({
      model: process.env.MODEL ?? "mock", max_tokens: 100, messages: [{ role: "user", content: `Question ${question}` }],
    });
    console.log(`answer ${question}: ${answer.usage?.total_tokens} tokens`);
  } catch (error) {
    // 429 with X-Should-Retry: false: OpenAI's client does not repeat it.
    if (!(error instanceof OpenAI.RateLimitError)) throw error;
    console.log(`question ${question} refused: ${error.message}`);
    break;
  }
}
const { limit, spent } = await sortie.budgets.get("tenant");
console.log(`spent ${spent.tokens} of ${limit.tokens} tokens`);
