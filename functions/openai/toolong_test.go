package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/openai"
)

// awaitResponse requests a response in the background and returns it after its end.
func (s *served) awaitResponse(t *testing.T, body string) string {
	t.Helper()
	var created struct{ ID string }
	decode(t, s.Call(t, http.MethodPost, "/v1/responses", body).Body, &created)
	r := s.Run(t, "inf_"+strings.TrimPrefix(created.ID, "resp_"))
	for !r.State.Terminal() {
		if err := s.dispatcher.Await(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		r = s.Run(t, r.TaskID)
	}
	return s.Call(t, http.MethodGet, "/v1/responses/"+created.ID, "").Body
}

// TestTooLongPromptHasOneCode has prompts that are longer than the context, and than the engine
// accepts.
func TestTooLongPromptHasOneCode(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, _, err := s.System.Models.Create(t.Context(), port.Identity{Tenant: apitest.Tenant}, "mock", catalog.Definition{
		Engines: []platform.EngineKind{platform.EngineMock}, Workloads: []port.Workload{port.WorkloadCompletion, port.WorkloadEmbedding, port.WorkloadRerank}, ContextTokens: 100_000,
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	asks := map[string]struct{ body, param string }{
		"/v1/chat/completions": {`{"model":"mock","max_tokens":1,"messages":[{"role":"user","content":"%s"}]}`, "messages"},
		"/v1/completions":      {`{"model":"mock","max_tokens":1,"prompt":"%s"}`, "prompt"},
		"/v1/responses":        {`{"model":"mock","max_output_tokens":1,"input":"%s"}`, "input"},
		"/v1/embeddings":       {`{"model":"mock","input":"%s"}`, "input"},
		"/v1/rerank":           {`{"model":"mock","query":"a","documents":["%s"]}`, "documents"},
	}
	refused := func(path, prompt string) {
		t.Helper()
		answer := s.Call(t, http.MethodPost, path, fmt.Sprintf(asks[path].body, prompt))
		var got openai.Error
		if err := json.Unmarshal([]byte(answer.Body), &got); err != nil {
			t.Fatal(err)
		}
		if answer.Status != http.StatusBadRequest || got.Error.Code != "context_length_exceeded" || got.Error.Param == nil || *got.Error.Param != asks[path].param {
			t.Errorf("%s with %d bytes: got %d %.300s, want 400 context_length_exceeded of %s", path, len(prompt), answer.Status, answer.Body, asks[path].param)
		}
	}
	for path := range asks {
		if path != "/v1/embeddings" && path != "/v1/rerank" {
			refused(path, strings.Repeat("word", 100_001)) // longer than the context
		}
	}
	s.engine.hold = make(chan chan error)
	go func() {
		for answer := range s.engine.hold {
			f := fault.New(fault.InvalidParams, "the engine refuses the request: its maximum context length is 10 tokens")
			f.Field = port.FieldPrompt
			answer <- port.EngineAnswer{Fault: f, Status: http.StatusBadRequest}
		}
	}()
	for path := range asks {
		if path != "/v1/embeddings" && path != "/v1/rerank" {
			refused(path, "a")
		}
	}
	for _, answer := range []string{
		s.Call(t, http.MethodPost, "/v1/responses", `{"model":"mock","stream":true,"input":"a"}`).Body,
		s.awaitResponse(t, `{"model":"mock","background":true,"input":"a"}`),
	} {
		if !strings.Contains(answer, `"error":{"code":"context_length_exceeded"`) || !strings.Contains(answer, `"status":"failed"`) {
			t.Errorf("got the response %.600s, want one that failed with context_length_exceeded", answer)
		}
	}
	close(s.engine.hold)
}
