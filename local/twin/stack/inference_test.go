package stack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

var mocked = []stack.EngineAddress{{Kind: platform.EngineMock}}

// ask creates a task of at most tokens tokens for the first engine's model.
func (g *target) ask(tokens int) (task string) {
	g.T.Helper()
	return g.create(contract.TaskRequest{Prompt: "tell a story", MaxTokens: &tokens})
}

// create creates a task, for the first engine's model unless the request names one.
func (g *target) create(request contract.TaskRequest) (task string) {
	g.T.Helper()
	return g.acceptTask(request).TaskID
}

// acceptTask is like create, but returns the whole answer.
func (g *target) acceptTask(request contract.TaskRequest) contract.TaskAccepted {
	g.T.Helper()
	if request.ModelRef == "" {
		request.ModelRef = g.Models[0]
	}
	answer := g.Call(http.MethodPost, "/v1/tasks", string(outside.Encode(g.T, request)))
	if answer.Status != http.StatusAccepted {
		g.T.Fatalf("got %d %s, want 202", answer.Status, answer.Body)
	}
	return outside.Decode[contract.TaskAccepted](g.T, answer.Body)
}

// tokens is the part of a task's stream that one reader has received.
type tokens struct {
	last    string // the id of the last event
	names   []string
	started string // the data of the event started
	count   int
	// results are the data of the results of an embedding or a rerank.
	results []string
	end     outside.Message
	failed  error
	// at, unless nil, is called with the number of events after each of them.
	at func(events int)
}

// read reads events of a task from the reader's position, until the end, a failure, or most
// tokens.
func (r *tokens) read(ctx context.Context, c *outside.Client, task string, most int) {
	s, err := c.Open(ctx, "/v1/tasks/"+task+"/stream", 0, "Last-Event-ID", r.last)
	if err != nil {
		return // the server has stopped
	}
	defer s.Close()
	if s.Status == http.StatusNoContent && r.last != "" {
		return // the reader has the last event
	}
	if s.Status != http.StatusOK || s.Header.Get("Content-Type") != "text/event-stream" || s.Header.Get("X-Correlation-Id") == "" {
		r.failed = fmt.Errorf("got %d %+v with %v, want an event stream", s.Status, s.Problem, s.Header)
		return
	}
	for r.end.Event == "" && r.count < most {
		m, err := s.Next()
		if err != nil {
			return
		}
		if m.Event == "" {
			continue // a comment
		}
		if !isBehind(m.ID, r.last) {
			r.failed = fmt.Errorf("got the event %s behind %s", m.ID, r.last)
			return
		}
		r.last, r.names = m.ID, append(r.names, m.Event)
		if r.at != nil {
			r.at(len(r.names))
		}
		switch m.Event {
		case "started":
			r.started = m.Data
		case "token":
			var token struct {
				T string
				I int
			}
			if err := json.Unmarshal([]byte(m.Data), &token); err != nil || token.I != r.count || token.T == "" {
				r.failed = fmt.Errorf("got token %s as number %d (%w)", m.Data, r.count, err)
				return
			}
			r.count++
		case "result":
			r.results = append(r.results, m.Data)
		case "end", "error":
			r.end = m
		}
	}
}

// isBehind reports whether an event id comes after another.
func isBehind(id, than string) bool {
	position := func(id string) (int64, int) {
		at, n, _ := strings.Cut(id, ".")
		p, _ := strconv.ParseInt(at, 10, 64)
		i, _ := strconv.Atoi(n)
		return p, i
	}
	p, i := position(id)
	q, j := position(than)
	return p > q || p == q && i > j
}

