"""The valid requests that the server may refuse with 400, each with its reason.

The keys are an operation and the field that the answer names, or its code if it
names none. The document cannot express these conditions.
"""

import os

import schemathesis
from schemathesis.generation import GenerationMode

CURSOR = "a cursor is opaque: the server accepts only those that it issued for this list"
POLICY = "members of a policy must agree with one another"
STATE = "the output is not stored yet, or the task has none"
TIME = "schemathesis sends an empty text where a time may also be null"
ANY = "*"
OUTPUT = "an output has a key below the task's own prefix, a file name and a size, or none of them"
FORM = "the document describes the form of a definition, not the ranges and grammars of its texts"
PATCH = "the document describes the definition that results from a patch, not the patch"
AHEAD = "a time must be ahead of now, by 30 days at most"

TYPES = "a pattern must match a known type of events"
CODE = "the codes of faults are an open list for clients, and the server knows all of them"
EITHER = "a position and a range exclude each other, and one of them is needed"
SIGNATURE = "a signature is a DSSE envelope, and a signed model has a signature and a digest"
WORK = "a workload has a prompt or messages, or an input, and a query for a rerank; the texts are UTF-8"
PLACE = "the id of an event is one that the stream sent"
UNSUPPORTED = "the engines do not support what the member asks for"
CHANGE = "a retry takes the changes of the kind of its run"
SELECTOR = "a selector of labels has a grammar"
LABELS = "labels have a limit in bytes"
ORDER = "the order of the next firings has one page without a filter"
RANGE = "a range of times must not be empty"

CALLS = "a message has a content or calls, a result the id of its call, and arguments are JSON"
TOOLS = "a chosen function is one of the tools"
SCHEMA = "a schema has at most 32 levels, and its keywords have the values of JSON Schema"
CHAT = "tools, an effort and arguments of a template belong to messages"
NULL = "a task has no null"
EXTRAS = "the engine has a list of members"

