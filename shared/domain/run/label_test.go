package run_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

func TestLabelsChange(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)
	for state, end := range map[run.State]bool{run.Pending: false, run.Cancelled: true} {
		r := run.New(run.Run{Tenant: "t", ID: "a", TaskID: "a", Labels: map[string]string{"team": "data", "env": "dev"}}, now).Run
		r = decide(t, r, run.CancelRequested{}, now, end)
		owner := "ana"
		change := label.Change{"env": nil, "absent": nil, "<b>": nil, "owner": &owner}
		d, err := run.Decide(r, run.Relabelled{Change: change, By: run.Actor{Subject: "token:1"}}, now.Add(time.Hour))
		if err != nil || d.Run.State != state || label.Text(d.Run.Labels) != "owner=ana,team=data" || label.Text(r.Labels) != "env=dev,team=data" {
			t.Fatalf("%s: got %s with %v, %v, want the changed labels", state, d.Run.State, d.Run.Labels, err)
		}
		if len(d.Events) != 1 || d.Events[0].Type != run.EventLabelsChanged || d.Events[0].Message != "env-,owner=ana" || d.Events[0].Actor.Subject != "token:1" || d.Events[0].Ends() {
			t.Errorf("%s: got events %+v, want one with the change", state, d.Events)
		}
		if !d.Run.Execution.ActBy.Equal(r.Execution.ActBy) || len(d.Effects) > 0 {
			t.Errorf("%s: got %v with %v, want the execution unchanged", state, d.Run.Execution, d.Effects)
		}
		if again, err := run.Decide(d.Run, run.Relabelled{Change: change}, now); err != nil || again.Changed {
			t.Errorf("%s: got %+v, %v for the same change, want none", state, again, err)
		}
		bad := "a b"
		if _, err := run.Decide(r, run.Relabelled{Change: label.Change{"x": &bad}}, now); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%s: got %v for a malformed value, want INVALID_REQUEST", state, err)
		}
	}
}

func TestRetryKeepsLabels(t *testing.T) {
	t.Parallel()
	if again := (run.Run{Labels: map[string]string{"a": "b"}}).ForRetry(); again.Labels["a"] != "b" {
		t.Errorf("got labels %v, want those of the run", again.Labels)
	}
}

// decide applies the fact if wanted.
func decide(t *testing.T, r run.Run, f run.Fact, now time.Time, wanted bool) run.Run {
	t.Helper()
	if !wanted {
		return r
	}
	d, err := run.Decide(r, f, now)
	if err != nil {
		t.Fatal(err)
	}
	return d.Run
}
