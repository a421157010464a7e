"""Resumes a response in the background whose server is killed, with the official client.

    openai_resume.py URL TOKEN MODEL

It prints "begun" during the response, and "resumed" with the last event once it has all of them.
"""

import sys
import time

from httpx2 import TransportError
from openai import APIConnectionError, OpenAI

client = OpenAI(base_url=sys.argv[1] + "/v1", api_key=sys.argv[2], max_retries=0)
numbers, response, last = [], None, None

while last is None or last.type not in ("response.completed", "response.incomplete", "response.failed"):
    try:
        if response is None:
            stream = client.responses.create(model=sys.argv[3], input="tell a story", max_output_tokens=1900, background=True, stream=True)
        else:
            stream = client.responses.retrieve(response, stream=True, starting_after=numbers[-1])
        for last in stream:
            numbers.append(last.sequence_number)
            if last.type == "response.created":
                response = last.response.id
            if len(numbers) == 9:
                print("begun", flush=True)
    except (APIConnectionError, TransportError):  # until the server is there again
        time.sleep(0.1)
assert numbers == list(range(len(numbers))), numbers
print("resumed", last.type, flush=True)
