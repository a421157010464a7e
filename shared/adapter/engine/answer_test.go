package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// serve returns an engine whose server sends each request to the handler.
func serve(t testing.TB, cfg engine.Config, handler http.HandlerFunc) *engine.Engine {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	cfg.URL, cfg.Clock = server.URL, clock.System{}
	e, err := engine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// streamed sends a text as the events of the answer.
func streamed(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(body)) // one chunk: a reader scans a long event again with each
	}
}

func generate(ctx context.Context, e *engine.Engine) (text string, end port.GenerationEnd, err error) {
	end, err = e.Generate(ctx, port.Generation{Model: "tiny", Prompt: "x", MaxTokens: 8}, func(p port.Piece) error {
		text += p.Text
		return nil
	})
	return text, end, err
}

const (
	piece = `{"choices":[{"text":"a","finish_reason":null}]}`
	last  = `{"choices":[{"text":"b","finish_reason":"stop"}]}`
)

// TestEventStreamRules checks the rules of the WHATWG for event streams.
func TestEventStreamRules(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, body string }{
		{"line feeds", "data: " + piece + "\n\ndata: " + last + "\n\n"},
		{"carriage returns and line feeds", "data: " + piece + "\r\n\r\ndata: " + last + "\r\n\r\n"},
		{"carriage returns", "data: " + piece + "\r\rdata: " + last + "\r\r"},
		{"no space behind the colon", "data:" + piece + "\n\ndata:" + last + "\n\n"},
		{"byte order mark", "\ufeffdata: " + piece + "\n\ndata: " + last + "\n\n"},
		{"comments", ": hello\n\n:\n\ndata: " + piece + "\n: within\n\ndata: " + last + "\n\n"},
		{"other fields", "event: x\nid: 7\nretry: 10\nunknown: y\ndata: " + piece + "\n\ndata: " + last + "\n\n"},
		{"data in two lines", "data: {\"choices\":\ndata: [{\"text\":\"a\",\"finish_reason\":null}]}\n\ndata: " + last + "\n\n"},
		{"empty data", "data\n\ndata:\n\ndata: " + piece + "\n\ndata: " + last + "\n\n"},
		{"event without data", "event: ping\n\ndata: " + piece + "\n\ndata: " + last + "\n\n"},
		{"something behind the final event", "data: " + piece + "\n\ndata: " + last + "\n\ndata: [DONE]\n\ndata: {\n\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, engine.Config{Kind: platform.EngineVLLM}, streamed(test.body))
			if text, end, err := generate(t.Context(), e); text != "ab" || end.Finish != port.FinishStop || err != nil {
				t.Errorf("got %q, %+v, %v, want ab and the finish reason stop", text, end, err)
			}
		})
	}
}

func TestIncompleteAnswers(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"",
		"data: [DONE]\n\n",
		"data: " + piece + "\n\n",
		"data: " + piece + "\n\ndata: [DONE]\n\n",
		"data: " + piece + "\n\ndata: " + last, // without the line that ends the event
		"data: " + piece + "\n\ndata: {\"choices\":[{\"text\":\"b\",\"finish_reason\":\"abort\"}]}\n\n",
		"data: " + piece + "\n\ndata: nothing\n\n",
		"data: " + piece + "\n\ndata: [1]\n\n",
		"data: " + piece + "\n\ndata: " + strings.Repeat("x", 9<<20) + "\n\n",
		// the events of a vLLM that dies
		"data: " + piece + "\n\ndata: {\"error\": {\"message\": \"EngineCore encountered an issue.\", \"type\": \"InternalServerError\", \"param\": null, \"code\": 500}}\n\ndata: [DONE]\n\n",
	} {
		e := serve(t, engine.Config{Kind: platform.EngineVLLM}, streamed(body))
		if _, end, err := generate(t.Context(), e); !fault.Is(err, fault.WorkerReset) {
			t.Errorf("answer %.200q: got %+v, %v, want WorkerReset", body, end, err)
		}
	}
	html := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>a proxy's page</html>") }
	if _, _, err := generate(t.Context(), serve(t, engine.Config{Kind: platform.EngineVLLM}, html)); !fault.Is(err, fault.WorkerReset) {
		t.Errorf("answer that is no stream: got %v, want WorkerReset", err)
	}
}

