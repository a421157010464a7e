package suite

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func inferenceTasks() []Test {
	needs := []Capability{MockEngine}
	return []Test{
		{Name: "inference task streams its answer and continues behind an event", Requires: needs, Run: onEngines(taskIsStreamed)},
		{Name: "cancel is the last event of an inference task", Requires: needs, Run: onEngines(taskIsCancelled)},
		{Name: "queued inference task is served after the one before", Requires: needs, Run: onEngines(taskIsQueued)},
		{Name: "OpenAI's API answers from the engine of a pool", Requires: needs, Run: onEngines(chatIsAnswered)},
		{Name: "inference task is refused with the field", Requires: needs, Run: onEngines(taskIsRefused)},
		{Name: "reasoning of an engine is kept beside its answer", Requires: needs, Run: reasoningIsKept},
		{Name: "session has a limit before its first task", Requires: needs, Run: sessionIsLimited},
		{Name: "large inference request is stored in the bucket and repeated", Requires: needs, Run: largeRequest},
		{Name: "inference request has several answers, and an image", Requires: needs, Run: severalAnswers},
		{Name: "deleted response and one that is not stored are deleted", Requires: needs, Run: deletedAnswers},
		{Name: "deadline of a header ends an answer of OpenAI's API", Requires: needs, Run: onEngines(chatIsLate)},
		{Name: "pool is offered to another tenant", Requires: []Capability{MockEngine, OtherTokens}, Run: poolIsOffered},
	}
}

// served is an inference server that a target can use.
type served struct {
	kind    string
	replica document
	// context limits a text. long is the length of an answer that can be cancelled. Both are in
	// tokens.
	context, long int
}

// onEngines runs a test with the mock engine, and with the target's llama-server if it has one.
func onEngines(test func(c *Case, e served)) func(*Case) {
	return func(c *Case) {
		c.T.Helper()
		test(c, served{kind: "mock", replica: document{}, context: 32768, long: 20000})
		if c.Target.LlamaServer != "" {
			test(c, served{kind: "llamacpp", replica: document{"url": c.Target.LlamaServer}, context: 2048, long: 1500})
		}
	}
}

// serve creates a pool with an engine and its own model. done removes both.
func (c *Case) serve(e served, name string, slots int) (model string, done func()) {
	c.T.Helper()
	name = e.kind + "-" + name
	model = c.Batch(name)
	send[contract.Model](c, http.MethodPost, "/v1/catalog/models", `{"id":"`+model+`","engines":["`+e.kind+fmt.Sprintf(`"],"context_tokens":%d}`, e.context), http.StatusCreated)
	pool, _ := c.pool(name, document{"engine": document{"kind": e.kind, "model": model, "slots": slots, "replicas": []document{e.replica}}})
	return model, func() {
		c.T.Helper()
		// An answer ends before the run of its task does.
		c.eventually("pool without tasks", func() bool { return outside.Get[contract.Pool](c.Client, pool).Held == 0 })
		c.removePool(pool)
		if answer := c.Call(http.MethodDelete, "/v1/catalog/models/"+model, ""); answer.Status != http.StatusNoContent {
			c.T.Errorf("got %d %s for the removal of the model, want 204", answer.Status, answer.Body)
		}
	}
}

// ask creates an inference task.
func (c *Case) ask(model, more string) string {
	c.T.Helper()
	accepted, _ := send[contract.TaskAccepted](c, http.MethodPost, "/v1/tasks", `{"model_ref":"`+model+`","prompt":"tell a story"`+more+`}`, http.StatusAccepted)
	return accepted.TaskID
}

// streamed reads the events of a task after an id, up to the last one.
func (c *Case) streamed(task, after string) (events []outside.Message) {
	c.T.Helper()
	s := c.open(c.T.Context(), "/v1/tasks/"+task+"/stream?after="+after, 0)
	defer s.Close()
	for {
		m, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c.T.Fatal(err)
		}
		if m.Event != "" { // not a comment
			events = append(events, m)
		}
	}
	if len(events) == 0 {
		c.T.Fatalf("got no event of %s behind %q", task, after)
	}
	return events
}

// inState waits until a task is in a state.
func (c *Case) inState(task, state string) (found contract.Task) {
	c.T.Helper()
	c.eventually("state "+state+" of "+task, func() bool {
		found = outside.Get[contract.Task](c.Client, "/v1/tasks/"+task)
		return found.State == state
	})
	return found
}

func tokensOf(events []outside.Message) (n int) {
	for _, e := range events {
		if e.Event == "token" {
			n++
		}
	}
	return n
}

