package engines

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// openai adds the paths that llama-server and vLLM share.
func (s *server) openai(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, false) })
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, true) })
	mux.HandleFunc("POST /v1/embeddings", s.embed)
	mux.HandleFunc("POST /v1/rerank", s.rerank)
}

type openaiRequest struct {
	Model     string          `json:"model"`
	Prompt    string          `json:"prompt"`
	Messages  []openaiMessage `json:"messages"`
	MaxTokens int             `json:"max_tokens"`
	// MostTokens replaces MaxTokens in requests to services.
	MostTokens int      `json:"max_completion_tokens"`
	Stop       []string `json:"stop"`
	Seed       *int64   `json:"seed"`
	Stream     bool     `json:"stream"`
	Options    struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Input     []string `json:"input"`
	Query     string   `json:"query"`
	Documents []string `json:"documents"`

	Tools []struct {
		Function port.Tool `json:"function"`
	} `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	Format     struct {
		Type   string `json:"type"`
		Schema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

type openaiMessage struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is the text of a message. Parts are kept as they are, so that the answer depends on images.
type content string

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(text []byte) error {
	if *c = ""; len(text) > 0 && text[0] == '[' {
		*c = content(text)
		return nil
	}
	return json.Unmarshal(text, (*string)(c))
}

// generation returns the request to the mock.
func (r openaiRequest) generation() port.Generation {
	g := port.Generation{Model: r.Model, Prompt: r.Prompt, MaxTokens: cmp.Or(r.MaxTokens, r.MostTokens), Stop: r.Stop, Seed: r.Seed}
	for _, m := range r.Messages {
		g.Messages = append(g.Messages, port.Message{Role: m.Role, Content: string(m.Content)})
	}
	if len(r.Tools) == 0 && r.Format.Type == "" {
		return g
	}
	g.Options = &port.GenerationOptions{Format: port.Format{Type: r.Format.Type, Schema: r.Format.Schema.Schema}}
	for _, tool := range r.Tools {
		g.Options.Tools = append(g.Options.Tools, tool.Function)
	}
	var named struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	switch {
	case len(r.ToolChoice) == 0:
	case json.Unmarshal(r.ToolChoice, &named) == nil:
		g.Options.ToolChoice = port.ToolChoice{Mode: port.ToolsFunction, Function: named.Function.Name}
	default:
		_ = json.Unmarshal(r.ToolChoice, &g.Options.ToolChoice.Mode) // a wrong value means the default
	}
	return g
}

// callsOf returns parts of calls in the format of a stream.
func callsOf(parts []port.ToolDelta) (found []map[string]any) {
	for _, d := range parts {
		function := map[string]any{"arguments": d.Arguments}
		call := map[string]any{"index": d.Index, "function": function}
		if d.Name != "" {
			call["id"], call["type"], function["name"] = d.ID, "function", d.Name
		}
		found = append(found, call)
	}
	return found
}

// body reads a request. llama-server ignores the model's name.
func (s *server) body(w http.ResponseWriter, r *http.Request) (request openaiRequest, ok bool) {
	if s.kind == platform.EngineVLLM && r.Header.Get("Content-Type") != "application/json" {
		s.openaiError(w, http.StatusBadRequest, "Bad Request", "Unsupported Media Type: Only 'application/json' is allowed")
		return request, false
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		status := http.StatusBadRequest
		if s.kind == platform.EngineLlamaCpp {
			status = http.StatusInternalServerError
		}
		s.openaiError(w, status, "server_error", "cannot parse the body")
		return request, false
	}
	if s.kind == platform.EngineLlamaCpp {
		request.Model = ""
	}
	return request, true
}

func (s *server) openaiError(w http.ResponseWriter, status int, kind, message string) {
	reply(w, status, fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%d}}`, message, kind, status))
}

// refuse answers a request that the engine refuses before its first token.
func (s *server) refuse(w http.ResponseWriter, err error) {
	switch f := fault.Of(err); {
	case f.Code == fault.ModelUnknown:
		s.openaiError(w, http.StatusNotFound, "NotFoundError", message(err))
	case f.Code == fault.ReplicaExhausted && s.kind == platform.EngineVLLM:
		s.openaiError(w, http.StatusServiceUnavailable, "Service Unavailable", message(err))
	case f.Code == fault.ReplicaExhausted:
		s.openaiError(w, http.StatusTooManyRequests, "rate_limit_error", message(err))
	case f.Code == fault.PoolUnavailable && s.kind == platform.EngineVLLM:
		s.openaiError(w, http.StatusInternalServerError, "InternalServerError", message(err))
	case f.Code == fault.PoolUnavailable:
		s.openaiError(w, http.StatusServiceUnavailable, "unavailable_error", message(err))
	default:
		s.openaiError(w, http.StatusBadRequest, "invalid_request_error", message(err))
	}
}

