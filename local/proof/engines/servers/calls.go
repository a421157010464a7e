package servers

// The tokens that a bias makes a random model choose: a tilde, which begins a call, a brace, which
// ends an empty JSON object, and the end of the text.
const (
	TokenTilde = "129"
	TokenBrace = "128"
	TokenEnd   = "2"
)

// vllmCalls are the arguments with which vLLM reads calls and reasoning. Its grammars apply to the
// reasoning too, and to the arguments of all tools.
var vllmCalls = []string{
	"--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--reasoning-parser", "words", "--structured-outputs-config.enable_in_reasoning", "True",
	"--tool-strict-level", "parameter",
}

// callTemplate is a chat template in which a call of a tool begins and ends with '~', and reasoning
// is between <think> and </think>. llama-server derives its grammars of calls and of reasoning from
// the template, and permits any text before a call.
const callTemplate = `{%- if tools %}
    {{- '<|im_start|>system\nYou may call functions:\n' }}
    {%- for tool in tools %}{{- tool | tojson }}{%- endfor %}
    {{- "\n~{\"name\": <name>, \"arguments\": <object>}~<|im_end|>\n" }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == "user" or message.role == "system" %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role + '\n' }}
        {%- if message.reasoning_content %}{{- '<think>' + message.reasoning_content + '</think>' }}{%- endif %}
        {%- if message.content %}{{- message.content }}{%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}{%- set tool_call = tool_call.function %}{%- endif %}
            {{- '\n~{"name": "' }}{{- tool_call.name }}{{- '", "arguments": ' }}{{- tool_call.arguments | tojson }}{{- '}~' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {{- '<|im_start|>user\n' + message.content + '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}`