REASONS = {
    ("listTasks", "cursor"): CURSOR,
    ("listRuns", "cursor"): CURSOR,
    ("listTasks", "faultCode"): CODE,
    ("listRuns", "faultCode"): CODE,
    ("listTasks", "createdBefore"): RANGE,
    ("listRuns", "createdBefore"): RANGE,
    ("cancelRuns", "filter"): CODE,
    ("cancelRuns", "cursor"): CURSOR,
    ("retryRuns", "filter"): CODE,
    ("retryRuns", "cursor"): CURSOR,
    ("listTasks", "label"): SELECTOR,
    ("listRuns", "label"): SELECTOR,
    ("listJobs", "label"): SELECTOR,
    ("listJobs", "order"): ORDER,
    ("listJobRuns", "label"): SELECTOR,
    ("labelRuns", "filter"): CODE,
    ("labelRuns", "cursor"): CURSOR,
    ("labelRuns", "labels"): LABELS,
    ("labelRun", "labels"): LABELS,
    ("labelTask", "labels"): LABELS,
    ("runJob", "labels"): LABELS,
    ("retryTask", ANY): CHANGE,
    ("retryRun", ANY): CHANGE,
    ("redeliverActions", "action"): "an action has failed before it is sent again",
    ("planRun", ANY): FORM,
    ("listJobs", "cursor"): CURSOR,
    ("listJobRuns", "cursor"): CURSOR,
    ("listChildren", "cursor"): CURSOR,
    ("runJob", "scheduledAt"): AHEAD,
    ("usage", "cursor"): CURSOR,
    ("usage", "by"): "a list has the known dimensions, each once",
    ("usage", "from"): RANGE,
    ("putBudget", "scope"): "the limit of a key is that of its token",
    ("sendJobEvents", ANY): "attributes of CloudEvents have grammars, and the binary mode has them in headers",
    ("createRun", ANY): FORM,
    ("listEvents", "types"): TYPES,
    ("listEvents", "label"): SELECTOR,
    ("listEvents", "after"): "a position has at most 63 bits",
    ("createEventTicket", "types"): TYPES,
    ("createEventTicket", "label"): SELECTOR,
    ("replayEvents", "filter"): TYPES,
    ("replayEvents", "from"): "a range begins and ends at a cursor of this stream, a time or a name",
    ("replayEvents", "to"): "a range begins and ends at a cursor of this stream, a time or a name",
    ("listWebhooks", "cursor"): CURSOR,
    ("createChatCompletion", "top_logprobs"): "needs logprobs",
    ("createTask", "top_logprobs"): "needs logprobs",
    ("createCompletion", "echo"): UNSUPPORTED,
    ("createChatCompletion", "UNTRUSTED_ARTIFACT"): "no trusted key has signed the model",
    ("createCompletion", "UNTRUSTED_ARTIFACT"): "no trusted key has signed the model",
    ("createEmbedding", "UNTRUSTED_ARTIFACT"): "no trusted key has signed the model",
    ("createRerank", "UNTRUSTED_ARTIFACT"): "no trusted key has signed the model",
    ("createResponse", "UNTRUSTED_ARTIFACT"): "no trusted key has signed the model",
    ("createResponse", "input"): "items of reasoning alone are no message",
    ("createResponse", "store"): "a response in the background is stored",
    ("createResponse", "previous_response_id"): "only a stored response that is complete can be continued",
    ("createResponse", "truncation"): UNSUPPORTED,
    ("createResponse", "metadata"): "its limits are in bytes",
    ("getResponse", "starting_after"): "only a stream begins behind a number",
    ("cancelResponse", "response_id"): "only a response in the background can be cancelled",
    ("listArtifacts", "cursor"): CURSOR,
    ("createArtifact", "INVALID_REQUEST"): "a JSON document describes itself, without a query, and is I-JSON",
    ("createArtifact", "kind"): "bytes have their kind in the query",
    ("createArtifact", "tags"): "a tag is given once",
    ("createArtifact", "metadata"): "metadata have a size limit in bytes",
    ("listModels", "cursor"): CURSOR,
    ("createChatCompletion", "tool_choice"): TOOLS,
    ("createChatCompletion", "tools"): SCHEMA,
    ("createResponse", "tool_choice"): TOOLS,
    ("createResponse", "tools"): SCHEMA,
    ("createTask", "tool_choice"): TOOLS,
    ("createTask", "tools"): SCHEMA,
    ("createChatCompletion", "messages"): CALLS,
    ("createChatCompletion", "response_format"): SCHEMA,
    ("createChatCompletion", "chat_template_kwargs"): SCHEMA,
    ("createCompletion", "response_format"): SCHEMA,
    ("createResponse", "text"): SCHEMA,
    ("createTask", "response_format"): SCHEMA,
    ("createTask", "chat_template_kwargs"): CHAT,
    ("createTask", "reasoning_effort"): CHAT,
    ("createTask", "logit_bias"): NULL,
    ("createTask", "input_tokens"): WORK,
    ("createTask", "dimensions"): WORK,
    ("createTask", "engine_options"): EXTRAS,
    ("createTask", "prompt"): WORK,
    ("createTask", "messages"): WORK,
    ("createTask", "input"): WORK,
    ("createTask", "query"): WORK,
    ("createTask", "workload"): WORK,
    ("createTask", "UNTRUSTED_ARTIFACT"): "no trusted key has signed the model",
    ("streamTask", "after"): PLACE,
    ("streamTask", "Last-Event-ID"): PLACE,
    ("createModel", "tokenizer"): "a name has printable characters",
    ("createModel", "engine_model"): "a name has printable characters",
    ("createModel", "source"): "a source is a URI without a password",
    ("createModel", "price"): "a cached token costs at most as much as another one of the prompt",
    ("createModel", "shadow"): "copies name other models, once, and are at most 100 percent in all",
    ("createModel", "signature"): SIGNATURE,
    ("createModel", "signed"): SIGNATURE,
    ("createModel", "digest"): SIGNATURE,
    ("createModel", "UNTRUSTED_ARTIFACT"): "no trusted key has signed the model",
    ("patchModel", ANY): PATCH,
    ("verifyModel", "UNTRUSTED_ARTIFACT"): "no trusted key has signed the model",
    ("webhookDeliveries", "cursor"): CURSOR,
    ("createWebhook", "eventTypes"): TYPES,
    ("createWebhook", "label"): SELECTOR,
    ("patchWebhook", ANY): PATCH,
    ("redeliverWebhook", "position"): EITHER,
    ("redeliverWebhook", "from"): EITHER,
    ("redeliverWebhook", "to"): EITHER,
    ("redeliverWebhook", "failedSince"): "a time excludes positions, and is in the past",
    ("export", "webhook"): TYPES,
    ("putPool", "runner"): "a deployment has some of the runners",
    ("putPool", "settings"): "the settings are those of the pool's runner",
    ("putPool", "warm"): "only a runner with machines that stop has warm machines",
    ("putPool", "engine"): "an engine has addresses that the deployment permits, and no machines",
    ("putPool", "limit"): "the limit of an engine is the sum of its slots",
    ("putPool", "sharing"): "a pool with an engine of its own offers it, and to other tenants",
    ("putPool", "from"): "a pool of another tenant has the engine and the settings of that pool",
    ("putPool", "fallback"): "a fallback names another pool, once",
    ("putJob", ANY): FORM,
    ("patchJob", ANY): PATCH,
    ("export", "policy"): POLICY,
    ("download", "NOT_READY"): STATE,
    ("describeOutput", "NOT_READY"): STATE,
    ("deleteOutput", "NOT_READY"): STATE,
    ("started", "startedAt"): TIME,
    ("heartbeat", "heartbeatAt"): TIME,
    ("completed", "completedAt"): TIME,
    ("completed", "output"): OUTPUT,
    ("callback", "output_r2_key"): OUTPUT,
    ("callback", "output_file_name"): OUTPUT,
    ("callback", "output_file_size"): OUTPUT,
}

