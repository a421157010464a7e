package stack_test

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/engines"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/adapter/secretfile"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the table of members")

// A path of the API, with a request to which a member is added.
var (
	chats       = asked{"/v1/chat/completions", `{"model":"mock","max_tokens":2,"messages":[{"role":"user","content":"a"}]}`}
	prompts     = asked{"/v1/completions", `{"model":"mock","max_tokens":2,"prompt":"a"}`}
	embeddings  = asked{"/v1/embeddings", `{"model":"mock","input":"a"}`}
	rerankings  = asked{"/v1/rerank", `{"model":"mock","query":"a","documents":["b"]}`}
	noTool      = `"tools":[{"type":"function","function":{"name":"f"}}]`
	toolAndMore = noTool + `,`
)

type asked struct{ path, body string }

// member is a row of the table.
type member struct {
	name, members string
	// at are the requests that can have the member; the first one that the engine answers without
	// it is used.
	at []asked
}

// membersOfClients returns the rows: the members that every engine has, those that no engine has,
// and those of inference.Features and of engines.
func membersOfClients(t *testing.T) (rows []member) {
	t.Helper()
	both := []asked{chats, prompts}
	for _, each := range []string{
		`"max_tokens":3`, `"seed":7`, `"stop":["x"]`, `"temperature":0.5`, `"top_p":0.5`,
		`"frequency_penalty":1`, `"presence_penalty":1`, `"repetition_penalty":1.5`, `"min_p":0.5`, `"top_k":5`, `"logit_bias":{"5":-1}`,
		`"add_generation_prompt":true`, `"add_special_tokens":true`, `"allowed_token_ids":[5]`, `"bad_words":["x"]`, `"cache_prompt":true`,
		`"continue_final_message":true`, `"dry_allowed_length":2`, `"dry_base":1.75`, `"dry_multiplier":0.5`, `"dry_penalty_last_n":10`,
		`"dry_sequence_breakers":["x"]`, `"dynatemp_exponent":1`, `"dynatemp_range":0.5`, `"grammar":"root ::= \"a\""`, `"ignore_eos":true`,
		`"include_stop_str_in_output":true`, `"length_penalty":1.5`, `"min_tokens":1`, `"mirostat":2`, `"mirostat_eta":0.1`, `"mirostat_tau":5`,
		`"repeat_last_n":10`, `"samplers":["top_k"]`, `"skip_special_tokens":false`, `"spaces_between_special_tokens":false`, `"stop_token_ids":[5]`,
		`"structured_outputs":{"choice":["a"]}`, `"top_n_sigma":1`, `"truncate":5`, `"typical_p":0.9`, `"watermark":true`, `"xtc_probability":0.1`,
		`"xtc_threshold":0.1`, `"n":2`, `"best_of":2`,
	} {
		name, _, _ := strings.Cut(each[1:], `"`)
		rows = append(rows, member{name, each, both})
	}
	rows = append(
		rows,
		member{"messages", "", []asked{chats}},
		member{"response_format.json_object", `"response_format":{"type":"json_object"}`, both},
		member{"response_format.json_schema", `"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object"}}}`, both},
		member{"tools", noTool, []asked{chats}}, member{"tool_choice", toolAndMore + `"tool_choice":"required"`, []asked{chats}},
		member{"parallel_tool_calls", toolAndMore + `"parallel_tool_calls":false`, []asked{chats}},
		member{"logprobs", `"logprobs":true`, []asked{chats}}, member{"reasoning_effort", `"reasoning_effort":"low"`, []asked{chats}},
		member{"chat_template_kwargs", `"chat_template_kwargs":{"a":1}`, []asked{chats}},
		member{"embeddings", "", []asked{embeddings}}, member{"dimensions", `"dimensions":4`, []asked{embeddings}},
		member{"input_tokens", `"input":[[5,6]]`, []asked{embeddings}}, member{"rerank", "", []asked{rerankings}},
		member{"image_url", `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgpwaXhlbHM="}}]}]`, []asked{chats}},
		member{"prompt", `"prompt":["b","c"]`, []asked{prompts}},
		member{"audio", `"modalities":["text","audio"]`, []asked{chats}}, member{"web_search_options", `"web_search_options":{"search_context_size":"low"}`, []asked{chats}},
		member{"echo", `"echo":true`, []asked{prompts}}, member{"suffix", `"suffix":"a"`, []asked{prompts}},
	)
	for _, f := range inference.EngineFeatures(platform.EngineMock) {
		if !slices.ContainsFunc(rows, func(m member) bool { return m.name == string(f) }) {
			t.Errorf("the feature %s is in no row", f)
		}
	}
	for _, name := range inference.Extras() {
		if !slices.ContainsFunc(rows, func(m member) bool { return m.name == name }) {
			t.Errorf("the member %s of an engine is in no row", name)
		}
	}
	return rows
}

