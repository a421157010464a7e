// The program of the page that browser.test.mjs opens. It uses the client with the fetch of the
// browser, and reports to its server.
import { ApiError, Sortie, verifyWebhook } from "@sortie/sdk";

const sortie = new Sortie({ url: location.origin, token: "secret" });
const got = {};
try {
  got.created = (await sortie.runs.create({ image: "x" })).taskId;
  got.refused = await sortie.runs.get("none").catch((error) => error instanceof ApiError && error.code);
  got.events = [];
  for await (const event of sortie.events.stream({ after: "earliest" })) {
    if (got.events.push(event.eventId) === 2) break;
  }
  const signed = await (await fetch("/webhook")).json();
  got.webhook = await verifyWebhook(signed, signed.secret);
} catch (error) {
  got.failed = String(error.stack ?? error);
}
await fetch("/result", { method: "POST", body: JSON.stringify(got) });
