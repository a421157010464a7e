package suite

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func explanations() []Test {
	return []Test{{Name: "job is explained", Run: jobIsExplained}}
}

func (c *Case) explain(run contract.RunAccepted) contract.Explanation {
	c.T.Helper()
	return outside.Get[contract.Explanation](c.Client, "/v1/runs/"+url.PathEscape(run.RunID)+"/explain")
}

func (c *Case) plan(d any) contract.Plan {
	c.T.Helper()
	planned, _ := send[contract.Plan](c, http.MethodPost, "/v1/runs:plan", string(outside.Encode(c.T, d)), http.StatusOK)
	return planned
}

// limitOf returns the limit of a kind in the reasons of a run.
func (c *Case) limitOf(r contract.RunReasons, kind string) contract.ExplainLimit {
	c.T.Helper()
	i := slices.IndexFunc(r.Limits, func(l contract.ExplainLimit) bool { return l.Kind == kind })
	if i < 0 {
		c.T.Fatalf("got the limits %+v, want one of a %s", r.Limits, kind)
	}
	return r.Limits[i]
}

// jobIsExplained brings a job into each situation in which it does not fire.
func jobIsExplained(c *Case) {
	path := c.job("explained", document{"image": "a"})
	want := func(reason, change string) contract.JobExplanation {
		c.T.Helper()
		x := outside.Get[contract.JobExplanation](c.Client, path+"/explain")
		kind := ""
		if x.Change != nil {
			kind = x.Change.Kind
		}
		if x.JobID != jobID(path) || x.Reason != reason || x.Message == "" || kind != change {
			c.T.Errorf("got %+v with the change %q, want %s with %q", x, kind, reason, change)
		}
		return x
	}
	patch := func(body string) {
		c.T.Helper()
		answer := c.Call(http.MethodPatch, path, body)
		if answer.Status != http.StatusOK {
			c.T.Fatalf("got %d %s, want 200", answer.Status, answer.Body)
		}
	}
	want("no_schedule", "set_schedule")
	patch(`{"schedule": "0 2 29 2 *"}`)
	if x := want("next_firing", ""); x.NextAt.IsZero() || x.WakeAt.Before(x.NextAt) || x.Last != nil {
		c.T.Errorf("got %+v, want the next firing and no last one", x)
	}
	c.pause(path)
	want("paused", "resume_job")
	c.resume(path)
	at := c.soon(path, 2*time.Second)
	patch(fmt.Sprintf(`{"schedule": "@at %s", "image": "unknown/image:1", "retryConfig": {"maxRetries": 0}}`, at.Format(time.RFC3339)))
	run := c.runsThat(path, 1, func(contract.Task) bool { return true })[0]
	if x := want("schedule_over", "set_schedule"); x.Last == nil || x.Last.RunID != run.RunID || !x.Last.ScheduledAt.Equal(at) {
		c.T.Errorf("got the last firing %+v, want %s", x.Last, run.RunID)
	}
	c.cancelRun(run.RunID)
	send[contract.Problem](c, http.MethodGet, c.jobPath("unknown")+"/explain", "", http.StatusNotFound)
}
