"""Plays the OpenAI API of the server at the address in its argument with the official client.

    openai_client.py URL TOKEN MODEL

The model "mock" has embeddings. It fails with an exception; the output has what it did.
"""

import json
import sys

from openai import BadRequestError, NotFoundError, OpenAI

client = OpenAI(base_url=sys.argv[1] + "/v1", api_key=sys.argv[2], max_retries=0)
model = sys.argv[3]
question = [{"role": "user", "content": "tell a story"}]

whole = client.chat.completions.create(model=model, messages=question, max_tokens=6, seed=7)
text = whole.choices[0].message.content
assert text and whole.usage.completion_tokens == 6, whole
parts = client.chat.completions.create(model=model, messages=question, max_tokens=6, seed=7, stream=True)
assert "".join(part.choices[0].delta.content or "" for part in parts) == text
print("chat")

city = {"type": "object", "properties": {"city": {"enum": ["Oslo", "Rome"]}}, "required": ["city"], "additionalProperties": False}
shaped = client.chat.completions.create(
    model=model, messages=question, max_tokens=200, extra_body={"top_k": 20, "min_p": 0.1},
    response_format={"type": "json_schema", "json_schema": {"name": "city", "schema": city, "strict": True}},
)
assert json.loads(shaped.choices[0].message.content)["city"] in ("Oslo", "Rome"), shaped
shaped = client.responses.create(model=model, input="a", text={"format": {"type": "json_schema", "name": "city", "schema": city}})
assert json.loads(shaped.output_text)["city"] in ("Oslo", "Rome"), shaped
print("formats")

if model == "mock":
    tools = [{"type": "function", "function": {"name": "weather", "parameters": city}}]
    with client.chat.completions.stream(model=model, messages=question, tools=tools) as stream:
        stream.until_done()
    message = stream.get_final_completion().choices[0].message
    (call,) = message.tool_calls
    assert call.function.name == "weather" and json.loads(call.function.arguments) == {"city": "Oslo"}, message
    result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
    last = client.chat.completions.create(model=model, messages=[*question, message.to_dict(), result], tools=tools, max_tokens=5)
    assert last.choices[0].message.content, last
    flat = [{"type": "function", "name": "weather", "parameters": city, "strict": True}]
    called = client.responses.create(model=model, input="a", tools=flat)
    output = {"type": "function_call_output", "call_id": called.output[0].call_id, "output": "sunny"}
    last = client.responses.create(model=model, input=[{"role": "user", "content": "a"}, *called.output, output], tools=flat, max_output_tokens=5)
    assert last.output_text, last
    assert len(client.embeddings.create(model=model, input=[[1, 2], [3]], dimensions=4).data[1].embedding) == 4
    print("tools, tokens to embed")

assert client.completions.create(model=model, prompt="tell", max_tokens=3).choices[0].text
if model == "mock":
    assert len(client.embeddings.create(model=model, input=["a", "b"]).data) == 2
assert [each.id for each in client.models.list()] == [model]
assert client.models.retrieve(model).id == model
print("completions, embeddings, models")

response = client.responses.create(model=model, input="tell a story", max_output_tokens=6)
assert response.output_text and response.status == "incomplete", response
assert client.responses.retrieve(response.id).output_text == response.output_text
print("responses")

with client.responses.create(model=model, input="tell a story", max_output_tokens=30, background=True, stream=True) as stream:
    head = []
    for event in stream:
        head.append(event.sequence_number)
        if event.type == "response.created":
            begun = event.response.id
        if event.type == "response.output_text.delta" and len(head) == 9:
            break
rest = list(client.responses.retrieve(begun, stream=True, starting_after=head[-1]))
numbers = head + [event.sequence_number for event in rest]
assert numbers == list(range(4 + 30 + 4)), numbers
assert rest[-1].type == "response.incomplete" and rest[-1].response.status == "incomplete", rest[-1]
print("a response that is resumed")

begun = client.responses.create(model=model, input="tell a story", max_output_tokens=1900, background=True)
assert begun.status in ("queued", "in_progress"), begun
assert client.responses.cancel(begun.id).status == "cancelled"
client.responses.delete(begun.id)
try:
    client.responses.retrieve(begun.id)
except NotFoundError:
    pass
else:
    raise AssertionError("a deleted response was returned")
print("cancel, delete")

both = client.chat.completions.create(model=model, messages=question, n=2, max_tokens=5)
assert [choice.index for choice in both.choices] == [0, 1], both
assert all(choice.message.content and choice.finish_reason for choice in both.choices), both
ends = {}
for chunk in client.chat.completions.create(model=model, messages=question, n=2, max_tokens=5, stream=True):
    for choice in chunk.choices:
        if choice.finish_reason:
            ends[choice.index] = choice.finish_reason
assert sorted(ends) == [0, 1], ends
try:
    client.chat.completions.create(model=model, messages=question, n=17)
except BadRequestError as refused:
    assert refused.param == "n", refused
else:
    raise AssertionError("17 choices were accepted")
print("two choices, refusals")