func TestTaskIsAnswered(t *testing.T) {
	t.Parallel()
	g := start(t, served{Engines: mocked})
	task := g.ask(12)
	var whole tokens
	whole.read(t.Context(), g.Client, task, 100)
	if whole.failed != nil || whole.names[0] != "started" || whole.count != 12 || whole.end.Event != "end" || whole.names[1] != "token" || !slices.Contains(whole.names[2:], "metrics") {
		t.Fatalf("got %v with %d tokens (%v), want started, twelve tokens with metrics behind the first ones, end", whole.names, whole.count, whole.failed)
	}
	var end struct {
		TokensOut int   `json:"tokens_out"`
		DecodeMS  int64 `json:"decode_ms"`
	}
	if err := json.Unmarshal([]byte(whole.end.Data), &end); err != nil || end.TokensOut != 12 {
		t.Errorf("got end %s, want 12 tokens", whole.end.Data)
	}
	if state := lastState(g, task); state != string(run.Completed) {
		t.Fatalf("got %s, want Completed", state)
	}
	ended := outside.Get[contract.Task](g.Client, "/v1/tasks/"+task)
	trace := outside.Get[contract.Artifact](g.Client, "/v1/artifacts/"+ended.Inference.TraceID)
	if trace.Kind != "trace" || !strings.Contains(strings.Join(trace.Tags, " "), "sse stream task:"+task) || !strings.Contains(string(trace.Content), "transcript") {
		t.Errorf("got the trace %+v, want that of the task", trace)
	}
	if spent := outside.Get[contract.Budget](g.Client, "/v1/budgets/tenant").Spent; spent.Tokens < 12 || spent.CostNano != spent.Tokens*catalog.DefaultOutputPrice {
		t.Errorf("got %+v spent, want the default price for the 12 tokens and those of the cancelled tasks", spent)
	}
	late := tokens{last: whole.last}
	late.read(t.Context(), g.Client, task, 100)
	if late.failed != nil || len(late.names) != 0 {
		t.Errorf("got %v behind the end (%v), want nothing", late.names, late.failed)
	}
	for header, want := range map[string]int{"7": 400, "x": 400, "-1.1": 400} {
		s, err := g.Open(t.Context(), "/v1/tasks/"+task+"/stream", 0, "Last-Event-ID", header)
		if err != nil || s.Status != want || s.Problem.Field != "Last-Event-ID" {
			t.Errorf("%s: got %d %+v (%v), want %d", header, s.Status, s.Problem, err, want)
		}
	}
}

// TestStartedSaysWhatTheAcceptanceSaid compares the first event with the acceptance, for a task
// that gets a slot immediately and for queued tasks.
func TestStartedSaysWhatTheAcceptanceSaid(t *testing.T) {
	t.Parallel()
	g := start(t, served{Engines: mocked})
	accepted := make([]contract.TaskAccepted, 6) // the mock has four slots
	for i := range accepted {
		accepted[i] = g.acceptTask(contract.TaskRequest{Prompt: "tell a story", MaxTokens: new(500)})
	}
	for _, each := range accepted[1:4] {
		g.Call(http.MethodPost, "/v1/tasks/"+each.TaskID+"/cancel", "")
	}
	first, last := accepted[0], accepted[5]
	if first.QueuePosition != 0 || last.QueuePosition == 0 {
		t.Errorf("got the positions %d and %d, want 0 and a later one", first.QueuePosition, last.QueuePosition)
	}
	for _, each := range []contract.TaskAccepted{first, last} {
		var read tokens
		read.read(t.Context(), g.Client, each.TaskID, 1)
		if want := startedData(each); read.started != want {
			t.Errorf("got started with %s, want %s", read.started, want)
		}
	}
}

// startedData returns the expected data of the event started, from the task's acceptance.
func startedData(of contract.TaskAccepted) string {
	return fmt.Sprintf(`{"queue_position":%d,"predicted_start_ms":%d}`, of.QueuePosition, of.PredictedStartMS)
}

// TestStreamsAreResumedAfterAKill kills the server during 50 streams. A reader gets each event
// once. A stream that had begun ends with an error; the others are answered.
func TestStreamsAreResumedAfterAKill(t *testing.T) {
	t.Parallel()
	resumesAfterAKill(t, served{Data: t.TempDir(), Engines: mocked}, 8)
}

