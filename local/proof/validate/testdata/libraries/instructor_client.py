"""Plays the OpenAI API with instructor, in its modes TOOLS and JSON. See server.py."""

from typing import Literal

import instructor
import server
from openai import OpenAI
from pydantic import BaseModel


class City(BaseModel):
    """The city of a story."""

    city: Literal["Oslo", "Rome"]


class Anything(BaseModel):
    """An object of any form: a random model chooses no values."""

    answer: str | None = None


official = OpenAI(base_url=server.address, api_key=server.token, max_retries=0)
clients = {mode: instructor.from_openai(official, mode=mode) for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON, instructor.Mode.JSON_SCHEMA)}
asked = [{"role": "user", "content": server.question}]


def create(mode, shape, tokens, **more):
    return clients[mode].chat.completions.create_with_completion(model=server.model, messages=asked, response_model=shape, max_tokens=tokens, seed=7, max_retries=0, **more)


whole = clients[instructor.Mode.TOOLS].chat.completions.create(model=server.model, messages=asked, response_model=None, max_tokens=6, seed=7)
assert whole.choices[0].message.content and whole.usage.completion_tokens == 6, whole
server.passed("text")

shaped, called = create(instructor.Mode.TOOLS, City, 300, extra_body=server.members["tools"])
assert shaped.city in ("Oslo", "Rome") and called.choices[0].message.tool_calls, called
server.passed("tools")

shaped, _ = create(instructor.Mode.JSON_SCHEMA, City, 300, extra_body=server.members["schema"])
assert shaped.city in ("Oslo", "Rome"), shaped
shaped, _ = create(instructor.Mode.JSON, Anything, 300, extra_body=server.members["object"])
assert isinstance(shaped, Anything), shaped
server.passed("structured output")

for mode, more in ((instructor.Mode.JSON_SCHEMA, server.members["schema"]), (instructor.Mode.TOOLS, server.members["tools"])):
    partial = clients[mode].chat.completions.create_partial
    parts = list(partial(model=server.model, messages=asked, response_model=City, max_tokens=300, max_retries=0, seed=7, extra_body=more))
    assert parts[-1].city in ("Oslo", "Rome"), parts
server.passed("stream")

prompt, more = server.reasoning()
asked = [{"role": "user", "content": prompt}]
answer = clients[instructor.Mode.TOOLS].chat.completions.create(model=server.model, messages=asked, response_model=None, max_tokens=60, extra_body=more)
assert answer.choices[0].message.reasoning_content and answer.choices[0].message.content, answer
server.passed("reasoning")

asked = [{"role": "user", "content": server.question}]
story = clients[instructor.Mode.TOOLS].chat.completions.create(model=server.model, messages=asked, response_model=None, max_tokens=1900, stream=True)
next(story), next(story)
story.close()
server.cancelled()
server.passed("cancel")
