package engines

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// tgiStream streams an answer. Except for a malformed request, every failure is an event after
// status 200.
func (s *server) tgiStream(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "Expected request with `Content-Type: application/json`", http.StatusUnsupportedMediaType)
		return
	}
	var request struct {
		Inputs     string `json:"inputs"`
		Parameters struct {
			MaxNewTokens int      `json:"max_new_tokens"`
			Stop         []string `json:"stop"`
			Seed         *int64   `json:"seed"`
			Details      bool     `json:"details"`
		} `json:"parameters"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, "Failed to parse the request body as JSON", http.StatusBadRequest)
		return
	}
	out := &stream{w: w}
	failure := func(text, kind string) map[string]any { return map[string]any{"error": text, "error_type": kind} }
	g := port.Generation{Prompt: request.Inputs, MaxTokens: request.Parameters.MaxNewTokens, Stop: request.Parameters.Stop, Seed: request.Parameters.Seed}
	if g.Check() != nil {
		out.ignore(out.event(failure("Input validation error: `inputs` cannot be empty", "validation")))
		return
	}
	index, held := 0, ""
	var text strings.Builder
	token := func(piece string, whole, details any) map[string]any {
		index++
		return map[string]any{
			"index": index, "token": map[string]any{"id": index, "text": piece, "logprob": -0.5, "special": false},
			"generated_text": whole, "details": details,
		}
	}
	out.open()
	fmt.Fprint(w, ":\n\n") // a comment of TGI's keep-alive
	end, err := s.mock.Generate(r.Context(), g, func(p port.Piece) error {
		text.WriteString(p.Text)
		p.Text, held = held, p.Text // hold one word back for the final event
		if p.Text == "" {
			return nil
		}
		return out.event(token(p.Text, nil, nil))
	})
	switch f := fault.Of(err); {
	case err == nil:
		var details any
		if request.Parameters.Details {
			reason := "length"
			if end.Finish == port.FinishStop {
				reason = "stop_sequence"
			}
			details = map[string]any{"finish_reason": reason, "generated_tokens": end.TokensOut, "seed": request.Parameters.Seed, "input_length": end.TokensIn}
		}
		out.ignore(out.event(token(held, text.String(), details)))
	case f.Code == fault.InvalidParams:
		out.ignore(out.event(failure(message(err), "validation")))
	case f.Code == fault.ReplicaExhausted:
		out.ignore(out.event(failure("Model is overloaded", "overloaded")))
	case f.Code == fault.PoolUnavailable:
		out.ignore(out.event(failure("Request failed during generation", "generation")))
	default:
		if held != "" {
			out.ignore(out.event(token(held, nil, nil)))
		}
		out.fail(err, failure("Request failed during generation: Server error", "generation"), "")
	}
}

func (s *server) tgiInfo(w http.ResponseWriter, r *http.Request) {
	c, err := s.mock.Capabilities(r.Context())
	if err != nil {
		return
	}
	answer(w, map[string]any{"model_id": c.Models[0], "version": c.Version, "max_total_tokens": c.ContextTokens, "max_concurrent_requests": 128})
}
