package access_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/budget"
)

func TestGrantAllowsModels(t *testing.T) {
	t.Parallel()
	one := access.Grant{Models: []string{"a"}}
	if !one.Allows("a") || one.Allows("b") || one.Allows("A") || one.Allows("") || !(access.Grant{}).Allows("b") {
		t.Error("got another selection, want the listed model, and all without a list")
	}
}

func TestGrantIsPartOfTheRecord(t *testing.T) {
	t.Parallel()
	token := access.Full("alice", "text", "t", "p")
	token.Grant = access.Grant{Models: []string{"a"}, Budget: &budget.Allowance{CostNano: 5, Period: budget.Day}, RequestsPerMinute: 3}
	text, err := json.Marshal(token)
	if err != nil || !strings.Contains(string(text), `"models":["a"],"budget":{"costNanodollars":5,"period":"day"},"requestsPerMinute":3}`) {
		t.Fatalf("got %s, %v", text, err)
	}
	if problems := access.Validate([]access.Token{token}); problems != nil {
		t.Errorf("got %v", problems)
	}
	if text, err := json.Marshal(access.Full("bob", "text", "t", "p")); err != nil || strings.Contains(string(text), "models") {
		t.Errorf("got %s, %v, want no limits", text, err)
	}
}

func TestWrongGrantsAreRefused(t *testing.T) {
	t.Parallel()
	for want, g := range map[string]access.Grant{
		"records[0].models: malformed":            {Models: []string{""}},
		`models: malformed model "a b"`:           {Models: []string{"a b"}},
		"models: model \"a\" is listed twice":     {Models: []string{"a", "a"}},
		"models: 101 models, want at most 100":    {Models: slices.Repeat([]string{"a"}, 101)},
		"records[0].budget: unknown period":       {Budget: &budget.Allowance{CostNano: 1}},
		"budget: an amount of 0":                  {Budget: &budget.Allowance{Period: budget.Day}},
		"requestsPerMinute: -1 is out of range":   {RequestsPerMinute: -1},
		"requestsPerMinute: 1000001 is out of ra": {RequestsPerMinute: access.MostRate + 1},
	} {
		token := access.Full("alice", "text", "t", "p")
		token.Grant = g
		if _, err := access.Add(nil, token); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
