package openai_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/openai"
)

func TestNumbersOfRequests(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		tokens int
		field  string // of the fault; empty without one
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
