// Receives webhooks, and prints the type of each event with a valid signature.
import { createServer } from "node:http";
import { verifyWebhook } from "@sortie/sdk";

const seen = new Set(); // a real receiver stores it: an event may come more than once

createServer(async (request, response) => {
  try {
    const parts = [];
    let size = 0;
    for await (const part of request) {
      if ((size += part.length) > 1 << 20) throw new Error("the body is too large");
      parts.push(part);
    }
    const event = await verifyWebhook({ headers: request.headers, body: Buffer.concat(parts) }, process.env.WEBHOOK_SECRET);
    if (!seen.has(event.eventId)) console.log(event.eventType, event.job?.id ?? "");
    seen.add(event.eventId);
    response.writeHead(204).end();
  } catch {
    response.writeHead(401).end();
  }
}).listen(Number(process.env.PORT ?? 9000), "127.0.0.1");
