package apitest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/domain/usage"
	"github.com/sortie-dev/sortie/shared/port"
)

// Charge stores an inference task of the tenant that has used a generation at a price of 10, 1 and
// 100 nano-dollars for an input, a cached and an output token.
func (s *Stage) Charge(t *testing.T, tenant, model, key, session string, g run.Generation, at time.Time) {
	t.Helper()
	first := run.Run{
		Tenant: tenant, Workspace: "main", CorrelationID: "of-the-test", Policy: spec.Policy{TimeLimit: time.Minute, RecordRetention: time.Hour, StartTimeout: time.Minute, HeartbeatInterval: 10 * time.Second, HeartbeatTimeout: time.Minute}, Slot: platform.Slot{Pool: "pool0"},
		Work: spec.Work{Kind: spec.KindInference, Inference: &spec.Inference{
			Model: model, Engine: "mock", Workload: "completion", SessionID: session, Request: json.RawMessage(`{}`), MaxTokens: 1000, Within: time.Minute,
		}},
		Reservation: (run.Reservation{
			Scopes: []string{budget.ScopeTenant}, Key: key, Prices: usage.Prices{InputPrice: 10, CachedPrice: new(int64(1)), OutputPrice: 100},
		}).Renewed(budget.Amount{Turns: 1, Tokens: 10_000, TimeMS: 60_000, CostNano: 1_000_000}),
	}
	var entropy [10]byte
	entropy[0] = byte(s.charges.Add(1)) //nolint:gosec // a test has few charges
	first.TaskID = spec.InferenceTaskID(at, entropy)
	first.ID = first.TaskID
	d := run.New(first, at)
	if _, err := s.Store.Create(t.Context(), port.WriteOf(d), nil); err != nil {
		t.Fatal(err)
	}
	r := d.Run
	r.Version = 1
	for _, fact := range []run.Fact{
		run.Admitted{Pool: "pool0"},
		run.WorkerContacted{Attempt: 1, WorkerID: "w", Started: true},
		run.GenerationEnded{Attempt: 1, Stream: &run.StreamEnd{Outcome: run.OutcomeSucceeded}, Generation: &g},
	} {
		d, err := run.Decide(r, fact, at)
		if err == nil {
			err = s.Store.Commit(t.Context(), port.WriteOf(d))
		}
		if err != nil {
			t.Fatalf("%T: %v", fact, err)
		}
		r = d.Run
		r.Version++
	}
}
