"""Plays the OpenAI API with LangChain. See server.py. Its class for chats leaves reasoning out, so
that part uses the responses API."""

from functools import reduce
from operator import add
from typing import Literal

import server
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

@tool
def weather(city: Literal["Oslo", "Rome"]) -> str:
    """Returns the weather of a city."""
    return city + " is sunny"


def chat(tokens, **more):
    return ChatOpenAI(model=server.model, base_url=server.address, api_key=server.token, max_tokens=tokens, max_retries=0, seed=7, **more)


whole = chat(6).invoke(server.question)
assert whole.content and whole.usage_metadata["output_tokens"] == 6, whole
assert whole.response_metadata["finish_reason"] == "length", whole
server.passed("text")

parts = list(chat(6, stream_usage=True).stream(server.question))
assert "".join(part.content for part in parts) == whole.content, parts
assert [part.usage_metadata["output_tokens"] for part in parts if part.usage_metadata] == [6], parts
server.passed("stream")

caller = chat(300, extra_body=server.members["tools"]).bind_tools([weather], tool_choice="weather")
for called in (reduce(add, caller.stream(server.question)), caller.invoke(server.question)):
    assert called.tool_calls and called.tool_calls[0]["name"] == "weather", called
results = [ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"]) for call in called.tool_calls]
last = chat(5).bind_tools([weather], tool_choice="none").invoke([HumanMessage(server.question), called, *results])
assert last.content and not last.tool_calls, last
server.passed("tools")

shaped = chat(300, extra_body=server.members["schema"]).with_structured_output(server.city | {"title": "city"}, method="json_schema", strict=True).invoke(server.question)
assert shaped["city"] in ("Oslo", "Rome"), shaped
server.passed("structured output")

prompt, more = server.reasoning()
responses = ChatOpenAI(
    model=server.model, base_url=server.address, api_key=server.token, max_tokens=60, max_retries=0, use_responses_api=True,
    output_version="responses/v1", extra_body=more,
)
for answer in (responses.invoke(prompt), reduce(add, responses.stream(prompt))):
    kinds = {block["type"] for block in answer.content_blocks}
    assert {"reasoning", "text"} <= kinds, answer
server.passed("reasoning")

story = chat(1900).stream(server.question)
next(story), next(story)
story.close()
server.cancelled()
server.passed("cancel")
