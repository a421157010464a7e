package api

import (
	"cmp"
	"time"

	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/domain/explain"
	"github.com/sortie-dev/sortie/shared/domain/forecast"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Explanation returns the response of GET /v1/runs/{run_id}/explain.
func Explanation(x jobs.ExplainedRun) contract.Explanation {
	r := x.Run
	shown := contract.Explanation{
		RunID: r.ID, TaskID: r.TaskID, JobID: r.JobID, State: string(r.State), RunReasons: runReasons(x.Explanation), Graph: graphOf(x.Graph),
	}
	// A run that ended without a start has no prediction to show. For other runs the prediction
	// shows how accurate it was.
	if p := r.Prediction; p != nil && (!r.State.Terminal() || !p.Started.IsZero()) {
		shown.Prediction = predictionOf(r.Prediction)
	}
	return shown
}

func runReasons(x explain.Explanation) contract.RunReasons {
	shown := contract.RunReasons{
		Reason: string(x.Reason), Message: x.Message, Until: x.Until, Limits: make([]contract.ExplainLimit, 0, len(x.Limits)), Change: changeOf(x.Change),
		FellBack: fellBack(x.FellBack), Fallback: poolFallback(x.Fallbacks),
	}
	if x.Position >= 0 {
		shown.Position = &x.Position
	}
	if e := x.Expected; e != nil {
		shown.Expected = &contract.ExpectedStart{P50: e.P50, P90: e.P90, Measured: e.Measured, Basis: e.Basis()}
	}
	for _, l := range x.Limits {
		one := contract.ExplainLimit{
			Kind: string(l.Kind), Name: l.Name, Used: l.Used, Allowed: l.Allowed, Queued: l.Queued, Holders: make([]contract.Holder, 0, len(l.Holders)),
		}
		for _, h := range l.Holders {
			one.Holders = append(one.Holders, contract.Holder{
				RunID: h.RunID, TaskID: h.TaskID, JobID: h.JobID, State: string(h.State), Since: h.Since, Cancelling: h.Cancelling,
			})
		}
		shown.Limits = append(shown.Limits, one)
	}
	return shown
}

func changeOf(c *explain.Change) *contract.Change {
	if c == nil {
		return nil
	}
	shown := &contract.Change{Kind: string(c.Kind), Name: c.Name, Message: c.String()}
	if c.To > 0 {
		shown.From, shown.To = &c.From, &c.To
	}
	return shown
}

func predictionOf(p *forecast.Prediction) *contract.Prediction {
	if p == nil {
		return nil
	}
	at := func(ms int64) time.Time { return p.At.Add(time.Duration(ms) * time.Millisecond) }
	shown := &contract.Prediction{At: p.At, P50: at(p.P50), P90: at(p.P90), Measured: p.Measured, StartedAt: p.Started}
	if late, _, ok := p.Error(); ok {
		shown.ErrorSeconds = new(seconds(late))
	}
	return shown
}

// Plan returns the response of POST /v1/runs:plan.
func Plan(p explain.Planned) contract.Plan {
	shown := contract.Plan{Accepted: p.Accepted, RunReasons: runReasons(p.Explanation), Checks: make([]contract.PlanCheck, 0, len(p.Checks))}
	for _, c := range p.Checks {
		one := contract.PlanCheck{Constraint: string(c.Constraint), Message: c.Message, Action: string(c.Action)}
		if c.Known {
			one.Met = &c.Met
		}
		shown.Checks = append(shown.Checks, one)
	}
	return shown
}

// JobExplanation returns the response of GET /v1/jobs/{job_id}/explain.
func JobExplanation(x jobs.ExplainedJob) contract.JobExplanation {
	shown := contract.JobExplanation{
		JobID: x.Job.ID, Reason: string(x.Reason), Message: x.Message, WakeAt: x.Job.WakeAt,
		Skipped: make([]contract.JobFiring, 0, len(x.Skipped)), Change: changeOf(x.Change), Graph: graphOf(x.JobExplanation.Graph),
	}
	if !x.Job.Paused {
		shown.NextAt = x.Job.NextAt
	}
	if x.Last != nil {
		shown.Last = new(firingOf(*x.Last))
	}
	for _, f := range x.Skipped {
		shown.Skipped = append(shown.Skipped, firingOf(f))
	}
	for _, n := range x.Upstream {
		one := contract.JobUpstream{JobID: n.JobID, When: string(cmp.Or(n.When, run.WhenSuccess))}
		if n.Run != nil {
			one.RunID, one.State = n.Run.ID, string(n.Run.State)
		}
		if met, known := explain.Met(n); known {
			one.Met = &met
		}
		shown.Upstream = append(shown.Upstream, one)
	}
	return shown
}

func graphOf(graph []explain.GraphJob) (shown []contract.GraphJob) {
	for _, g := range graph {
		one := contract.GraphJob{JobID: g.Job.ID, Name: g.Job.Definition.Name, Paused: g.Job.Paused, After: make([]contract.GraphAfter, 0, len(g.Job.Definition.After))}
		for _, a := range g.Job.Definition.After {
			one.After = append(one.After, contract.GraphAfter{JobID: a.Job, When: string(cmp.Or(a.When, run.WhenSuccess))})
		}
		if g.Run != nil {
			one.RunID, one.State, one.Skipped = g.Run.ID, string(g.Run.State), g.Run.Skipped
		}
		shown = append(shown, one)
	}
	return shown
}

func firingOf(f explain.FiringExplanation) contract.JobFiring {
	return contract.JobFiring{
		RunID: f.Run.ID, ScheduledAt: f.Run.ScheduledAt, State: string(f.Run.State), Skipped: f.Run.Skipped,
		Reason: string(f.Reason), Message: f.Message,
	}
}
