package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// answering starts a server with one inference task. It cuts the first stream after cut events.
func answering(t *testing.T, cut int, events ...string) (env map[string]string, asked *contract.TaskRequest) {
	t.Helper()
	asked = &contract.TaskRequest{}
	var opened atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/tasks", func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(asked); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"task_id":"inf_1","queue_position":0,"predicted_start_ms":0}`)
	})
	mux.HandleFunc("GET /v1/tasks/inf_1/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		last, first := r.Header.Get("Last-Event-ID"), 0
		if last == "" {
			last = r.URL.Query().Get("after")
		}
		_, _ = fmt.Sscanf(last, "%d.1", &first)
		send := events[first:]
		if opened.Add(1) == 1 && cut > 0 {
			send = events[:cut]
		}
		for i, e := range send {
			_, _ = fmt.Fprintf(w, "id: %d.1\n%s\n\n", first+i+1, e)
		}
	})
	var shown atomic.Int64 // the record ends a moment after the stream
	mux.HandleFunc("GET /v1/runs/inf_1", func(w http.ResponseWriter, _ *http.Request) {
		state := "Running"
		if shown.Add(1) > 1 {
			state = "Completed"
		}
		_, _ = fmt.Fprintf(w, `{"taskId":"inf_1","kind":"inference","state":%q}`, state)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return map[string]string{"SORTIE_URL": server.URL}, asked
}

func token(i int, text string) string {
	data, _ := json.Marshal(map[string]any{"t": text, "i": i})
	return "event: token\ndata: " + string(data)
}

const (
	started = "event: started\ndata: {\"queue_position\":0,\"predicted_start_ms\":0}"
	ended   = "event: end\ndata: {\"tokens_out\":2,\"decode_ms\":1500}"
)

func TestAskShowsTheAnswer(t *testing.T) {
	t.Parallel()
	for _, cut := range []int{0, 2} {
		env, asked := answering(t, cut, started, token(0, "Hello"), token(1, " there\x1b"), ended)
		got := sortie(t, env, "a letter", "ask", "llama", "-", "--system", "Be short.", "--max-tokens", "7", "--seed", "0", "--deadline", "3s")
		if got.code != 0 || got.stdout != "Hello there\\x1b\n" || !strings.Contains(got.stderr, "2 tokens in 1.5 s, run inf_1") {
			t.Errorf("cut %d: got %d, %q and %q, want the answer", cut, got.code, got.stdout, got.stderr)
		}
		if asked.ModelRef != "llama" || asked.Prompt != "" || len(asked.Messages) != 2 || *asked.Messages[1].Content != "a letter" ||
			*asked.MaxTokens != 7 || *asked.Seed != 0 || *asked.DeadlineMS != 3000 || asked.Temperature != nil {
			t.Errorf("got the request %+v", asked)
		}
	}
	env, asked := answering(t, 0, started, token(0, "Hello"), ended)
	var task struct{ TaskID, State, Answer string }
	got := sortie(t, env, "", "ask", "llama", "Greet", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &task); err != nil || got.code != 0 || task.Answer != "Hello" || task.State != "Completed" || asked.Prompt != "Greet" {
		t.Errorf("got %d and %q, want the task with its answer", got.code, got.stdout)
	}
}

// TestAskShowsTheReasoning checks that the reasoning appears only if requested.
func TestAskShowsTheReasoning(t *testing.T) {
	t.Parallel()
	thought := strings.Replace(token(0, "because"), "event: token", "event: reasoning", 1)
	for args, want := range map[string]struct{ stdout, stderr string }{
		"":            {"Hello\n", "2 tokens in 1.5 s, run inf_1\n"},
		"--reasoning": {"Hello\n", "because\n2 tokens in 1.5 s, run inf_1\n"},
	} {
		env, _ := answering(t, 0, started, thought, token(0, "Hello"), ended)
		got := sortie(t, env, "", strings.Fields("ask mock hi "+args)...)
		if got.code != 0 || got.stdout != want.stdout || got.stderr != want.stderr {
			t.Errorf("%s: got %d %q and %q, want %q and %q", args, got.code, got.stdout, got.stderr, want.stdout, want.stderr)
		}
	}
	env, _ := answering(t, 0, started, thought, token(0, "Hello"), ended)
	if got := sortie(t, env, "", "ask", "mock", "hi", "--json"); !strings.Contains(got.stdout, `"answer": "Hello"`) || !strings.Contains(got.stdout, `"reasoning": "because"`) {
		t.Errorf("got %s, want the answer and the reasoning", got.stdout)
	}
}

func TestAskNamesWhatAFlagWants(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{"--seed": "a whole number", "--temperature": "a number", "--deadline": "a duration such as 90s"} {
		if got := sortie(t, nil, "", "ask", "llama", "Greet", flag, "x"); got.code != 2 || !strings.Contains(got.stderr, "want "+want) {
			t.Errorf("%s: got %d and %q, want %s", flag, got.code, got.stderr, want)
		}
	}
}

func TestAskReportsAFailure(t *testing.T) {
	t.Parallel()
	env, _ := answering(t, 0, started, token(0, "Hel"), "event: error\ndata: {\"code\":\"WORKER_RESET\",\"message\":\"the engine is gone\",\"engine\":\"vllm\"}")
	got := sortie(t, env, "", "ask", "llama", "Greet")
	if got.code != 1 || got.stdout != "Hel\n" || !strings.Contains(got.stderr, "WORKER_RESET: the engine is gone") {
		t.Errorf("got %d, %q and %q, want the failure", got.code, got.stdout, got.stderr)
	}
	refused := (&api{refuse: contract.Problem{Status: 404, Code: "MODEL_UNKNOWN", Detail: "no pool serves the model"}}).start(t)
	if got := sortie(t, refused, "", "ask", "llama", "Greet"); got.code == 0 || !strings.Contains(got.stderr, "no pool serves the model") {
		t.Errorf("got %d and %q, want the refusal", got.code, got.stderr)
	}
}

func TestInterruptedAskCancelsItsTask(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	cancelled := make(chan string, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/tasks", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"task_id":"inf_1","queue_position":0,"predicted_start_ms":0}`)
	})
	mux.HandleFunc("GET /v1/tasks/inf_1/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		interrupt()
		<-r.Context().Done()
	})
	mux.HandleFunc("POST /v1/tasks/inf_1/cancel", func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		cancelled <- string(text)
		_, _ = io.WriteString(w, `{"taskId":"inf_1","state":"Running","result":"requested"}`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	got := sortieUntil(ctx, map[string]string{"SORTIE_URL": server.URL}, "", "ask", "llama", "Greet")
	if got.code != 130 || !strings.Contains(got.stderr, "the run inf_1 was cancelled") {
		t.Errorf("got %d and %q, want an interrupted command that says so", got.code, got.stderr)
	}
	select {
	case reason := <-cancelled:
		if !strings.Contains(reason, "interrupted") {
			t.Errorf("got the cancel request %s, want a reason", reason)
		}
	default:
		t.Error("got no cancel request")
	}
}

// interrupting is a standard output that interrupts the command after its first write.
type interrupting struct {
	strings.Builder
	interrupt func()
}

func (w *interrupting) Write(p []byte) (int, error) {
	w.interrupt()
	return w.Builder.Write(p)
}

func TestInterruptedAnswerEndsItsLine(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	env, _ := answering(t, 0, started, token(0, "Hel"))
	out := &interrupting{interrupt: interrupt}
	if code := sortieTo(ctx, out, env, "ask", "llama", "Greet"); code != 130 || out.String() != "Hel\n" {
		t.Errorf("got %d and %q, want an interrupted line that ends", code, out.String())
	}
}
