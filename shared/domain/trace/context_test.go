package trace_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/trace"
)

const client = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestTraceParentIsParsedLikeTheRecommendation(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		client: client,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00":      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03":      client, // another flag
		"01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01":      client, // a later version
		"fe-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more": client,
		"01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more":  "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more": "",
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01":      "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01":      "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01":      "",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01":      "",
		"00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01":      "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0":       "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01":      "",
		"": "",
	} {
		if c, ok := trace.Parse(text); c.String() != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", text, c, ok, want)
		}
	}
}

func TestIDsFollowFromTheRun(t *testing.T) {
	t.Parallel()
	one := run.Run{Tenant: "a", ID: "nightly:1", Attempt: run.Attempt{Number: 1}}
	seen := map[string]string{trace.Of(one).Trace.String(): "one"}
	for name, other := range map[string]run.Run{
		"another tenant": {Tenant: "b", ID: "nightly:1"},
		"another run":    {Tenant: "a", ID: "nightly:2"},
	} {
		id := trace.Of(other).Trace.String()
		if of, known := seen[id]; known {
			t.Errorf("%s: got the trace of %s, want another", name, of)
		}
		seen[id] = name
	}
	again := one
	again.Version, again.State = 9, run.Running
	if trace.Of(again) != trace.Of(one) || trace.OfAttempt(again) != trace.OfAttempt(one) {
		t.Errorf("got %v and %v, want the same for a later record", trace.Of(again), trace.Of(one))
	}
	again.Attempt.Number = 2
	if first, second := trace.OfAttempt(one), trace.OfAttempt(again); first.Trace != second.Trace || first.Span == second.Span || !first.Sampled {
		t.Errorf("got %s and %s, want two spans of one sampled trace", first, second)
	}
}

func TestRunIsPartOfTheClientsTrace(t *testing.T) {
	t.Parallel()
	c, ok := trace.Parse(client)
	if !ok {
		t.Fatalf("%s is no context", client)
	}
	r := run.Run{Tenant: "a", ID: "1", TraceParent: client, Attempt: run.Attempt{Number: 1}}
	if got := trace.OfAttempt(r); got.Trace != c.Trace || got.Span == c.Span || !got.Sampled {
		t.Errorf("got %s, want a span of its own in the trace of %s", got, client)
	}
	r.TraceParent = client[:len(client)-1] + "0"
	if got := trace.OfAttempt(r); got.Sampled {
		t.Errorf("got %s, want a trace that is not sampled", got)
	}
}