// realKinds are the columns.
var realKinds = []platform.EngineKind{platform.EngineLlamaCpp, platform.EngineVLLM, platform.EngineTGI, platform.EngineTriton, platform.EngineOpenAI}

// TestWhatClientsAskFor sends each member through the API to an engine of each kind. It works if the
// engine gets another request than without it, is refused if the answer is 400 and names it, and
// must not be dropped. The table in CLIENTS.md has the outcomes.
func TestWhatClientsAskFor(t *testing.T) { //nolint:tparallel // the parts of "kinds" run in parallel
	t.Parallel()
	rows := membersOfClients(t)
	outcomes := make([]map[string]string, len(realKinds))
	t.Run("kinds", func(t *testing.T) { //nolint:paralleltest // its parts run in parallel
		for i, kind := range realKinds {
			t.Run(string(kind), func(t *testing.T) {
				t.Parallel()
				outcomes[i] = outcomesAt(t, kind, rows)
			})
		}
	})
	slices.SortStableFunc(rows, func(a, b member) int { return strings.Compare(a.name, b.name) })
	var b strings.Builder
	fmt.Fprintf(&b, "| member | llamacpp | vllm | tgi | triton | openai |\n|---|---|---|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&b, "| `%s` |", row.name)
		for _, of := range outcomes {
			fmt.Fprintf(&b, " %s |", of[row.name])
		}
		b.WriteString("\n")
	}
	tableIsFresh(t, "../../../shared/domain/inference/CLIENTS.md", b.String())
}

// tableIsFresh compares the table of a document.
func tableIsFresh(t *testing.T, file, table string) {
	t.Helper()
	const begin, end = "<!-- features -->\n", "<!-- /features -->"
	text, err := os.ReadFile(file) //nolint:gosec // G304: a file of the repository
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %q", file, begin)
	}
	want := head + begin + table + end + tail
	if want == string(text) || t.Failed() {
		return
	}
	if !*rewrite {
		t.Fatalf("the table in %s is stale, run this test with -args -rewrite; got\n%s", file, table)
	}
	if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
}

// seen keeps the last request of a task that an engine has got.
type seen struct {
	mu   sync.Mutex
	body any
	path string
}

func (s *seen) take() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := []any{s.path, s.body}
	s.path, s.body = "", nil
	if last[0] == "" {
		return nil
	}
	return last
}

// record keeps requests with a body and passes them on.
func (s *seen) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, err := io.ReadAll(r.Body); err == nil && len(text) > 0 && !strings.Contains(r.URL.Path, "repository") {
			s.mu.Lock()
			_ = json.Unmarshal(text, &s.body)
			s.path = r.URL.Path
			s.mu.Unlock()
			r.Body = io.NopCloser(bytes.NewReader(text))
		}
		next.ServeHTTP(w, r)
	})
}

