"""Plays the OpenAI API with litellm, without its proxy. See server.py."""

import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no list from the network

import litellm
import server

tools = [{"type": "function", "function": {"name": "weather", "description": "Returns the weather.", "parameters": server.city}}]
asked = [{"role": "user", "content": server.question}]


def chat(tokens, messages, **more):
    return litellm.completion(
        model="openai/" + server.model, api_base=server.address, api_key=server.token, max_tokens=tokens, messages=messages, seed=7, num_retries=0, max_retries=0, **more
    )


whole = chat(6, asked)
text = whole.choices[0].message.content
assert text and whole.usage.completion_tokens == 6 and whole.choices[0].finish_reason == "length", whole
server.passed("text")

parts = list(chat(6, asked, stream=True, stream_options={"include_usage": True}))
assert "".join(part.choices[0].delta.content or "" for part in parts if part.choices) == text, parts
assert parts[-1].usage.completion_tokens == 6, parts[-1]
server.passed("stream")

forced = {"type": "function", "function": {"name": "weather"}}
parts = list(chat(300, asked, tools=tools, tool_choice=forced, stream=True, extra_body=server.members["tools"]))
for called in (litellm.stream_chunk_builder(parts, messages=asked), chat(300, asked, tools=tools, tool_choice=forced, extra_body=server.members["tools"])):
    message = called.choices[0].message
    assert message.tool_calls[0].function.name == "weather", called
    assert json.loads(message.tool_calls[0].function.arguments)["city"] in ("Oslo", "Rome"), called
results = [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in message.tool_calls]
last = chat(5, [*asked, message, *results], tools=tools, tool_choice="none")
assert last.choices[0].message.content, last
server.passed("tools")

schema = {"type": "json_schema", "json_schema": {"name": "city", "schema": server.city, "strict": True}}
shaped = chat(300, asked, response_format=schema, extra_body=server.members["schema"])
assert json.loads(shaped.choices[0].message.content)["city"] in ("Oslo", "Rome"), shaped
server.passed("structured output")

prompt, more = server.reasoning()
asked = [{"role": "user", "content": prompt}]
parts = list(chat(60, asked, stream=True, extra_body=more))
for answer in (litellm.stream_chunk_builder(parts, messages=asked), chat(60, asked, extra_body=more)):
    assert answer.choices[0].message.reasoning_content and answer.choices[0].message.content, answer
server.passed("reasoning")

story = chat(1900, [{"role": "user", "content": server.question}], stream=True)
next(story), next(story)
story.completion_stream.close()
server.cancelled()
server.passed("cancel")
