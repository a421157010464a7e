package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// TestSlowAnswerBeginsWithWhiteSpace checks answers that are not streamed, for a gateway that
// ends a response without bytes. They start with line ends, after which the status cannot
// change. A fast answer has none.
func TestSlowAnswerBeginsWithWhiteSpace(t *testing.T) {
	t.Parallel()
	const every = 10 * time.Second
	for name, row := range map[string]struct {
		path, body, want string
		failure          error
		slow             bool
	}{
		"chat":      {"/v1/chat/completions", `{"model":"mock","max_tokens":2,"messages":[{"role":"user","content":"a"}]}`, `"chat.completion"`, nil, true},
		"response":  {"/v1/responses", `{"model":"mock","max_output_tokens":2,"input":"a"}`, `"response"`, nil, true},
		"a failure": {"/v1/completions", `{"model":"mock","max_tokens":2,"prompt":"a"}`, `"error"`, fault.New(fault.InvalidParams, "too long"), true},
		"fast":      {"/v1/completions", `{"model":"mock","max_tokens":2,"prompt":"a"}`, `"text_completion"`, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setupPadded(t, every)
			s.engine.hold = make(chan chan error)
			answers := make(chan *http.Response, 1)
			go func() {
				defer close(answers)
				// The client of the stage reads an answer to its end.
				answer, err := http.Post(s.URL+row.path, "application/json", strings.NewReader(row.body))
				if err != nil {
					t.Error(err)
					return
				}
				answers <- answer
			}()
			generate := <-s.engine.hold
			var answer *http.Response
			if row.slow {
				s.Clock.Advance(every)
				answer = <-answers // before the engine has answered
			}
			generate <- row.failure
			if !row.slow {
				answer = <-answers
			}
			if answer == nil {
				t.Fatal("got no answer")
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			if padded := strings.HasPrefix(string(text), "\n"); padded != row.slow || answer.StatusCode != http.StatusOK ||
				answer.Header.Get("Content-Type") != "application/json" || !json.Valid(text) || !strings.Contains(string(text), row.want) {
				t.Errorf("got %d %s with %q, want 200 with %s, behind white space: %t", answer.StatusCode, answer.Header.Get("Content-Type"), text, row.want, row.slow)
			}
		})
	}
}
