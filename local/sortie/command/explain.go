package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/contract"
)

func (a *app) explainRun() *cobra.Command {
	return &cobra.Command{
		Use: "explain RUN", Short: "Explain why a run is in its state",
		Long: `Explain why a run is in its state: what it waits for, each limit that applies with
the runs that hold it, its position, when it is expected to start, and the single
change that would let it start.`,
		Example:           "  sortie explain nightly-report:20270301T020000Z\n  sortie explain export_mods_1704857234567_a3f8c2d1 --json",
		ValidArgsFunction: a.runIDs(),
		RunE: printed(a, byID((*client.Client).Explain), func(x contract.Explanation) error {
			t := a.newFields()
			t.row("run", x.RunID)
			t.row("state", x.State)
			t.reasons(x.RunReasons)
			if p := x.Prediction; p != nil {
				t.row("predicted", a.between(p.P50, p.P90))
				if p.ErrorSeconds != nil {
					t.row("started", fmt.Sprintf("%s, %+.1f s from the prediction", a.Moment(p.StartedAt), *p.ErrorSeconds))
				}
			}
			return a.table(x, t.Table)
		}),
	}
}

// fields is a table of names and values.
type fields struct {
	*display.Table
	*app
}

func (a *app) newFields() fields { return fields{display.NewTable(), a} }

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
		t.row("queued before it", display.Count(int64(*x.Position)))
	}
	for _, l := range x.Limits {
		text := fmt.Sprintf("%d of %d", l.Used, l.Allowed)
		if l.Queued > 0 {
			text += fmt.Sprintf(", %s queued", display.Count(int64(l.Queued)))
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
		t.row("would fall back", "to "+display.Fallback(f))
	}
	t.change(x.Change)
}

func (t fields) change(c *contract.Change) {
	if c != nil {
		t.row("what would help", c.Message)
	}
}

// between describes an expected time with its 50th and 90th percentiles.
func (a *app) between(p50, p90 time.Time) string {
	return a.Moment(p50) + ", in nine of ten cases until " + a.Moment(p90)
}

// planHelp is the help of the flag --plan.
const planHelp = "explain the run without creating it"

func (a *app) showPlan(p contract.Plan) error {
	t := a.newFields()
	t.row("accepted", map[bool]string{true: "yes", false: "no"}[p.Accepted])
	t.reasons(p.RunReasons)
	for _, c := range p.Checks {
		met := "not known yet"
		if c.Met != nil {
			met = map[bool]string{true: "met", false: "violated, action " + c.Action}[*c.Met]
		}
		t.row(c.Constraint, met+": "+c.Message)
	}
	return a.table(p, t.Table)
}

func (a *app) jobsExplain() *cobra.Command {
	return &cobra.Command{
		Use: "explain JOB", Short: "Explain why a job has not fired",
		Long: `Explain what the schedule of a job waits for, how its last firing ended, and which
of its firings were skipped and why.`,
		Example: "  sortie jobs explain nightly-report",
		RunE: printed(a, byID((*client.Client).ExplainJob), func(x contract.JobExplanation) error {
			t := a.newFields()
			t.row("job", x.JobID)
			t.row("reason", x.Reason)
			t.row("because", x.Message)
			t.row("next firing", a.Moment(x.NextAt))
			if f := x.Last; f != nil {
				t.row("last firing", fmt.Sprintf("%s, %s: %s", f.RunID, f.State, f.Message))
			}
			for _, f := range x.Skipped {
				t.row("skipped", f.RunID+": "+f.Message)
			}
			t.change(x.Change)
			return a.table(x, t.Table)
		}),
	}
}
