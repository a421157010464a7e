package answers

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// form is what an answer has beside its text. The name of a task decides it, at all replicas.
type form int

const (
	texts form = iota
	// calls is a call of a tool instead of a text. Few tokens may cut it off.
	calls
	// reasons is reasoning before the text.
	reasons
)

// formOf returns the form of the answers of a task, if it is a completion.
func (w *world) formOf(name string) form {
	return []form{calls, calls, reasons, texts, texts}[w.task("form "+name)]
}

// task returns a number below 5 for a task. It does not depend on earlier calls.
func (w *world) task(key string) int {
	w.mu.Lock()
	delete(w.rolls, key)
	w.mu.Unlock()
	return w.roll(key).IntN(5)
}

// arguments are those of the call of a task: the mock sends the first value of an enumeration.
func arguments(name string) string { return fmt.Sprintf(`{"city":%q}`, name) }

// withTool returns a request whose answer is a call of a tool.
func withTool(name, text string) inference.Request {
	schema := fmt.Sprintf(`{"type":"object","properties":{"city":{"enum":[%q]}},"required":["city"]}`, name)
	return inference.Request{
		Messages: []port.Message{{Role: "user", Content: text}},
		Options:  &port.GenerationOptions{Tools: []port.Tool{{Name: "weather", Parameters: json.RawMessage(schema)}}},
	}
}

// longestKey is longer than each text that is not of a large request.
const longestKey = 256

// textOf returns the text of a request, which begins with the name of its task. That of a large request
// is cut off.
func textOf(g port.Generation) string {
	text := g.Prompt
	if text == "" && len(g.Messages) > 0 {
		text = inference.TextOf(g.Messages[0])
	}
	return text[:min(len(text), longestKey)]
}

// names finds the name of the task in a stored request.
var names = regexp.MustCompile(`request-\d+`)

// nameOf returns the name of the task of a request.
func nameOf(g port.Generation) string {
	name, _, _ := strings.Cut(textOf(g), " ")
	return name
}

// answered has the parts of an answer.
type answered struct {
	pieces, reasoning, parts int
	arguments                string
}

// tokens is the number of tokens of the answer: each part is one.
func (a *answered) tokens() int { return a.pieces + a.reasoning + a.parts }

// call adds a part of a call.
func (a *answered) call(d port.ToolDelta) {
	a.parts++
	a.arguments += d.Arguments
}

// checkForm compares a complete answer of a run with its form.
func (w *world) checkForm(r run.Run, a answered, end inference.End) {
	most, name := r.Work.Inference.MaxTokens, names.FindString(string(r.Work.Inference.Request))
	switch w.formOf(name) {
	case calls:
		whole := a.arguments == arguments(name)
		if cut := end.Finish == string(port.FinishLength) && a.tokens() == most; a.pieces+a.reasoning > 0 || !strings.HasPrefix(arguments(name), a.arguments) || !cut && !(whole && end.Finish == string(port.FinishTools)) {
			w.fail("the stream of %s has the call %q and %+v with the reason %s, want %s or the first %d parts", r.ID, a.arguments, a, end.Finish, arguments(name), most)
		}
		if whole {
			w.outcome.Calls++
		}
		return
	case reasons:
		w.outcome.Reasoned++
	case texts:
		if a.reasoning > 0 {
			w.fail("the stream of %s has %d pieces of reasoning, want none", r.ID, a.reasoning)
		}
	}
	if a.parts > 0 || a.tokens() != most {
		w.fail("the stream of %s has %+v, want %d tokens", r.ID, a, most)
	}
	// An engine counts a piece once that it sends twice, and nothing if it exceeds the limit.
	if counted := end.ReasoningTokens; counted != a.reasoning && counted != a.reasoning-1 && counted != 0 {
		w.fail("the stream of %s has %d pieces of reasoning, and an end with %d", r.ID, a.reasoning, counted)
	}
}
