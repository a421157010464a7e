// Receives events: 204 for a valid signature, else 401. It prints its address.
const http = require("node:http");
const { Webhook, WebhookVerificationError } = require("standardwebhooks");

const webhook = new Webhook(process.env.WEBHOOK_SECRET);
const server = http.createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray());
  try {
    webhook.verify(body, request.headers);
    response.writeHead(204).end();
  } catch (failure) {
    response.writeHead(failure instanceof WebhookVerificationError ? 401 : 500).end(failure.message);
  }
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
