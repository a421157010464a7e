package suite

import (
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// mocked is the mock engine as it is.
var mocked = served{kind: "mock", replica: document{}, context: 32768}

// largeRequest sends a request that is too large for the record of its task, runs the task again, and
// sends one above the limit.
func largeRequest(c *Case) {
	const tokens = 5
	model, done := c.serve(mocked, "large", 2)
	defer done()
	prompt := strings.Repeat("<", 90_000) // six bytes each in the record
	accepted, _ := send[contract.TaskAccepted](c, http.MethodPost, "/v1/tasks", `{"model_ref":"`+model+`","max_tokens":5,"prompt":"`+prompt+`"}`, http.StatusAccepted)
	if n := tokensOf(c.streamed(accepted.TaskID, "")); n != tokens {
		c.T.Errorf("got %d tokens, want %d", n, tokens)
	}
	c.inState(accepted.TaskID, "Completed")
	again, _ := send[contract.Task](c, http.MethodPost, "/v1/tasks/"+accepted.TaskID+"/retry", "", http.StatusAccepted)
	c.inState(again.TaskID, "Completed")
	if n := tokensOf(c.streamed(again.TaskID, "")); n != tokens {
		c.T.Errorf("got %d tokens of a retry, want %d", n, tokens)
	}
	answer := c.Call(http.MethodPost, "/v1/embeddings", `{"model":"`+model+`","input":"`+strings.Repeat("x", 4<<20)+`"}`)
	if got := string(answer.Body); answer.Status != http.StatusRequestEntityTooLarge || !strings.Contains(got, "4194304") {
		c.T.Errorf("got %d %.200s, want 413 with the limit", answer.Status, got)
	}
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	p, _ := send[contract.Problem](c, http.MethodPost, "/v1/tasks", `{"model_ref":"`+model+`","prompt":"a","engine_options":{"grammar":`+deep+`}}`, http.StatusBadRequest)
	if p.Code != "INVALID_REQUEST" && p.Code != "INVALID_PARAMS" {
		c.T.Errorf("got %s for deep JSON, want it refused", p.Code)
	}
}
