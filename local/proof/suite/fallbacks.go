package suite

import (
	"strings"

	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// fullRegion is a region without capacity that only the test of fallbacks uses.
const fullRegion = "qro"

func fallbacks() []Test {
	return []Test{{
		Name: "start without capacity falls back to another pool", Requires: []Capability{Programs, Faults, SeeMachines},
		Faults: map[string][]faults.Rule{"one": {{Kind: faults.Capacity, Region: fullRegion}}}, Run: fallBack,
	}}
}

// fallBack runs a program in a pool without capacity. It ends in the fallback pool, and plan,
// explanation, status and run show the fallback.
func fallBack(c *Case) {
	sparePath, spare := c.pool("spare", document{"limit": 1})
	fullPath, full := c.pool("full", document{
		"runner": "fly", "settings": document{"regions": []string{fullRegion}}, "limit": 1,
		"fallback": []document{{"pool": spare, "on": []string{"capacity"}}},
	})
	held, release := c.holder(document{"pool": spare})
	d := script("true").with("pool", full)
	if planned := c.plan(d); len(planned.Fallback) != 1 || planned.Fallback[0].Pool != spare {
		c.T.Errorf("got the plan %+v, want the fallback to %s in it", planned, spare)
	}
	accepted := c.startProgram(d)
	queued := c.Await(accepted.TaskID, func(s contract.Status) bool { return s.QueuePosition != nil && s.Pool == spare })
	if len(queued.FellBack) != 1 || queued.Attempt != 1 {
		c.T.Errorf("got %+v, want a run that is queued in %s after attempt 1", queued, spare)
	}
	x := c.explain(accepted)
	if len(x.FellBack) != 1 || x.Reason != "pool_full" || !strings.Contains(x.Message, full) || c.limitOf(x.RunReasons, "pool").Name != spare {
		c.T.Errorf("got the explanation %+v, want a run that waits for %s and was in %s", x, spare, full)
	}
	release()
	c.End(held.TaskID)
	run := c.ended(accepted)
	if run.State != "Completed" || run.Attempt != 2 || run.FailedStarts != 0 || run.Pool != spare || len(run.FellBack) != 1 {
		c.T.Fatalf("got %+v, want Completed in attempt 2 in %s, without a failed start", run, spare)
	}
	if f := run.FellBack[0]; f.From != full || f.To != spare || f.Reason != "capacity" || f.Attempt != 1 || f.Message == "" {
		c.T.Errorf("got the fallback %+v, want one from %s to %s for capacity with the platform's message", f, full, spare)
	}
	if events := c.Faults(accepted.TaskID); !strings.Contains(events, "start_refused:CAPACITY") {
		c.T.Errorf("got fault events %q, want the refused start", events)
	}
	c.removePool(fullPath)
	c.removePool(sparePath)
}
