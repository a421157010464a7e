package mockengine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/port"
)

// ParallelTools in a prompt makes the mock call every tool of a request in one answer.
const ParallelTools = "cause-parallel-tools"

// source generates the pieces of an answer.
type source interface {
	next() port.Piece
	// length is the number of pieces of an answer without a limit.
	length() int
	// finish is the reason for the end after length pieces. bounded reports that the answer ends
	// there in any case.
	finish() (reason port.FinishReason, bounded bool)
}

// sourceOf returns the source of an answer: calls of tools, JSON or words.
func sourceOf(prompt string, g port.Generation) source {
	if o := g.Options; o != nil {
		if calls := called(prompt, g.Messages, *o); len(calls) > 0 {
			return &script{pieces: callPieces(calls), reason: port.FinishTools}
		}
		switch o.Format.Type {
		case port.FormatObject:
			return &script{pieces: textPieces(`{"answer": "box"}`), reason: port.FinishStop}
		case port.FormatSchema:
			return &script{pieces: textPieces(example(o.Format.Schema)), reason: port.FinishStop}
		}
	}
	return newWords(prompt, g.Seed)
}

// called returns the tools to call: the chosen one or the first one, unless the last message is
// the result of a tool.
func called(prompt string, messages []port.Message, o port.GenerationOptions) []port.Tool {
	answered := len(messages) > 0 && messages[len(messages)-1].Role == "tool"
	switch mode := o.ToolChoice.Mode; {
	case len(o.Tools) == 0, mode == port.ToolsNone, mode != port.ToolsRequired && mode != port.ToolsFunction && answered:
		return nil
	case mode == port.ToolsFunction:
		return slices.DeleteFunc(slices.Clone(o.Tools), func(t port.Tool) bool { return t.Name != o.ToolChoice.Function })[:1]
	case strings.Contains(prompt, ParallelTools) && (o.ParallelToolCalls == nil || *o.ParallelToolCalls):
		return o.Tools
	}
	return o.Tools[:1]
}

// script is an answer that is known from the start.
type script struct {
	pieces []port.Piece
	reason port.FinishReason
	at     int
}

func (s *script) length() int                       { return len(s.pieces) }
func (s *script) finish() (port.FinishReason, bool) { return s.reason, true }

func (s *script) next() port.Piece {
	s.at++
	return s.pieces[s.at-1]
}

// withLogprobs returns a text with the probability of one token, if the request has them.
func withLogprobs(p port.Piece, o *port.GenerationOptions) port.Piece {
	if o == nil || o.Logprobs == nil || p.Calls != nil {
		return p
	}
	is := port.TokenLogprob{Token: p.Text, Logprob: -0.25}
	for i := range *o.Logprobs {
		other := port.TokenLogprob{Token: p.Text, Logprob: is.Logprob - float64(i)}
		if i > 0 {
			other.Token = vocabulary[i%len(vocabulary)]
		}
		is.Top = append(is.Top, other)
	}
	p.Logprobs = []port.TokenLogprob{is}
	return p
}

// pieceRunes is the length of the pieces of JSON in characters.
const pieceRunes = 4

func split(text string) (parts []string) {
	for runes := range slices.Chunk([]rune(text), pieceRunes) {
		parts = append(parts, string(runes))
	}
	return parts
}

func textPieces(text string) (pieces []port.Piece) {
	for _, part := range split(text) {
		pieces = append(pieces, port.Piece{Text: part})
	}
	return pieces
}

// callPieces returns the parts of calls: the id and the name first, as engines do.
func callPieces(tools []port.Tool) (pieces []port.Piece) {
	for i, t := range tools {
		pieces = append(pieces, port.Piece{Calls: []port.ToolDelta{{Index: i, ID: fmt.Sprintf("call_mock%d", i), Name: t.Name}}})
		for _, part := range split(example(t.Parameters)) {
			pieces = append(pieces, port.Piece{Calls: []port.ToolDelta{{Index: i, Arguments: part}}})
		}
	}
	return pieces
}

// example returns a JSON value for a schema: an object for none.
func example(schema json.RawMessage) string {
	var of map[string]any
	if json.Unmarshal(schema, &of) != nil {
		return "{}"
	}
	text, _ := json.Marshal(exampleOf(of, of, 0)) //nolint:errchkjson // it has JSON values alone
	return string(text)
}

// exampleDepth is the most levels of an example. Schemas can refer to themselves.
const exampleDepth = 8

func exampleOf(of, root map[string]any, depth int) any {
	if ref, ok := of["$ref"].(string); ok {
		if found, ok := resolve(root, ref); ok && depth < exampleDepth {
			return exampleOf(found, root, depth+1)
		}
	}
	if list, ok := of["enum"].([]any); ok && len(list) > 0 {
		return list[0]
	}
	if value, ok := of["const"]; ok {
		return value
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := of[key].([]any); ok && len(list) > 0 {
			if first, ok := list[0].(map[string]any); ok && depth < exampleDepth {
				return exampleOf(first, root, depth+1)
			}
		}
	}
	kind, _ := of["type"].(string)
	if list, ok := of["type"].([]any); ok && len(list) > 0 {
		kind, _ = list[0].(string)
	}
	switch kind {
	case "string":
		return "box"
	case "integer":
		return 1
	case "number":
		return 0.5
	case "boolean":
		return true
	case "null":
		return nil
	case "array":
		return exampleList(of, root, depth)
	}
	return exampleObject(of, root, depth)
}

func exampleList(of, root map[string]any, depth int) []any {
	if items, ok := of["items"].(map[string]any); ok && depth < exampleDepth {
		return []any{exampleOf(items, root, depth+1)}
	}
	return []any{}
}

func exampleObject(of, root map[string]any, depth int) map[string]any {
	found := map[string]any{}
	properties, _ := of["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if schema, ok := properties[name].(map[string]any); ok && depth < exampleDepth {
			found[name] = exampleOf(schema, root, depth+1)
		}
	}
	return found
}

// resolve returns the schema of a reference such as #/$defs/name.
func resolve(root map[string]any, ref string) (map[string]any, bool) {
	at := root
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#"), "/") {
		if name == "" {
			continue
		}
		next, ok := at[name].(map[string]any)
		if !ok {
			return nil, false
		}
		at = next
	}
	return at, true
}