func taskIsStreamed(c *Case, e served) {
	const tokens = 12
	model, done := c.serve(e, "streams", 2)
	defer done()
	task := c.ask(model, `,"max_tokens":12,"labels":{"team":"data"},"session_id":"`+c.Batch("talk")+`"`)
	if found := outside.Get[contract.TaskList](c.Client, "/v1/runs?label=team%3Ddata&kind=inference"); !slices.ContainsFunc(found.Tasks, func(r contract.Task) bool { return r.TaskID == task && r.Labels["team"] == "data" }) {
		c.T.Errorf("got no task %s with its label", task)
	}
	events := c.streamed(task, "")
	last := events[len(events)-1]
	if events[0].Event != "started" || last.Event != "end" || tokensOf(events) != tokens {
		c.T.Fatalf("got %v, want started, %d tokens and end", events, tokens)
	}
	if rest := c.streamed(task, events[4].ID); len(rest) != len(events)-5 || rest[0] != events[5] {
		c.T.Errorf("got %v behind %s, want the events %v", rest, events[4].ID, events[5:])
	}
	if answer := c.Call(http.MethodGet, "/v1/tasks/"+task+"/stream?after="+last.ID, ""); answer.Status != http.StatusNoContent {
		c.T.Errorf("got %d %s behind the last event, want 204", answer.Status, answer.Body)
	}
	ended := c.inState(task, "Completed")
	if i := ended.Inference; i == nil || i.TokensOut == nil || *i.TokensOut != tokens || i.TraceID == "" {
		c.T.Errorf("got %+v, want %d tokens and a transcript", ended.Inference, tokens)
	}
}

func taskIsCancelled(c *Case, e served) {
	model, done := c.serve(e, "cancels", 2)
	defer done()
	task := c.ask(model, fmt.Sprintf(`,"max_tokens":%d`, e.long))
	c.inState(task, "Running")
	c.cancel(task, http.StatusAccepted)
	events := c.streamed(task, "")
	if last := events[len(events)-1]; last.Event != "error" || !strings.Contains(last.Data, `"CANCELLED"`) {
		c.T.Errorf("got %v as the last event, want error with CANCELLED", last)
	}
	c.inState(task, "Cancelled")
}

func taskIsQueued(c *Case, e served) {
	model, done := c.serve(e, "queues", 1)
	defer done()
	first, second := c.ask(model, `,"max_tokens":150`), c.ask(model, `,"max_tokens":5`)
	for task, tokens := range map[string]int{first: 150, second: 5} {
		c.inState(task, "Completed")
		if got := tokensOf(c.streamed(task, "")); got != tokens {
			c.T.Errorf("got %d tokens of %s, want %d", got, task, tokens)
		}
	}
}

func chatIsAnswered(c *Case, e served) {
	model, done := c.serve(e, "openai", 2)
	defer done()
	answer := c.Call(http.MethodPost, "/v1/chat/completions", `{"model":"`+model+`","max_tokens":5,"messages":[{"role":"user","content":"hello"}]}`)
	type completion struct {
		Choices []struct {
			Message struct{ Content string }
			Finish  string `json:"finish_reason"`
		}
		Usage struct {
			Tokens int `json:"completion_tokens"`
		}
	}
	if answer.Status != http.StatusOK {
		c.T.Fatalf("got %d %s, want an answer", answer.Status, answer.Body)
	}
	got := outside.Decode[completion](c.T, answer.Body)
	if len(got.Choices) != 1 || got.Choices[0].Message.Content == "" || got.Choices[0].Finish != "length" || got.Usage.Tokens != 5 {
		c.T.Errorf("got %s, want a message of 5 tokens", answer.Body)
	}
}

func taskIsRefused(c *Case, e served) {
	model, done := c.serve(e, "refuses", 2)
	defer done()
	for body, want := range map[string]struct {
		status      int
		code, field string
	}{
		`{"model_ref":"` + model + `","prompt":"a","deadline_ms":86400001}`:                    {http.StatusBadRequest, "DEADLINE_UNMET", "deadline_ms"},
		`{"model_ref":"` + model + `","prompt":"a","max_tokens":50001}`:                        {http.StatusBadRequest, "INVALID_PARAMS", "max_tokens"},
		`{"model_ref":"` + model + fmt.Sprintf(`","prompt":"a","max_tokens":%d}`, e.context+1): {http.StatusBadRequest, "INVALID_PARAMS", "max_tokens"},
		`{"model_ref":"no-such-model","prompt":"a"}`:                                           {http.StatusNotFound, "MODEL_UNKNOWN", ""},
	} {
		p, _ := send[contract.Problem](c, http.MethodPost, "/v1/tasks", body, want.status)
		if p.Code != want.code || p.Field != want.field {
			c.T.Errorf("%s: got %s of %q, want %s of %q", body, p.Code, p.Field, want.code, want.field)
		}
	}
}