// complete streams an answer. vLLM sends the finish reason with the last token, and the usage
// in a separate event. llama-server sends both in an event without text. For a conversation it
// sends the usage in an event without choices.
func (s *server) complete(w http.ResponseWriter, r *http.Request, chat bool) {
	request, ok := s.body(w, r)
	if !ok {
		return
	}
	g := request.generation()
	if s.kind == platform.EngineOpenAI && g.MaxTokens == 0 { // it has a limit of its own
		g.MaxTokens, g.OpenEnd = 1000, true
	}
	if !request.Stream || g.Check() != nil {
		s.openaiError(w, http.StatusBadRequest, "BadRequestError", "want a prompt or messages, max_tokens and stream")
		return
	}
	out := &stream{w: w}
	choice := func(p port.Piece, reason any) map[string]any {
		c := map[string]any{"index": 0, "logprobs": nil, "finish_reason": reason}
		switch {
		case !chat:
			c["text"] = p.Text
		case p.Calls != nil:
			c["delta"] = map[string]any{"tool_calls": callsOf(p.Calls)}
		case !p.Reasoning:
			c["delta"] = map[string]any{"content": p.Text}
		case s.kind == platform.EngineVLLM:
			c["delta"] = map[string]any{"reasoning": p.Text}
		default:
			c["delta"] = map[string]any{"reasoning_content": p.Text}
		}
		return c
	}
	event := func(choices ...map[string]any) map[string]any {
		return map[string]any{"id": "cmpl-1", "object": "text_completion", "model": "mock", "choices": append([]map[string]any{}, choices...)}
	}
	var held port.Piece
	end, err := s.mock.Generate(r.Context(), g, func(p port.Piece) error {
		if s.kind == platform.EngineVLLM { // hold one word back for the finish reason
			p, held = held, p
			if p.Text == "" && p.Calls == nil {
				return nil
			}
		}
		if chat && !out.begun {
			first := map[string]any{"index": 0, "delta": map[string]any{"role": "assistant", "content": nil}, "finish_reason": nil}
			if err := out.event(event(first)); err != nil {
				return err
			}
		}
		return out.event(event(choice(p, nil)))
	})
	if err != nil {
		if f := fault.Of(err); f.Code != fault.WorkerReset && !out.begun && r.Context().Err() == nil {
			s.refuse(w, err)
			return
		}
		if held.Text != "" || held.Calls != nil {
			out.ignore(out.event(event(choice(held, nil))))
		}
		out.fail(err, map[string]any{"error": map[string]any{"message": "EngineCore encountered an issue.", "type": "InternalServerError", "param": nil, "code": 500}}, "[DONE]")
		return
	}
	usage := map[string]any{"prompt_tokens": end.TokensIn, "completion_tokens": end.TokensOut, "total_tokens": end.TokensIn + end.TokensOut}
	if s.kind == platform.EngineVLLM {
		usage["completion_tokens_details"] = map[string]any{"reasoning_tokens": end.ReasoningTokens}
	}
	last := event(choice(held, string(end.Finish)))
	if s.kind == platform.EngineLlamaCpp && !chat {
		last["usage"] = usage
		out.ignore(out.event(last))
	} else {
		out.ignore(out.event(last))
		if request.Options.IncludeUsage {
			final := event()
			final["usage"] = usage
			out.ignore(out.event(final))
		}
	}
	out.ignore(out.event("[DONE]"))
}

func (s *server) embed(w http.ResponseWriter, r *http.Request) {
	request, ok := s.body(w, r)
	if !ok {
		return
	}
	got, err := s.mock.Embed(r.Context(), port.Embedding{Model: request.Model, Inputs: request.Input})
	if err != nil {
		s.refuse(w, err)
		return
	}
	data := []map[string]any{}
	for i, v := range got.Vectors {
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": v})
	}
	answer(w, map[string]any{"object": "list", "data": data, "usage": map[string]any{"prompt_tokens": got.TokensIn, "total_tokens": got.TokensIn}})
}

// rerank answers with the documents, the best first, as the servers do.
func (s *server) rerank(w http.ResponseWriter, r *http.Request) {
	request, ok := s.body(w, r)
	if !ok {
		return
	}
	got, err := s.mock.Rerank(r.Context(), port.Reranking{Model: request.Model, Query: request.Query, Documents: request.Documents})
	if err != nil {
		s.refuse(w, err)
		return
	}
	results := []map[string]any{}
	for i, score := range got.Scores {
		results = append([]map[string]any{{"index": i, "relevance_score": score}}, results...)
	}
	answer(w, map[string]any{"object": "list", "results": results, "usage": map[string]any{"prompt_tokens": got.TokensIn, "total_tokens": got.TokensIn}})
}

func (s *server) llamaProps(w http.ResponseWriter, r *http.Request) {
	c, err := s.mock.Capabilities(r.Context())
	if err != nil {
		return
	}
	answer(w, map[string]any{
		"default_generation_settings": map[string]any{"n_ctx": c.ContextTokens},
		"total_slots":                 c.Slots, "build_info": "b1-" + c.Version,
	})
}

// llamaSlots reports the slots. The first ones are busy, one for each running request.
func (s *server) llamaSlots(w http.ResponseWriter, r *http.Request) {
	c, err := s.mock.Capabilities(r.Context())
	if err != nil {
		return
	}
	load, err := s.mock.Load(r.Context())
	if err != nil {
		return
	}
	slots := []map[string]any{}
	for i := range c.Slots {
		slots = append(slots, map[string]any{"id": i, "n_ctx": c.ContextTokens, "speculative": false, "is_processing": i < *load.Running})
	}
	answer(w, slots)
}

func (s *server) llamaModels(w http.ResponseWriter, r *http.Request) {
	c, err := s.mock.Capabilities(r.Context())
	if err != nil {
		return
	}
	answer(w, map[string]any{
		"models": []any{map[string]any{"name": c.Models[0], "capabilities": []string{"completion", "embedding", "rerank"}}},
		"object": "list", "data": []any{map[string]any{"id": c.Models[0], "object": "model", "owned_by": "llamacpp"}},
	})
}

func (s *server) vllmVersion(w http.ResponseWriter, r *http.Request) {
	c, err := s.mock.Capabilities(r.Context())
	if err != nil {
		return
	}
	answer(w, map[string]any{"version": c.Version})
}

func (s *server) vllmModels(w http.ResponseWriter, r *http.Request) {
	c, err := s.mock.Capabilities(r.Context())
	if err != nil {
		return
	}
	answer(w, map[string]any{"object": "list", "data": []any{map[string]any{"id": c.Models[0], "object": "model", "owned_by": "vllm", "max_model_len": c.ContextTokens}}})
}
