package inference

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Limits of the options of a request.
const (
	// Tools is the maximum number of tools, Biases that of entries of logit_bias.
	Tools  = 128
	Biases = 1024
	// TopLogprobs is the maximum number of the most likely tokens in the place of a token.
	TopLogprobs = 20
	// Logprobs is the maximum number of probabilities of a request: its tokens with TopLogprobs each.
	// They are about 20 MB of JSON.
	Logprobs = 200_000
	// Nesting is the maximum nesting of a JSON value in a request. Engines handle schemas
	// recursively.
	Nesting = 32
)

const fieldFormat = "response_format"

// ToolName matches the names of tools and of schemas.
var ToolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// efforts are the values of reasoning_effort.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh"}

func invalidParams(field, format string, args ...any) error {
	f := fault.New(fault.InvalidParams, format, args...)
	f.Field = field
	return f
}

// checkMessages returns the fault of the first invalid message.
func checkMessages(of []port.Message) error {
	for i, m := range of {
		at := fmt.Sprintf("messages.%d.", i)
		switch {
		case !slices.Contains([]string{"system", "user", "assistant", "tool"}, m.Role):
			return fault.Invalid(at+"role", "unknown role %.40q, want system, user, assistant or tool", m.Role)
		case !utf8.ValidString(m.Content):
			return fault.Invalid(at+"content", "no UTF-8")
		case m.Role == "tool" && m.ToolCallID == "":
			return fault.Invalid(at+"tool_call_id", "missing id, want that of the call that the message answers")
		case m.Role != "tool" && m.ToolCallID != "":
			return fault.Invalid(at+"tool_call_id", "a message of the role %s answers no call, want the role tool", m.Role)
		case m.Role != "assistant" && len(m.ToolCalls) > 0:
			return fault.Invalid(at+"tool_calls", "a message of the role %s calls no tool, want the role assistant", m.Role)
		case len(m.ToolCalls) > Tools:
			return fault.Invalid(at+"tool_calls", "%d calls, want at most %d", len(m.ToolCalls), Tools)
		}
		if err := checkParts(at, m); err != nil {
			return err
		}
		for n, c := range m.ToolCalls {
			if err := checkCall(fmt.Sprintf("%stool_calls.%d.", at, n), c); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkCall returns the fault of a call in a message. Engines parse the arguments.
func checkCall(at string, c port.ToolCall) error {
	switch {
	case c.ID == "":
		return fault.Invalid(at+"id", "missing id of a call")
	case !ToolName.MatchString(c.Name):
		return fault.Invalid(at+"function.name", "malformed name %.80q, want 1 to 64 letters, digits, '_', '-' and '.'", c.Name)
	case c.Arguments != "" && !json.Valid([]byte(c.Arguments)):
		return invalidParams(at+"function.arguments", "the arguments are no JSON, want the text of a JSON object")
	case nesting([]byte(c.Arguments)) > Nesting:
		return invalidParams(at+"function.arguments", "more than %d levels of nesting", Nesting)
	}
	return nil
}

// checkOptions returns the fault of the first invalid option.
func (q Request) checkOptions() error {
	o := q.Options
	if o == nil {
		return nil
	}
	if f := chatOnly(o); f != "" && len(q.Messages) == 0 {
		return invalidParams(f, "%s applies to messages, want messages in place of a prompt", f)
	}
	if err := checkTools(o); err != nil {
		return err
	}
	if err := checkFormat(o.Format); err != nil {
		return err
	}
	if o.ReasoningEffort != "" && !slices.Contains(efforts, o.ReasoningEffort) {
		return invalidParams("reasoning_effort", "unknown effort %.40q, want one of %s", o.ReasoningEffort, strings.Join(efforts, ", "))
	}
	if len(o.TemplateKwargs) > 0 && (!isObject(o.TemplateKwargs) || nesting(o.TemplateKwargs) > Nesting) {
		return invalidParams("chat_template_kwargs", "want a JSON object with at most %d levels of nesting", Nesting)
	}
	if n := o.Logprobs; n != nil && (*n < 0 || *n > TopLogprobs) {
		return invalidParams("top_logprobs", "%d is out of range, want 0 to %d", *n, TopLogprobs)
	}
	for name, value := range o.Extra {
		if !slices.Contains(Extras(), name) {
			return invalidParams(name, "unknown member %.80q", name)
		}
		if nesting(value) > Nesting {
			return invalidParams(name, "more than %d levels of nesting", Nesting)
		}
	}
	return checkSampling(o.Sampling)
}

// chatOnly returns the first option that applies to messages alone; empty without one.
func chatOnly(o *port.GenerationOptions) string {
	switch {
	case len(o.Tools) > 0:
		return "tools"
	case o.ReasoningEffort != "":
		return "reasoning_effort"
	case len(o.TemplateKwargs) > 0:
		return "chat_template_kwargs"
	}
	return ""
}

func checkTools(o *port.GenerationOptions) error {
	if len(o.Tools) > Tools {
		return fault.Invalid("tools", "%d tools, want at most %d", len(o.Tools), Tools)
	}
	named := o.ToolChoice.Mode != port.ToolsFunction
	for i, t := range o.Tools {
		at := fmt.Sprintf("tools.%d.function.", i)
		if !ToolName.MatchString(t.Name) {
			return fault.Invalid(at+"name", "malformed name %.80q, want 1 to 64 letters, digits, '_', '-' and '.'", t.Name)
		}
		if err := checkSchema(at+"parameters", t.Parameters); err != nil {
			return err
		}
		named = named || t.Name == o.ToolChoice.Function
	}
	switch mode := o.ToolChoice.Mode; {
	case !slices.Contains([]string{"", port.ToolsNone, port.ToolsAuto, port.ToolsRequired, port.ToolsFunction}, mode):
		return invalidParams("tool_choice", "unknown choice %.40q, want none, auto, required or a function", mode)
	case !named:
		return invalidParams("tool_choice", "no tool has the name %.80q, want one of tools", o.ToolChoice.Function)
	case mode != "" && mode != port.ToolsNone && len(o.Tools) == 0:
		return invalidParams("tool_choice", "%s without tools, want tools", mode)
	}
	return nil
}

func checkFormat(f port.Format) error {
	switch f.Type {
	case "", port.FormatText, port.FormatObject:
		return nil
	case port.FormatSchema:
	default:
		return invalidParams(fieldFormat+".type", "unknown format %.40q, want %s, %s or %s", f.Type, port.FormatText, port.FormatObject, port.FormatSchema)
	}
	if f.Name != "" && !ToolName.MatchString(f.Name) {
		return fault.Invalid(fieldFormat+".json_schema.name", "malformed name %.80q, want 1 to 64 letters, digits, '_', '-' and '.'", f.Name)
	}
	if len(f.Schema) == 0 {
		return fault.Invalid(fieldFormat+".json_schema.schema", "missing schema, want a JSON schema")
	}
	return checkSchema(fieldFormat+".json_schema.schema", f.Schema)
}

func checkSampling(s port.Sampling) error {
	for _, r := range []struct {
		field       string
		value       *float64
		least, most float64
	}{
		{"frequency_penalty", s.FrequencyPenalty, -2, 2},
		{"presence_penalty", s.PresencePenalty, -2, 2},
		{"repetition_penalty", s.RepetitionPenalty, 0.01, 10},
		{"min_p", s.MinP, 0, 1},
	} {
		if v := r.value; v != nil && !(*v >= r.least && *v <= r.most) {
			return invalidParams(r.field, "%g is out of range, want %g to %g", *v, r.least, r.most)
		}
	}
	if k := s.TopK; k != nil && (*k < -1 || *k > 1_000_000) {
		return invalidParams("top_k", "%d is out of range, want -1 to 1000000, where -1 and 0 are all tokens", *k)
	}
	if len(s.LogitBias) > Biases {
		return invalidParams("logit_bias", "%d tokens, want at most %d", len(s.LogitBias), Biases)
	}
	for token, bias := range s.LogitBias {
		if n, err := strconv.ParseInt(token, 10, 32); err != nil || n < 0 || !(bias >= -100 && bias <= 100) {
			return invalidParams("logit_bias", "the entry %.40q: %g is invalid, want the id of a token and a value from -100 to 100", token, bias)
		}
	}
	return nil
}