# The members of an inference request that some workloads and engines do not have.
FEATURES = (
    "messages", "tools", "tool_choice", "parallel_tool_calls", "response_format", "frequency_penalty", "presence_penalty", "repetition_penalty", "min_p",
    "top_k", "logit_bias", "reasoning_effort", "chat_template_kwargs", "dimensions", "input_tokens", "logprobs",
    "n", "prompts", "best_of", "top_logprobs", "include", "images",
)
# The answers of a request, and their probabilities, have a limit together.
TOGETHER = ("max_tokens", "max_completion_tokens", "max_output_tokens")
for operation in ("createTask", "createChatCompletion", "createCompletion", "createEmbedding", "createRerank", "createResponse"):
    for feature in FEATURES:
        REASONS.setdefault((operation, feature), UNSUPPORTED)
    for limit in TOGETHER:
        REASONS.setdefault((operation, limit), "all answers with their probabilities have a limit")
    for deadline in ("deadline_ms", "X-Deadline-Ms"):
        REASONS.setdefault((operation, deadline), "a caller waits for an hour at most")


# A request with a shorter deadline in ms may not be answered in time (504), or is, on a fast machine.
DEADLINE = "X-Deadline-Ms"
LEAST_DEADLINE = 60_000

# The members of an inference request that name its model, and that limit its tokens.
MODEL = {"createTask": "model_ref", "createChatCompletion": "model", "createCompletion": "model", "createEmbedding": "model", "createRerank": "model", "createResponse": "model"}
LIMIT = {
    "createTask": "max_tokens",
    "createChatCompletion": "max_completion_tokens",
    "createCompletion": "max_tokens",
    "createResponse": "max_output_tokens",
}


@schemathesis.hook
def before_call(ctx, case, kwargs) -> None:
    """Lets valid requests be answered: they have time, name the model of the server, and have short answers."""
    deadline = str((case.headers or {}).get(DEADLINE, ""))
    if deadline.isdecimal() and int(deadline) < LEAST_DEADLINE:
        del case.headers[DEADLINE]
    if isinstance(case.body, dict) and type(ms := case.body.get("deadline_ms")) is int and 0 < ms < LEAST_DEADLINE:
        del case.body["deadline_ms"]
    served = os.environ.get("SERVED_MODEL")
    operation = case.operation.definition.raw.get("operationId")
    if not served or operation not in MODEL or not isinstance(case.body, dict):
        return
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    case.body[MODEL[operation]] = served
    if operation in LIMIT:
        case.body[LIMIT[operation]] = 2
    for refused in ("engine", "expected_tokens"):  # another engine has no pool, and the queue has a limit
        case.body.pop(refused, None)


@schemathesis.check
def refused_with_a_listed_reason(ctx, response, case) -> None:
    if response.status_code != 400 or case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    problem = response.json() if response.content else {}  # an answer to HEAD has no body
    operation = case.operation.definition.raw["operationId"]
    if "error" in problem and isinstance(problem["error"], dict):  # the form of the OpenAI API
        error = problem["error"]
        problem = {"field": error["param"], "detail": error["message"]} if error["param"] else {"code": error["code"].upper(), "detail": error["message"]}
    cause = problem.get("field", problem.get("code", "NOT_READY")).split(".")[0]
    if operation == "createTask" and problem.get("detail", "").startswith("unknown member"):
        cause = "engine_options"
    if (operation, cause) not in REASONS and (operation, ANY) not in REASONS:
        raise AssertionError(f"{operation} refused a valid request: {problem.get('detail')} (field or code {cause})")