// resumesAfterAKill kills the server during 50 streams of length tokens.
func resumesAfterAKill(t *testing.T, given served, length int) {
	t.Helper()
	first := spawn(t, given)
	const streams = 50
	tasks, readers := make([]string, streams), make([]tokens, streams)
	for i := range tasks {
		tasks[i] = first.ask(length)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	var reading sync.WaitGroup
	half := make(chan struct{}, streams)
	for i, task := range tasks {
		reading.Go(func() {
			readers[i].read(ctx, first.Client, task, 1+i%length)
			half <- struct{}{}
			readers[i].read(ctx, first.Client, task, length+1)
		})
	}
	for range streams / 2 {
		<-half
	}
	first.kill(syscall.SIGKILL)
	reading.Wait()
	again := spawn(t, given)
	outcomes := map[string]int{}
	for i, task := range tasks {
		r := &readers[i]
		r.read(ctx, again.Client, task, length+1)
		if r.failed != nil {
			t.Errorf("task %d: %v", i, r.failed)
			continue
		}
		state := lastState(again.target, task)
		outcomes[r.end.Event+" "+state]++
		whole := tokens{}
		whole.read(ctx, again.Client, task, length+1)
		if strings.Join(whole.names, " ") != strings.Join(r.names, " ") {
			t.Errorf("task %d: got %v in parts and %v at once", i, r.names, whole.names)
		}
		if r.end.Event == "end" && !pieces(given.Engines[0].Kind, r.count, length) || r.end.Event == "error" && !strings.Contains(r.end.Data, `"WORKER_RESET"`) {
			t.Errorf("task %d: got %d pieces and %+v, want %d and end, or an error WORKER_RESET", i, r.count, r.end, length)
		}
	}
	if outcomes["end Completed"]+outcomes["error Failed"] != streams || outcomes["end Completed"] == 0 {
		t.Errorf("got %v, want every stream to end as its task does", outcomes)
	}
	t.Logf("ends of the %d streams: %v", streams, outcomes)
	if held := outside.Get[contract.PoolHealth](again.Client, "/v1/pools/pool0/health").Held; held != 0 {
		t.Errorf("got %d held slots at the end, want none", held)
	}
}

// pieces reports whether an answer of length tokens may have this number of pieces: one for
// each token. vLLM sends several tokens in one piece if it has generated them meanwhile.
func pieces(kind platform.EngineKind, count, length int) bool {
	return count == length || kind == platform.EngineVLLM && count > 0 && count < length
}

// lastState waits until a task has ended and returns its state.
func lastState(g *target, task string) string {
	return g.Await(task, func(s contract.Status) bool { return run.State(s.State).Terminal() }).State
}

// TestCancelsAtRandomMoments cancels 1,000 tasks, each after a random number of the first
// events of its stream. The stream has six: started, three tokens, metrics and end. The last
// event is cancelled, for connected and for later readers, and the slots are free.
func TestCancelsAtRandomMoments(t *testing.T) {
	t.Parallel()
	g := start(t, served{Engines: []stack.EngineAddress{{Kind: platform.EngineMock}, {Kind: platform.EngineMock}}})
	const cancels, atOnce = 1000, 16
	ctx := t.Context()
	var clients sync.WaitGroup
	numbers := make(chan int, cancels)
	for i := range cancels {
		numbers <- i
	}
	close(numbers)
	var mu sync.Mutex
	outcomes := map[string]int{}
	for range atOnce {
		clients.Go(func() {
			for range numbers {
				task := g.ask(3)
				moment, reached := rand.IntN(6), make(chan struct{}) // after as many events
				now := sync.OnceFunc(func() { close(reached) })
				r := tokens{at: func(events int) {
					if events == moment {
						now()
					}
				}}
				var reader sync.WaitGroup
				reader.Go(func() {
					defer now()
					r.read(ctx, g.Client, task, 100)
				})
				if moment > 0 {
					<-reached
				}
				answer := g.Call(http.MethodPost, "/v1/tasks/"+task+"/cancel", "")
				reader.Wait()
				late := tokens{}
				late.read(ctx, g.Client, task, 100)
				state := lastState(g, task)
				mu.Lock()
				outcomes[r.end.Event+" "+state]++
				mu.Unlock()
				cancelled := r.end.Event == "error" && strings.Contains(r.end.Data, `"CANCELLED"`)
				if r.failed != nil || strings.Join(r.names, " ") != strings.Join(late.names, " ") || r.end.Data != late.end.Data {
					t.Errorf("got %v and %v later (%v)", r.names, late.names, r.failed)
				}
				if !cancelled && r.end.Event != "end" || cancelled != (state == string(run.Cancelled)) {
					t.Errorf("got %+v and the state %s, cancel answered %d", r.end, state, answer.Status)
				}
			}
		})
	}
	clients.Wait()
	if outcomes["error Cancelled"] == 0 || outcomes["error Cancelled"]+outcomes["end Completed"] != cancels {
		t.Errorf("got %v, want cancelled and completed tasks", outcomes)
	}
	if health := outside.Get[contract.PoolHealth](g.Client, "/v1/pools/pool0/health"); health.Held != 0 || health.Queued != 0 {
		t.Errorf("got %d held slots and %d queued tasks, want none", health.Held, health.Queued)
	}
}

// TestSessionIsWarmFromItsFirstToken reads the session of a task while its answer is being
// generated.
func TestSessionIsWarmFromItsFirstToken(t *testing.T) {
	t.Parallel()
	g := start(t, served{Engines: mocked})
	length := 200
	task := g.create(contract.TaskRequest{Prompt: "tell a story", MaxTokens: &length, SessionID: "s"})
	var during contract.Session
	r := tokens{at: func(events int) {
		if events == 2 { // started, and the first token
			during = outside.Get[contract.Session](g.Client, "/v1/sessions/s")
			g.Call(http.MethodPost, "/v1/tasks/"+task+"/cancel", "")
		}
	}}
	r.read(t.Context(), g.Client, task, length+1)
	if !during.KVWarmth || during.Turns != 1 {
		t.Errorf("got %+v behind the first token, want a warm session with a turn", during)
	}
}