// startFor starts a stack whose pool has an engine of a kind with this handler.
func startFor(t *testing.T, kind platform.EngineKind, handler http.Handler) *target {
	t.Helper()
	const all = `"workloads":["completion","embedding","rerank"]`
	if kind != platform.EngineOpenAI {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		g := start(t, served{Engines: []stack.EngineAddress{{Kind: kind, URL: server.URL}}})
		if kind == platform.EngineVLLM { // it does not report what its model can do
			g.Call(http.MethodPatch, "/v1/catalog/models/mock", "{"+all+"}")
		}
		return g
	}
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	trusted, data := x509.NewCertPool(), t.TempDir()
	trusted.AddCert(server.Certificate()) // without it no replica is ready, and each task waits for one
	g := start(t, served{Data: data, RootCAs: trusted, Settings: map[string]string{"SORTIE_ENGINE_ALLOW": "127.0.0.1"}})
	if err := secretfile.Folder(filepath.Join(data, stack.SecretsFolder)).Put("default", "key", "a-key-of-the-service"); err != nil {
		t.Fatal(err)
	}
	for _, made := range []struct{ method, path, body string }{
		{http.MethodPost, "/v1/catalog/models", `{"id":"mock","engines":["openai"],"context_tokens":4096,` + all + `}`},
		{http.MethodPut, "/v1/pools/cloud", `{"engine":{"kind":"openai","model":"mock","engineModel":"mock","secretRef":"key","slots":2,"replicas":[{"url":"` + server.URL + `/v1"}]}}`},
	} {
		if answer := g.Call(made.method, made.path, made.body); answer.Status != http.StatusCreated {
			t.Fatalf("%s %s: got %d %s, want 201", made.method, made.path, answer.Status, answer.Body)
		}
	}
	var health struct{ Replicas []struct{ Ready bool } }
	if answer := g.Call(http.MethodGet, "/v1/pools/cloud/health", ""); json.Unmarshal(answer.Body, &health) != nil || len(health.Replicas) != 1 || !health.Replicas[0].Ready {
		t.Fatalf("got %d %s, want a ready replica", answer.Status, answer.Body)
	}
	return g
}

// outcomesAt returns what becomes of each member at an engine.
func outcomesAt(t *testing.T, kind platform.EngineKind, rows []member) map[string]string {
	t.Helper()
	var got seen
	g := startFor(t, kind, got.record(engines.Handler(kind, mockengine.New(mockengine.Config{Clock: clock.System{}}))))
	send := func(at asked, members string) (status int, answer string, request any) {
		t.Helper()
		resp, err := http.Post(g.Client.URL+at.path, "application/json", bytes.NewReader(merged(t, at.body, "{"+members+"}"))) //nolint:noctx // of a test
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text), got.take()
	}
	outcomes := map[string]string{}
	for _, row := range rows {
		at := row.at[0]
		status, answer, plain := send(at, "")
		for _, other := range row.at[1:] {
			if plain == nil {
				at = other
				status, answer, plain = send(at, "")
			}
		}
		var request any
		if row.members != "" && plain != nil {
			status, answer, request = send(at, row.members)
		}
		named := strings.Contains(answer, `"param":"`+strings.TrimSuffix(strings.TrimSuffix(row.name, ".json_object"), ".json_schema")+`"`)
		switch {
		case plain == nil && status == http.StatusBadRequest, row.name == "audio" && strings.Contains(answer, `"param":"modalities"`):
			outcomes[row.name] = "refused"
		case row.name == "n" && strings.Count(answer, `"index":`) == 2: // each answer is a request like the one without it
			outcomes[row.name] = "works"
		case row.members == "" && status == http.StatusOK, request != nil && !reflect.DeepEqual(request, plain):
			outcomes[row.name] = "works"
		case status == http.StatusBadRequest && named:
			outcomes[row.name] = "refused"
		default:
			t.Errorf("%s at %s: got %d %.300s, and the request %v to the engine, want it there or refused by name", row.name, kind, status, answer, request)
		}
	}
	return outcomes
}

// merged returns the members of JSON objects, later ones instead of earlier ones.
func merged(t *testing.T, objects ...string) []byte {
	t.Helper()
	all := map[string]json.RawMessage{}
	for _, each := range objects {
		more := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(each), &more); err != nil {
			t.Fatalf("%s: %v", each, err)
		}
		maps.Copy(all, more)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
