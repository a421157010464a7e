"""What the programs of this folder share. Their arguments are those of a server of Sortie:

    PROGRAM URL TOKEN MODEL MEMBERS

MEMBERS is a JSON object with the members of requests that make the engine call a tool, reason,
follow a schema, or end a JSON object. A program prints the name of each part that has passed, and fails with an
exception.
"""

import json
import sys
import time
import urllib.request

url, token, model = sys.argv[1:4]
members = json.loads(sys.argv[4])
address = url + "/v1"
question = "tell a story"
city = {"type": "object", "properties": {"city": {"enum": ["Oslo", "Rome"]}}, "required": ["city"], "additionalProperties": False}


def reasoning():
    """Returns the prompt and the members of a request whose answer has reasoning."""
    sent = dict(members["reasoning"])
    return sent.pop("prompt", question), sent


def get(path):
    request = urllib.request.Request(url + path, headers={"Authorization": "Bearer " + token})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def cancelled():
    """Waits until the newest task is cancelled and no slot is held."""
    limit = time.monotonic() + 60
    while True:
        task = get("/v1/tasks?limit=1")["tasks"][0]
        if task["state"] == "Cancelled" and get("/v1/pools/pool0/health")["held"] == 0:
            return
        assert time.monotonic() < limit, task
        time.sleep(0.05)


def passed(part):
    print(part, flush=True)
