package engines

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// tritonStream streams an answer. A failure before the first text has its own status, with the
// content type of a stream.
func (s *server) tritonStream(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Text      string   `json:"text_input"`
		MaxTokens int      `json:"max_tokens"`
		Seed      *int64   `json:"seed"`
		Stop      []string `json:"stop_words"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		reply(w, http.StatusInternalServerError, `{"error":"failed to parse the request JSON buffer"}`)
		return
	}
	out := &stream{w: w}
	held := ""
	event := func(text, reason string) map[string]any {
		return map[string]any{"finish_reason": reason, "model_name": r.PathValue("model"), "model_version": "1", "text_output": text, "token_id": 1}
	}
	g := port.Generation{Model: r.PathValue("model"), Prompt: request.Text, MaxTokens: request.MaxTokens, Seed: request.Seed, Stop: request.Stop}
	end, err := s.mock.Generate(r.Context(), g, func(p port.Piece) error {
		p.Text, held = held, p.Text // hold one word back for the finish reason
		if p.Text == "" {
			return nil
		}
		return out.event(event(p.Text, ""))
	})
	switch f := fault.Of(err); {
	case err == nil:
		out.ignore(out.event(event(held, string(end.Finish))))
	case f.Code == fault.ModelUnknown:
		reply(w, http.StatusNotFound, fmt.Sprintf(`{"error":"Request for unknown model: '%s' is not found"}`, g.Model))
	case f.Code == fault.ReplicaExhausted:
		reply(w, http.StatusTooManyRequests, `{"error":"Exceeds maximum queue size"}`)
	case f.Code == fault.PoolUnavailable:
		reply(w, http.StatusNotFound, fmt.Sprintf(`{"error":"Request for unknown model: '%s' has no available versions"}`, g.Model))
	case f.Code != fault.WorkerReset && !out.begun && r.Context().Err() == nil:
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, "data: {\"error\":%q}\n\n", message(err))
	default:
		if held != "" {
			out.ignore(out.event(event(held, "")))
		}
		out.fail(err, map[string]any{"error": "the model failed"}, "")
	}
}

func (s *server) tritonReady(w http.ResponseWriter, r *http.Request) {
	if h, err := s.mock.Health(r.Context()); err != nil || !h.Ready {
		w.WriteHeader(http.StatusBadRequest)
	}
}

func (s *server) tritonServer(w http.ResponseWriter, r *http.Request) {
	c, err := s.mock.Capabilities(r.Context())
	if err != nil {
		return
	}
	answer(w, map[string]any{"name": "triton", "version": c.Version, "extensions": []string{"model_repository"}})
}

func (s *server) tritonIndex(w http.ResponseWriter, r *http.Request) {
	c, err := s.mock.Capabilities(r.Context())
	if err != nil {
		return
	}
	answer(w, []any{map[string]any{"name": c.Models[0], "version": "1", "state": "READY"}, map[string]any{"name": "other", "version": "1", "state": "UNLOADING"}})
}
