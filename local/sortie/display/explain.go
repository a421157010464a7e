package display

import (
	"fmt"
	"math"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// fields is a table of names and values.
type fields struct {
	*Table
	Times
}

func (z Times) fields() fields { return fields{NewTable(), z} }

// row adds a value unless it is empty.
func (t fields) row(name, value string) {
	if value != "" {
		t.Row(name, value)
	}
}

func (t fields) reasons(x contract.RunReasons) {
	t.row("reason", x.Reason)
	t.row("because", x.Message)
	t.row("until", t.Moment(x.Until))
	if x.Position != nil {
		t.row("queued before it", Count(int64(*x.Position)))
	}
	for _, l := range x.Limits {
		text := fmt.Sprintf("%d of %d", l.Used, l.Allowed)
		if l.Queued > 0 {
			text += fmt.Sprintf(", %s queued", Count(int64(l.Queued)))
		}
		name := "limit " + l.Kind
		if l.Name != "" {
			name += " " + l.Name
		}
		t.row(name, text)
		for _, h := range l.Holders {
			t.row("  held by", fmt.Sprintf("%s, %s since %s", h.RunID, h.State, t.Moment(h.Since)))
		}
	}
	if e := x.Expected; e != nil {
		t.row("expected start", t.between(e.P50, e.P90)+" ("+e.Basis+")")
	}
	for _, f := range x.FellBack {
		t.row("fallback", t.fellBack(f))
	}
	for _, f := range x.Fallback {
		t.row("would fall back", "to "+Fallback(f))
	}
	t.change(x.Change)
}

func (t fields) change(c *contract.Change) {
	if c != nil {
		t.row("what would help", c.Message)
	}
}

// between describes an expected time with its 50th and 90th percentiles.
func (z Times) between(p50, p90 time.Time) string {
	return z.Moment(p50) + ", in nine of ten cases until " + z.Moment(p90)
}

// Explanation returns a table of an explanation.
func (z Times) Explanation(x contract.Explanation) *Table {
	t := z.fields()
	t.row("run", x.RunID)
	t.row("state", x.State)
	t.reasons(x.RunReasons)
	if p := x.Prediction; p != nil {
		t.row("predicted", z.between(p.P50, p.P90))
		if p.ErrorSeconds != nil {
			t.row("started", fmt.Sprintf("%s, %+.1f s from the prediction", z.Moment(p.StartedAt), math.Round(10**p.ErrorSeconds)/10+0))
		}
	}
	for _, g := range x.Graph {
		t.row("graph", graphJob(g))
	}
	return t.Table
}

// JobExplanation returns a table of an explanation.
func (z Times) JobExplanation(x contract.JobExplanation) *Table {
	t := z.fields()
	t.row("job", x.JobID)
	t.row("reason", x.Reason)
	t.row("because", x.Message)
	t.row("next firing", z.Moment(x.NextAt))
	for _, u := range x.Upstream {
		t.row("after "+u.JobID, upstream(u))
	}
	if f := x.Last; f != nil {
		t.row("last firing", fmt.Sprintf("%s, %s: %s", f.RunID, f.State, f.Message))
	}
	for _, f := range x.Skipped {
		t.row("skipped", f.RunID+": "+f.Message)
	}
	for _, g := range x.Graph {
		t.row("graph", graphJob(g))
	}
	t.change(x.Change)
	return t.Table
}

// graphJob describes a job of a graph: what it comes after, and its run.
func graphJob(g contract.GraphJob) string {
	text := g.JobID
	for i, a := range g.After {
		text += map[bool]string{true: " after ", false: ", "}[i == 0] + a.JobID + " (" + a.When + ")"
	}
	if g.RunID != "" {
		text += ": " + g.RunID + " is " + g.State
	}
	return text
}

// upstream describes a job that another one comes after.
func upstream(u contract.JobUpstream) string {
	text := "no run is awaited"
	if u.RunID != "" {
		text = u.RunID + " is " + u.State
	}
	if u.Met != nil {
		text += map[bool]string{true: ", as needed", false: ", not as needed"}[*u.Met]
	}
	return text + " (when: " + u.When + ")"
}

// Plan returns a table of the plan of a run.
func (z Times) Plan(p contract.Plan) *Table {
	t := z.fields()
	t.row("accepted", map[bool]string{true: "yes", false: "no"}[p.Accepted])
	t.reasons(p.RunReasons)
	for _, c := range p.Checks {
		met := "not known yet"
		if c.Met != nil {
			met = map[bool]string{true: "met", false: "violated, action " + c.Action}[*c.Met]
		}
		t.row(c.Constraint, met+": "+c.Message)
	}
	return t.Table
}
