package porttest

import (
	"encoding/json"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

// answerWith returns the text and the calls of an answer to a message.
func (h EngineHarness) answerWith(t *testing.T, o port.GenerationOptions, more ...port.Message) (text string, calls []port.ToolCall, end port.GenerationEnd) {
	t.Helper()
	g := port.Generation{Model: h.Model, Messages: append([]port.Message{{Role: "user", Content: "cause-parallel-tools"}}, more...), MaxTokens: 100, Options: &o}
	var parts inference.Parts
	end, err := h.Engine.Generate(deadline(t), g, func(p port.Piece) error {
		if p.Text != "" {
			parts.Add(p.Text, p.Reasoning)
		}
		for _, d := range p.Calls {
			parts.AddCall(d)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return parts.Joined(false), parts.Calls(), end
}

// engineCalls requires that the engine calls two tools, and answers with a text after their results.
func engineCalls(t *testing.T, h EngineHarness) {
	if !h.Calls {
		return
	}
	parameters := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)
	o := port.GenerationOptions{Tools: []port.Tool{{Name: "weather", Parameters: parameters}, {Name: "news", Parameters: parameters}}}
	text, calls, end := h.answerWith(t, o)
	if end.Finish != port.FinishTools || text != "" || len(calls) != 2 || calls[0].Name != "weather" || calls[1].Name != "news" ||
		calls[0].ID == calls[1].ID || calls[1].Arguments != `{"city":"box"}` {
		t.Errorf("got %q, %+v and %+v, want a call of each tool", text, calls, end)
	}
	results := []port.Message{{Role: "assistant", ToolCalls: calls}}
	for _, c := range calls {
		results = append(results, port.Message{Role: "tool", ToolCallID: c.ID, Content: "sunny"})
	}
	if text, calls, end = h.answerWith(t, o, results...); text == "" || len(calls) > 0 || end.Finish == port.FinishTools {
		t.Errorf("got %q, %+v and %+v, want a text after the results", text, calls, end)
	}
	o.ToolChoice = port.ToolChoice{Mode: port.ToolsFunction, Function: "news"}
	if _, calls, _ = h.answerWith(t, o, results...); len(calls) != 1 || calls[0].Name != "news" {
		t.Errorf("got %+v, want a call of the chosen tool", calls)
	}
}

// engineFormat requires an answer that matches a schema.
func engineFormat(t *testing.T, h EngineHarness) {
	if !h.Calls {
		return
	}
	schema := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}`)
	text, _, end := h.answerWith(t, port.GenerationOptions{Format: port.Format{Type: port.FormatSchema, Schema: schema}})
	if text != `{"city":"box","days":1}` || end.Finish != port.FinishStop {
		t.Errorf("got %q and %+v, want an object of the schema", text, end)
	}
}
