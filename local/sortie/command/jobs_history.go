package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// history is the run history of a job and its next firing.
type history struct {
	contract.JobRuns
	// NextAt is zero if no firing follows.
	NextAt time.Time `json:"nextAt,omitzero"`
}

func (a *app) jobsHistory() *cobra.Command {
	limit := 20
	c := &cobra.Command{
		Use: "history JOB", Short: "List the firings and the other runs of a job, newest first",
		Long: `List the firings and the other runs of a job, newest first: how each ended, how
long it took, and why it was skipped or failed. Firings that were missed together
are one line with their number. A summary and the next firing follow.`,
		Example: "  sortie jobs history nightly-report --limit 100",
	}
	c.Flags().IntVar(&limit, "limit", limit, "how many, 1 to 1000")
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		if limit < 1 || limit > 1000 {
			return cli.Wrong("--limit: %d is out of range, want 1 to 1000", limit)
		}
		c, err := a.Client()
		if err != nil {
			return err
		}
		list, err := c.JobRuns(ctx, args[0], client.Page{Limit: limit})
		if err != nil {
			return err
		}
		j, err := c.Job(ctx, args[0])
		next := a.Schedule(j.JobAnswer)
		if p, ok := errors.AsType[*client.Problem](err); ok && p.Status == http.StatusNotFound {
			next, err = "The job was deleted", nil
		}
		if err != nil {
			return err
		}
		return a.showHistory(history{list, j.NextAt}, next)
	})
	return c
}

func (a *app) showHistory(h history, next string) error {
	if a.JSON {
		return a.Print(h)
	}
	t := display.NewTable("RUN", "STATE", "TRIGGER", "VERSION", "AGE", "TOOK", "WHY")
	outcomes := map[string]int{}
	for _, r := range h.Runs {
		state, took := r.State, ""
		if r.Skipped {
			state += " (skipped)"
		} else if !r.EndedAt.IsZero() {
			seconds := r.Measured.TotalSeconds - r.Measured.PreRunSeconds
			took = display.Duration(time.Duration(seconds * float64(time.Second)))
		}
		outcomes[state] += display.Firings(r)
		t.Row(r.RunID, state, r.Trigger, fmt.Sprint(r.JobVersion), display.Age(a.Clock.Now().Sub(r.CreatedAt)), took, a.Reason(r))
	}
	if _, err := t.WriteTo(a.Stdout); err != nil {
		return err
	}
	counts := []string{"No runs"}
	for i, outcome := range slices.Sorted(maps.Keys(outcomes)) {
		counts = append(counts[:i], fmt.Sprintf("%d %s", outcomes[outcome], outcome))
	}
	a.Note("%s. %s.", strings.Join(counts, ", "), next)
	return nil
}