func chatIsLate(c *Case, e served) {
	model, done := c.serve(e, "late", 2)
	defer done()
	body := fmt.Sprintf(`{"model":"%s","max_tokens":%d,"messages":[{"role":"user","content":"hello"}]}`, model, e.long)
	for deadline, want := range map[string]int{"0": http.StatusBadRequest, "700": http.StatusGatewayTimeout} {
		answer := c.Call(http.MethodPost, "/v1/chat/completions", body, "X-Deadline-Ms", deadline)
		if answer.Status != want || !strings.Contains(string(answer.Body), `"code":"deadline_unmet"`) {
			c.T.Errorf("got %d %s for a deadline of %s ms, want %d with deadline_unmet", answer.Status, answer.Body, deadline, want)
		}
	}
}

// reasoningIsKept checks that the reasoning is separate from the answer. The mock engine
// reasons if the prompt is cause-reasoning.
func reasoningIsKept(c *Case) {
	model, done := c.serve(served{kind: "mock", replica: document{}, context: 32768}, "reasons", 2)
	defer done()
	accepted, _ := send[contract.TaskAccepted](c, http.MethodPost, "/v1/tasks", `{"model_ref":"`+model+`","prompt":"cause-reasoning","max_tokens":8}`, http.StatusAccepted)
	texts, counts := map[string]string{}, map[string]int{}
	for _, e := range c.streamed(accepted.TaskID, "") {
		if e.Event == "token" || e.Event == "reasoning" {
			piece := outside.Decode[struct {
				T string
				I int
			}](c.T, []byte(e.Data))
			if piece.I != counts[e.Event] {
				c.T.Errorf("got %s with the number %d, want %d", e.Event, piece.I, counts[e.Event])
			}
			texts[e.Event] += piece.T
			counts[e.Event]++
		}
	}
	if counts["reasoning"] != 4 || counts["token"] != 4 {
		c.T.Errorf("got %v, want 4 pieces of each", counts)
	}
	ended := c.inState(accepted.TaskID, "Completed")
	if i := ended.Inference; i == nil || i.TokensOut == nil || *i.TokensOut != 8 || i.ReasoningTokens != 4 {
		c.T.Errorf("got %+v, want 8 tokens, 4 of them reasoning", ended.Inference)
		return
	}
	kept := outside.Get[struct {
		Content struct{ Transcript, Reasoning string }
	}](c.Client, "/v1/artifacts/"+ended.Inference.TraceID).Content
	if kept.Transcript != texts["token"] || kept.Reasoning != texts["reasoning"] {
		c.T.Errorf("got %+v, want %v", kept, texts)
	}
	answer := c.Call(http.MethodPost, "/v1/chat/completions", `{"model":"`+model+`","max_tokens":8,"messages":[{"role":"user","content":"cause-reasoning"}]}`)
	got := outside.Decode[struct {
		Choices []struct {
			Message struct {
				Content          string
				ReasoningContent string `json:"reasoning_content"`
			}
		}
		Usage struct {
			Details struct {
				Tokens int `json:"reasoning_tokens"`
			} `json:"completion_tokens_details"`
		}
	}](c.T, answer.Body)
	if len(got.Choices) != 1 || got.Choices[0].Message.ReasoningContent == "" || got.Choices[0].Message.Content == "" || got.Usage.Details.Tokens != 4 {
		c.T.Errorf("got %d %s, want a message with its reasoning of 4 tokens", answer.Status, answer.Body)
	}
}

// sessionIsLimited sets the limit of a session without tasks, and checks the remaining amounts.
func sessionIsLimited(c *Case) {
	model, done := c.serve(served{kind: "mock", replica: document{}, context: 32768}, "limits", 2)
	defer done()
	session := c.Batch("limited")
	send[contract.Budget](c, http.MethodPut, "/v1/budgets/session:"+session, `{"tokens":100}`, http.StatusOK)
	ask := func(tokens, status int) http.Header {
		c.T.Helper()
		answer := c.Call(http.MethodPost, "/v1/tasks", fmt.Sprintf(`{"model_ref":"%s","prompt":"abcd","max_tokens":%d,"session_id":"%s"}`, model, tokens, session))
		if answer.Status != status {
			c.T.Fatalf("got %d %s for %d tokens, want %d", answer.Status, answer.Body, tokens, status)
		}
		return answer.Header
	}
	refused := ask(101, http.StatusTooManyRequests)
	if refused.Get("Retry-After") == "" || refused.Get("X-Should-Retry") != "false" {
		c.T.Errorf("got %v, want Retry-After, and X-Should-Retry false", refused)
	}
	header := ask(9, http.StatusAccepted)
	if left := header.Get("X-Budget-Tokens-Remaining"); left == "" {
		c.T.Errorf("got %v, want the tokens that are left", header)
	}
	for _, name := range []string{"X-Budget-Time-Remaining-Ms", "X-Budget-Cost-Remaining"} {
		if left := header.Get(name); left != "" {
			c.T.Errorf("got %s: %s, want none without a limit", name, left)
		}
	}
}
