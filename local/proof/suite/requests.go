package suite

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// mocked is the mock engine as it is.
var mocked = served{kind: "mock", replica: document{}, context: 32768}

// largeRequest sends a request that is too large for the record of its task, runs the task again, and
// sends one above the limit.
func largeRequest(c *Case) {
	model, done := c.serve(mocked, "large", 2)
	defer done()
	prompt := strings.Repeat("<", 90_000) // six bytes each in the record
	accepted, _ := send[contract.TaskAccepted](c, http.MethodPost, "/v1/tasks", `{"model_ref":"`+model+`","max_tokens":5,"prompt":"`+prompt+`"}`, http.StatusAccepted)
	c.inState(accepted.TaskID, "Completed")
	again, _ := send[contract.Task](c, http.MethodPost, "/v1/tasks/"+accepted.TaskID+"/retry", "", http.StatusAccepted)
	c.inState(again.TaskID, "Completed")
	for _, task := range []string{accepted.TaskID, again.TaskID} {
		if n := tokensOf(c.streamed(task, "")); n != 5 {
			c.T.Errorf("got %d tokens of %s, want 5", n, task)
		}
	}
	answer := c.Call(http.MethodPost, "/v1/embeddings", `{"model":"`+model+`","input":"`+strings.Repeat("x", 4<<20)+`"}`)
	if got := string(answer.Body); answer.Status != http.StatusRequestEntityTooLarge || !strings.Contains(got, "4194304") {
		c.T.Errorf("got %d %.200s, want 413 with the limit", answer.Status, got)
	}
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	send[contract.Problem](c, http.MethodPost, "/v1/tasks", `{"model_ref":"`+model+`","prompt":"a","engine_options":{"grammar":`+deep+`}}`, http.StatusBadRequest)
}

// severalAnswers reads two answers of a chat with an image, and those of two prompts.
func severalAnswers(c *Case) {
	model, done := c.serve(mocked, "answers", 2)
	defer done()
	const image = `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgpwaXhlbHM="}}`
	for path, body := range map[string]string{
		"/v1/chat/completions": `"n":2,"messages":[{"role":"user","content":[{"type":"text","text":"what is it?"},` + image + `]}]`,
		"/v1/completions":      `"prompt":["a","b"]`,
	} {
		answer := c.Call(http.MethodPost, path, fmt.Sprintf(`{"model":"%s","seed":1,"max_tokens":3,%s}`, model, body))
		got := outside.Decode[struct {
			Choices []struct {
				Index   int
				Text    string
				Message struct{ Content string }
			}
			Usage struct {
				Tokens int `json:"completion_tokens"`
			}
		}](c.T, answer.Body)
		if len(got.Choices) != 2 || got.Choices[1].Index != 1 || got.Choices[0].Text+got.Choices[0].Message.Content == "" || got.Usage.Tokens != 6 {
			c.T.Errorf("%s: got %d %s, want two answers of 3 tokens", path, answer.Status, answer.Body)
		}
	}
}

// deletedAnswers deletes a stored response, and has answers that are not stored. Their usage remains.
func deletedAnswers(c *Case) {
	model, done := c.serve(mocked, "deletes", 2)
	defer done()
	for _, row := range []struct{ path, body, prefix string }{
		{"/v1/responses", `"input":"a secret","max_output_tokens":3`, "resp_"},
		{"/v1/responses", `"input":"a secret","max_output_tokens":3,"store":false`, "resp_"},
		{"/v1/chat/completions", `"messages":[{"role":"user","content":"a secret"}],"max_tokens":3,"store":false`, "chatcmpl-"},
	} {
		answer := c.Call(http.MethodPost, row.path, `{"model":"`+model+`",`+row.body+`}`)
		id := strings.TrimPrefix(outside.Decode[struct{ ID string }](c.T, answer.Body).ID, row.prefix)
		trace := c.inState("inf_"+id, "Completed").Inference.TraceID
		gone := []string{"GET /v1/responses/resp_" + id, "GET /v1/tasks/inf_" + id + "/stream"}
		if !strings.Contains(row.body, "store") {
			c.Call(http.MethodDelete, "/v1/responses/resp_"+id, "")
			gone = append(gone, "GET /v1/artifacts/"+trace)
		}
		for _, each := range append(gone, "POST /v1/tasks/inf_"+id+"/retry") {
			method, path, _ := strings.Cut(each, " ")
			c.eventually("404 of "+each, func() bool { return c.Call(method, path, "").Status == http.StatusNotFound })
		}
		if i := outside.Get[contract.Task](c.Client, "/v1/tasks/inf_"+id).Inference; i.TraceID != "" || i.TokensOut == nil || *i.TokensOut != 3 {
			c.T.Errorf("got %+v, want the usage alone", i)
		}
	}
}
