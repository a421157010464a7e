package main

import "testing"

func TestDifference(t *testing.T) {
	t.Parallel()
	succeeded := recording{Status: "SUCCEEDED", Output: map[string]any{"at": "<timestamp>", "n": 1.0}, States: []string{"A", "B"}, Ordered: true}
	failed := recording{Status: "FAILED", Error: "States.Timeout", Cause: "The request took too long to answer, so it was given up (AWS)"}
	for name, c := range map[string]struct {
		recorded recording
		got      played
		want     string
	}{
		"the same":           {succeeded, played{Status: "SUCCEEDED", Output: map[string]any{"at": "now", "n": 1.0}, States: []string{"A", "B"}}, ""},
		"output in a string": {succeeded, played{Status: "SUCCEEDED", Output: `{"at": 5, "n": 1}`, States: []string{"A", "B"}}, ""},
		"another number":     {succeeded, played{Status: "SUCCEEDED", Output: map[string]any{"at": "now", "n": 2.0}, States: []string{"A", "B"}}, "the output"},
		"another member":     {succeeded, played{Status: "SUCCEEDED", Output: map[string]any{"at": "now", "m": 1.0}, States: []string{"A", "B"}}, "the output"},
		"another order":      {succeeded, played{Status: "SUCCEEDED", Output: map[string]any{"at": "", "n": 1.0}, States: []string{"B", "A"}}, "the entered states"},
		"another status":     {succeeded, played{Status: "FAILED"}, "the status is FAILED, recorded was SUCCEEDED"},
		"a longer cause":     {failed, played{Status: "FAILED", Error: "States.Timeout", Cause: "The request took too long to answer, so it was given up"}, ""},
		"another cause":      {failed, played{Status: "FAILED", Error: "States.Timeout", Cause: "No answer"}, "the cause"},
		"another error":      {failed, played{Status: "FAILED", Error: "States.ALL"}, "the error is States.ALL, recorded was States.Timeout"},
	} {
		if got := c.recorded.difference(c.got); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
