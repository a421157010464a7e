package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/sortie/schedule"
)

// graphRuns is the number of newest runs of a job from which its duration is estimated.
const graphRuns = 20

// simulatedJob is a job of the graph of a simulated firing.
type simulatedJob struct {
	JobID    string   `json:"jobId"`
	After    []string `json:"after"`
	StartsAt string   `json:"startsAt"`
	EndsAt   string   `json:"endsAt"`
	Critical bool     `json:"critical"`
	// TakesSeconds is the median of the Measured newest runs; 0 without one.
	TakesSeconds float64 `json:"takesSeconds"`
	Measured     int     `json:"measured"`
}

// graphOf reads the graph of a stored job with the durations of its jobs; nil for a job alone.
func (a *app) graphOf(ctx context.Context, id string) ([]schedule.Node, error) {
	c, err := a.Client()
	if err != nil {
		return nil, err
	}
	x, err := c.ExplainJob(ctx, id)
	if err != nil {
		return nil, err
	}
	nodes := make([]schedule.Node, len(x.Graph))
	for i, g := range x.Graph {
		nodes[i].JobID = g.JobID
		for _, after := range g.After {
			nodes[i].After = append(nodes[i].After, after.JobID)
		}
		if nodes[i].Takes, nodes[i].Measured, err = duration(ctx, c, g.JobID); err != nil {
			return nil, fmt.Errorf("runs of job %s: %w", g.JobID, err)
		}
	}
	return nodes, nil
}

// duration returns the median duration of the newest ended runs of a job, and their number.
func duration(ctx context.Context, c *client.Client, id string) (median time.Duration, measured int, err error) {
	page, err := c.JobRuns(ctx, id, client.Page{Limit: graphRuns})
	if err != nil {
		return 0, 0, err
	}
	var took []time.Duration
	for _, r := range page.Runs {
		if m := r.Measured; !r.EndedAt.IsZero() && !r.Skipped {
			took = append(took, time.Duration((m.TotalSeconds-m.PreRunSeconds)*float64(time.Second)))
		}
	}
	return schedule.Median(took), len(took), nil
}

// simulatedJobs returns the jobs of the graph of a firing at a time.
func simulatedJobs(nodes []schedule.Node, at time.Time) []simulatedJob {
	found := make([]simulatedJob, len(nodes))
	for i, n := range nodes {
		found[i] = simulatedJob{
			JobID: n.JobID, After: append([]string{}, n.After...), Critical: n.Critical, TakesSeconds: n.Takes.Seconds(), Measured: n.Measured,
			StartsAt: at.Add(n.Starts).UTC().Format(time.RFC3339), EndsAt: at.Add(n.Ends).UTC().Format(time.RFC3339),
		}
	}
	return found
}

// nodeText describes a job of the graph of a firing at a time.
func nodeText(n schedule.Node, at time.Time) string {
	text := fmt.Sprintf("  %s at %s", n.JobID, at.Add(n.Starts).Format(time.TimeOnly))
	switch n.Measured {
	case 0:
		text += ", no run measured"
	case 1:
		text += fmt.Sprintf(", takes %s in one run", display.Duration(n.Takes))
	default:
		text += fmt.Sprintf(", takes %s in %d runs", display.Duration(n.Takes), n.Measured)
	}
	if n.Critical {
		text += ", critical"
	}
	return text
}

// afterFirst returns the nodes of the jobs that come after a job, also after these, with the job.
func afterFirst(nodes []schedule.Node, id string) []schedule.Node {
	in := map[string]bool{id: true}
	return slices.DeleteFunc(nodes, func(n schedule.Node) bool {
		in[n.JobID] = in[n.JobID] || slices.ContainsFunc(n.After, func(up string) bool { return in[up] })
		return !in[n.JobID]
	})
}
