package openai_test

import (
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/openai"
)

func TestNumbersOfRequests(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		tokens int
		field  string // the field of the fault; empty if no fault is expected
	}{
		`{"model":"m","prompt":"a","max_tokens":1e1,"temperature":1.0,"seed":-2.0}`: {10, ""},
		`{"model":"m","prompt":"a","max_tokens":10}`:                                {10, ""},
		`{"model":"m","prompt":"a","max_tokens":1.5}`:                               {0, "max_tokens"},
		`{"model":"m","prompt":"a","max_tokens":1e300}`:                             {0, "max_tokens"},
		`{"model":"m","prompt":"a","max_tokens":0.0}`:                               {0, "max_tokens"},
		`{"model":"m","prompt":"a","best_of":2}`:                                    {0, "best_of"},
		`{"model":"m","prompt":"a","temperature":"1"}`:                              {0, "temperature"},
	} {
		q, err := openai.ParseCompletion([]byte(body))
		switch f := fault.Of(err); {
		case want.field != "" && (err == nil || f.Field != want.field):
			t.Errorf("%s: got %v, want a fault of %s", body, err, want.field)
		case want.field == "" && (err != nil || q.MaxTokens != want.tokens):
			t.Errorf("%s: got %d tokens (%v), want %d", body, q.MaxTokens, err, want.tokens)
		}
	}
	if _, err := openai.ParseChat([]byte(`{"model":"m","messages":[{"role":"user","content":"a"}],"top_logprobs":2}`)); fault.Of(err).Field != "top_logprobs" {
		t.Errorf("got %v, want a fault of top_logprobs", err)
	}
}

// TestWrongValuesAreNamed checks that a fault has the path of the invalid member, with the index
// in an array, and that its message says which value is valid.
func TestWrongValuesAreNamed(t *testing.T) {
	t.Parallel()
	chat := func(body string) error { return second(openai.ParseChat([]byte(body))) }
	embedding := func(body string) error { return second(openai.ParseEmbedding([]byte(body))) }
	response := func(body string) error {
		_, _, err := openai.ParseResponse([]byte(body))
		return err
	}
	const user = `{"model":"m","messages":[{"role":"user","content":"a"}],`
	long := strings.Repeat("é", 64)
	for _, row := range []struct {
		parse             func(string) error
		body, field, says string
	}{
		{chat, user + `"n":"1"}`, "n", "want an integer"},
		{chat, user + `"temperature":"1"}`, "temperature", "want a number"},
		{chat, user + `"stream":1}`, "stream", "want true or false"},
		{chat, user + `"response_format":"text"}`, "response_format", "want an object"},
		{chat, user + `"response_format":{}}`, "response_format.type", "missing type"},
		{chat, user + `"response_format":null}`, "", ""},
		{chat, `{"model":"m","messages":"a"}`, "messages", "want an array of messages"},
		{chat, `{"model":"m","messages":[{"role":"user","content":"a"},"b"]}`, "messages.1", "want an object"},
		{chat, `{"model":"m","messages":[null]}`, "messages.0", "want a message"},
		{chat, `{"model":"m","messages":[{"role":5,"content":"a"}]}`, "messages.0.role", "want a string"},
		{chat, `{"model":"m","messages":[{"role":"user","content":[{"type":"text"}]}]}`, "messages.0.content.0.text", "missing text"},
		{embedding, `{"model":"m","input":"a","encoding_format":""}`, "encoding_format", "want float or base64"},
		{embedding, `{"model":"m","input":"a","encoding_format":null}`, "", ""},
		{response, `{"model":"m","input":[{"role":"user","content":"a"},"b"]}`, "input.1", "want an object"},
		{response, `{"model":"m","input":[{"type":"message","role":5}]}`, "input.0.role", "want a string"},
		{response, `{"model":"m","input":"a","text":{"format":{}}}`, "text.format.type", "missing type"},
		{response, `{"model":"m","input":"a","text":{}}`, "", ""},
		{response, `{"model":"m","input":"a","metadata":{"` + long + `":"a"}}`, "", ""},
		{response, `{"model":"m","input":"a","metadata":{"` + long + `x":"a"}}`, "metadata", "at most 64 characters"},
	} {
		switch f := fault.Of(row.parse(row.body)); {
		case row.field == "" && f != nil:
			t.Errorf("%.120s: got %v, want no fault", row.body, f)
		case row.field != "" && (f == nil || f.Field != row.field || !strings.Contains(f.Message, row.says)):
			t.Errorf("%.120s: got %v, want %q of %s", row.body, f, row.says, row.field)
		}
	}
}

func second[T any](_ T, err error) error { return err }