// TestRefusalInTheStream uses a vLLM that refuses a request after it has begun its response.
func TestRefusalInTheStream(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]fault.Code{503: fault.ReplicaExhausted, 429: fault.ReplicaExhausted, 400: fault.InvalidParams, 500: fault.PoolUnavailable} {
		event := fmt.Sprintf("data: {\"error\": {\"message\": \"The engine is currently busy\", \"type\": \"Error\", \"param\": null, \"code\": %d}}\n\n", code)
		e := serve(t, engine.Config{Kind: platform.EngineVLLM}, streamed(event+"data: [DONE]\n\n"))
		if _, _, err := generate(t.Context(), e); !fault.Is(err, want) || !strings.Contains(err.Error(), "currently busy") {
			t.Errorf("%d: got %v, want %s with the engine's words", code, err, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		kind   platform.EngineKind
		status int
		body   string
		want   fault.Code
		says   string
	}{
		{platform.EngineLlamaCpp, 503, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`, fault.PoolUnavailable, "Loading model"},
		{platform.EngineLlamaCpp, 400, `{"error":{"code":400,"message":"the request exceeds the context","type":"exceed_context_size_error"}}`, fault.InvalidParams, "exceeds the context"},
		{platform.EngineLlamaCpp, 401, `{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}`, fault.PoolUnavailable, "key of its pool"},
		{platform.EngineLlamaCpp, 501, `{"error":{"message":"not supported","type":"not_supported_error","code":501}}`, fault.InvalidParams, "not supported"},
		{platform.EngineVLLM, 404, `{"error":{"message":"The model does not exist.","type":"NotFoundError","param":"model","code":404}}`, fault.ModelUnknown, "does not exist"},
		{platform.EngineVLLM, 404, `{"detail":"Not Found"}`, fault.PoolUnavailable, "Not Found"},
		{platform.EngineVLLM, 503, `{"error":{"message":"queue is full","type":"Service Unavailable","code":503}}`, fault.ReplicaExhausted, "queue is full"},
		{platform.EngineVLLM, 500, `{"error":{"message":"EngineCore encountered an issue","type":"InternalServerError","code":500}}`, fault.PoolUnavailable, "EngineCore"},
		{platform.EngineTGI, 422, "Failed to deserialize the JSON body", fault.InvalidParams, "Failed to deserialize"},
		{platform.EngineTGI, 429, `{"error":"Model is overloaded","error_type":"overloaded"}`, fault.ReplicaExhausted, "overloaded"},
		{platform.EngineTriton, 400, "data: {\"error\":\"max_tokens must be within 1..4096\"}\n\n", fault.InvalidParams, "max_tokens must be"},
		{platform.EngineTriton, 404, `{"error":"Request for unknown model: 'tiny' is not found"}`, fault.ModelUnknown, "unknown model"},
		{platform.EngineTriton, 404, `{"error":"Request for unknown model: 'tiny' has no available versions"}`, fault.PoolUnavailable, "unloaded"},
		{platform.EngineTriton, 301, "", fault.PoolUnavailable, "status 301"},
		{platform.EngineVLLM, 502, strings.Repeat("<p>bad gateway\n</p>", 5000), fault.PoolUnavailable, "bad gateway"},
	}
	for _, test := range tests {
		e := serve(t, engine.Config{Kind: test.kind}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, test.body)
		})
		_, _, err := generate(t.Context(), e)
		if f := fault.Of(err); err == nil || f.Code != test.want || !strings.Contains(f.Message, test.says) || len(f.Message) > 700 || strings.Contains(f.Message, "\n") {
			t.Errorf("%s, status %d, %.80s: got %v, want %s with %q", test.kind, test.status, test.body, err, test.want, test.says)
		}
		if answer, ok := errors.AsType[port.EngineAnswer](err); !ok || answer.Status != test.status {
			t.Errorf("%s, status %d, %.80s: got %v, want an answer with the status", test.kind, test.status, test.body, err)
		}
	}
}

// TestModelWithoutVectors has a vLLM whose model generates text. It has no path for other
// workloads.
func TestModelWithoutVectors(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]fault.Code{
		`{"detail":"Not Found"}`: fault.InvalidParams,
		`{"error":{"message":"The model does not exist.","type":"NotFoundError","param":"model","code":404}}`: fault.ModelUnknown,
	} {
		e := serve(t, engine.Config{Kind: platform.EngineVLLM}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(body)) // one chunk: a reader scans a long event again with each
		})
		if _, err := e.Embed(t.Context(), port.Embedding{Model: "tiny", Inputs: []string{"x"}}); !fault.Is(err, want) {
			t.Errorf("embedding, %s: got %v, want %s", body, err, want)
		}
		if _, err := e.Rerank(t.Context(), port.Reranking{Model: "tiny", Query: "x", Documents: []string{"y"}}); !fault.Is(err, want) {
			t.Errorf("reranking, %s: got %v, want %s", body, err, want)
		}
	}
}

func TestKeyIsSentAndNeverShown(t *testing.T) {
	t.Parallel()
	const key = "key-of-the-engine"
	sent := make(chan string, 1)
	e := serve(t, engine.Config{Kind: platform.EngineVLLM, Key: fixed(key)}, func(w http.ResponseWriter, r *http.Request) {
		sent <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusForbidden)
	})
	_, _, err := generate(t.Context(), e)
	if got := <-sent; got != "Bearer "+key {
		t.Errorf("got the header %q, want the key", got)
	}
	if err == nil || strings.Contains(err.Error(), key) || fault.Of(err).Retryable {
		t.Errorf("got %v, want a fault without the key that is not retried", err)
	}
}

func TestRequestIsNotRepeated(t *testing.T) {
	t.Parallel()
	calls := make(chan struct{}, 10)
	e := serve(t, engine.Config{Kind: platform.EngineVLLM}, func(http.ResponseWriter, *http.Request) {
		calls <- struct{}{}
		panic(http.ErrAbortHandler)
	})
	if _, _, err := generate(t.Context(), e); !fault.Is(err, fault.PoolUnavailable) || len(calls) != 1 {
		t.Errorf("got %v after %d requests, want PoolUnavailable after 1", err, len(calls))
	}
}

func TestInvalidConfig(t *testing.T) {
	t.Parallel()
	for field, cfg := range map[string]engine.Config{
		"engine":     {Kind: "other", URL: "http://127.0.0.1:1"},
		"url":        {Kind: platform.EngineVLLM, URL: "127.0.0.1:8081"},
		"metricsUrl": {Kind: platform.EngineVLLM, URL: "http://127.0.0.1:1", MetricsURL: "ftp://x"},
	} {
		_, err := engine.New(cfg)
		if f, ok := errors.AsType[*fault.Fault](err); !ok || f.Field != field || f.Code != fault.InvalidRequest {
			t.Errorf("%+v: got %v, want an invalid %s", cfg, err, field)
		}
	}
	for _, url := range []string{"http://user:secret@host", "http://host?x=1", "http://host#x", "http://"} {
		if _, err := engine.New(engine.Config{Kind: platform.EngineVLLM, URL: url}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an error without the password", url, err)
		}
	}
}

func TestTritonRefusesNamesThatChangeThePath(t *testing.T) {
	t.Parallel()
	e := serve(t, engine.Config{Kind: platform.EngineTriton}, func(http.ResponseWriter, *http.Request) { t.Error("got a request, want none") })
	for _, name := range []string{"", "..", "a/b", "a%2fb", "a?b", ".hidden"} {
		_, err := e.Generate(t.Context(), port.Generation{Model: name, Prompt: "x", MaxTokens: 1}, func(port.Piece) error { return nil })
		if !fault.Is(err, fault.InvalidParams) {
			t.Errorf("model %q: got %v, want InvalidParams", name, err)
		}
	}
}

// FuzzAnswer reads any stream. Generate returns, and succeeds only with a finish reason.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{"data: " + piece + "\n\ndata: " + last + "\n\n", "data: [DONE]\n\n", ":\n\n", `data: {"token":{"text":"a"},"generated_text":"a"}` + "\n\n", `data: {"text_output":"a","finish_reason":"stop"}` + "\n\n"} {
		for kind := range 4 {
			f.Add(seed, kind)
		}
	}
	kinds := []platform.EngineKind{platform.EngineLlamaCpp, platform.EngineVLLM, platform.EngineTGI, platform.EngineTriton}
	f.Fuzz(func(t *testing.T, body string, kind int) {
		e := serve(t, engine.Config{Kind: kinds[max(kind, -kind)&3]}, streamed(body))
		text, end, err := generate(t.Context(), e)
		if err == nil && end.Finish == "" {
			t.Errorf("got %q, %+v without an error, want a finish reason", text, end)
		}
		if err == nil && !strings.Contains(body, "stop") && !strings.Contains(body, "length") && !strings.Contains(body, "generated_text") && !strings.ContainsAny(body, `\eElLwW`) {
			t.Errorf("got success for %q", body)
		}
	})
}

// TestEngineGetsTheTraceContext checks that the server's request has the trace context of the
// call, and no other.
func TestEngineGetsTheTraceContext(t *testing.T) {
	t.Parallel()
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	var got []string
	e := serve(t, engine.Config{Kind: platform.EngineVLLM}, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Traceparent"))
		streamed("data: "+last+"\n\n")(w, r)
	})
	for _, ctx := range []context.Context{t.Context(), port.WithTraceParent(t.Context(), parent)} {
		if _, _, err := generate(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 2 || got[0] != "" || got[1] != parent {
		t.Errorf("got the trace contexts %q, want none and %s", got, parent)
	}
}

// TestPromptThatIsTooLongIsNamed has the messages of servers about a long prompt, and about
// other parameters.
func TestPromptThatIsTooLongIsNamed(t *testing.T) {
	t.Parallel()
	for message, field := range map[string]string{
		"request (1501 tokens) exceeds the available context size (1024 tokens), try increasing it":                                                                              port.FieldPrompt,
		"This model's maximum context length is 1024 tokens. However, your prompt contains at least 1025 input tokens, which exceeds this limit even without any output tokens.": port.FieldPrompt,
		"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).":                                 port.FieldPrompt,
		"Input validation error: `inputs` must have less than 512 tokens. Given: 600":                                                                                            port.FieldPrompt,
		"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 512. Given: 600 `inputs` tokens and 8 `max_new_tokens`":                                           port.FieldPrompt,
		"max_tokens=5000 cannot be greater than max_model_len=1024. Please request fewer output tokens. (parameter=max_tokens, value=5000)":                                      "",
		"You passed 4097 input tokens and requested 1 output tokens. However, the model's context length is only 4096 tokens.":                                                   port.FieldPrompt,
		"The decoder prompt (length 5000) is longer than the maximum model length of 4096.":                                                                                      port.FieldPrompt,
		"Requested token count exceeds the model's maximum context length of 4096 tokens.":                                                                                       port.FieldPrompt,
		"Your input exceeds the context window of this model. Please adjust your input and try again.":                                                                           port.FieldPrompt,
		"temperature must be non-negative, got -1.0.":                                                                                                                            "",
	} {
		e := serve(t, engine.Config{Kind: platform.EngineLlamaCpp}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"code":400,"message":%q,"type":"invalid_request_error"}}`, message)
		})
		_, _, err := generate(t.Context(), e)
		if f := fault.Of(err); f == nil || f.Code != fault.InvalidParams || f.Field != field {
			t.Errorf("%s: got %v of field %q, want InvalidParams of %q", message, err, f.Field, field)
		}
	}
	for _, body := range []string{
		`{"error":{"message":"too much","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
		`{"error":{"message":"too much","type":"exceed_context_size_error","code":400}}`,
	} {
		e := serve(t, engine.Config{Kind: platform.EngineVLLM}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(body))
		})
		if _, _, err := generate(t.Context(), e); fault.Of(err).Field != port.FieldPrompt {
			t.Errorf("%s: got %v, want a fault of the prompt", body, err)
		}
	}
}
