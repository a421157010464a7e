"""Receives events: 204 for a valid signature, else 401. It prints its address."""

import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status, reason = 204, b""
        try:
            webhook.verify(body, dict(self.headers))
        except WebhookVerificationError as failure:
            status, reason = 401, str(failure).encode()
        self.send_response(status)
        self.end_headers()
        self.wfile.write(reason)

    def log_message(self, *arguments: object) -> None:
        pass


server = HTTPServer(("127.0.0.1", 0), Receiver)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
