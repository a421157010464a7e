"""A receiver of webhooks: prints the type of each event that has a valid signature, once.

WEBHOOK_SECRET is the secret, or several with commas between them. PORT is the port.
"""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sortie import webhooks
from sortie.errors import InvalidSignature

SECRETS = os.environ["WEBHOOK_SECRET"].split(",")
MOST_BYTES = 64 << 10
seen: set[str] = set()  # a real receiver stores it with what it did


class Receiver(BaseHTTPRequestHandler):
    """Answers 204 to each valid webhook, also to a repeated one."""

    timeout = 10

    def do_POST(self) -> None:
        """Receive a webhook."""
        length = self.headers.get("Content-Length") or ""
        if not length.isdecimal():
            self.send_error(411)
            return
        size = int(length[:10])
        if size > MOST_BYTES:
            self.send_error(413)
            return
        try:
            event = webhooks.verify(self.rfile.read(size), self.headers, SECRETS)
        except InvalidSignature:
            self.send_error(401)
            return
        if event.event_id not in seen:
            seen.add(event.event_id)
            print(event.event_type, event.event_id, flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Receiver)
    print("listening on port", server.server_address[1], flush=True)
    server.serve_forever()
