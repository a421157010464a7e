"""Plays the OpenAI API with LlamaIndex. See server.py. Closing one of its streams does not close the
request; the end of the event loop does."""

import asyncio
from typing import Literal

import server
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel


class City(BaseModel):
    """The city of a story."""

    city: Literal["Oslo", "Rome"]


def weather(city: Literal["Oslo", "Rome"]) -> str:
    """Returns the weather of a city."""
    return city + " is sunny"


def chat(tokens, **more):
    return OpenAILike(
        model=server.model, api_base=server.address, api_key=server.token, max_tokens=tokens, max_retries=0, is_chat_model=True, is_function_calling_model=True,
        should_use_structured_outputs=True, additional_kwargs={"seed": 7, "extra_body": more},
    )


asked = [ChatMessage(role="user", content=server.question)]
whole = chat(6).chat(asked)
assert whole.message.content and whole.raw.usage.completion_tokens == 6, whole
assert OpenAILike(model=server.model, api_base=server.address, api_key=server.token, max_tokens=6).complete(server.question).text
server.passed("text")

assert "".join(part.delta or "" for part in chat(6).stream_chat(asked)) == whole.message.content
server.passed("stream")

tool = FunctionTool.from_defaults(weather)
caller = chat(300, **server.members["tools"])
for called in (caller.chat_with_tools([tool], chat_history=asked, tool_required=True), list(caller.stream_chat_with_tools([tool], chat_history=asked, tool_required=True))[-1]):
    calls = caller.get_tool_calls_from_response(called)
    assert calls[0].tool_name == "weather" and calls[0].tool_kwargs["city"] in ("Oslo", "Rome"), called
results = [ChatMessage(role="tool", content=str(tool.call(**call.tool_kwargs)), additional_kwargs={"tool_call_id": call.tool_id}) for call in calls]
last = chat(5).chat_with_tools([tool], chat_history=[*asked, called.message, *results], tool_choice="none")
assert last.message.content, last
server.passed("tools")

shaped = chat(300, **server.members["schema"]).as_structured_llm(City).chat(asked).raw
assert shaped.city in ("Oslo", "Rome"), shaped
server.passed("structured output")

prompt, more = server.reasoning()
asked = [ChatMessage(role="user", content=prompt)]
for answer in (chat(60, **more).chat(asked), list(chat(60, **more).stream_chat(asked))[-1]):
    kinds = {block.block_type for block in answer.message.blocks}
    assert {"thinking", "text"} <= kinds, answer
server.passed("reasoning")



async def leave():
    story = await chat(1900).astream_chat([ChatMessage(role="user", content=server.question)])
    await anext(story), await anext(story)


asyncio.run(leave())
server.cancelled()
server.passed("cancel")
