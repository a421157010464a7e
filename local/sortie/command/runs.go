package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/contract"
)

// The formats of a list.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatWide  = "wide"
)

// runsFlags select and format a list of runs.
type runsFlags struct {
	state, batch, pi, format string
	since                    time.Duration
	limit                    int
	all                      bool
}

func (a *app) runs() *cobra.Command {
	var f runsFlags
	c := &cobra.Command{
		Use:   "runs",
		Short: "List runs, newest first",
		Long: `List runs, newest first. The table fits 80 columns; the wide format has all
columns. --state selects on the server, the other filters select from the runs
that it lists.`,
		Example: `  sortie runs
  sortie runs --state running --since 2h
  sortie runs --batch nightly --format wide
  sortie runs --all --format json`,
		Args: exactly(),
	}
	flags := c.Flags()
	flags.StringVar(&f.state, "state", "", "only runs in this state, such as Running")
	flags.StringVar(&f.batch, "batch", "", "only runs of this batch")
	flags.StringVar(&f.pi, "pi", "", "only exports of this record")
	flags.DurationVar(&f.since, "since", 0, "only runs that were created within this time, such as 2h")
	flags.StringVar(&f.format, "format", formatTable, "table, wide or json")
	flags.IntVar(&f.limit, "limit", 20, "how many, 1 to 1000")
	flags.BoolVar(&f.all, "all", false, "all of them")
	complete(c, "state", "", states())
	complete(c, "format", "", []string{formatTable, formatWide, formatJSON})
	c.RunE = does(func(ctx context.Context, _ []string) error { return a.listRuns(ctx, f) })
	return c
}

func (a *app) listRuns(ctx context.Context, f runsFlags) error {
	var err error
	if f.limit < 1 || f.limit > 1000 {
		return wrong("--limit: %d is out of range, want 1 to 1000", f.limit)
	}
	if f.since < 0 {
		return wrong("--since: %s is negative, want a duration such as 2h", f.since)
	}
	if f.state != "" {
		if f.state, err = choice("--state", f.state, states()); err != nil {
			return err
		}
	}
	if f.format, err = choice("--format", f.format, []string{formatTable, formatWide, formatJSON}); err != nil {
		return err
	}
	if a.json {
		f.format = formatJSON
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	list, err := f.read(ctx, c, a.Clock.Now())
	if err != nil {
		return err
	}
	return a.showRuns(list, f)
}

// read reads pages until the limit is reached.
func (f runsFlags) read(ctx context.Context, c *client.Client, now time.Time) (contract.TaskList, error) {
	page := client.Page{State: f.state, Limit: f.limit}
	if f.batch == "" && f.pi == "" && f.since == 0 && !f.all {
		return c.Tasks(ctx, page)
	}
	page.Limit = 1000
	list := contract.TaskList{Tasks: []contract.Task{}}
	for {
		next, err := c.Tasks(ctx, page)
		if err != nil {
			return list, err
		}
		list.NextCursor = next.NextCursor
		for _, task := range next.Tasks {
			if f.since > 0 && task.CreatedAt.Before(now.Add(-f.since)) { // all others are older
				list.NextCursor = ""
				return list, nil
			}
			if f.batch != "" && task.BatchID != f.batch || f.pi != "" && task.PI != f.pi {
				continue
			}
			if !f.all && len(list.Tasks) == f.limit {
				list.NextCursor = "" // the page's cursor would skip runs
				return list, nil
			}
			list.Tasks = append(list.Tasks, task)
		}
		if next.NextCursor == "" || !f.all && len(list.Tasks) == f.limit {
			return list, nil
		}
		page.Cursor = next.NextCursor
	}
}

func (a *app) showRuns(list contract.TaskList, f runsFlags) error {
	if f.format == formatJSON {
		return a.print(list)
	}
	t := display.NewTable("TASK", "STATE", "AGE", "FAULT")
	if f.format == formatWide {
		t = display.NewTable("TASK", "STATE", "ATTEMPT", "FORMAT", "PI", "BATCH", "CREATED", "AGE", "TOOK", "FAULT")
	}
	for _, task := range list.Tasks {
		took, code := "", ""
		if !task.EndedAt.IsZero() {
			took = display.Duration(task.EndedAt.Sub(task.CreatedAt))
		}
		if task.Fault != nil {
			code = task.Fault.Code
		}
		old := age(a.Clock.Now().Sub(task.CreatedAt))
		if f.format == formatWide {
			t.Row(task.TaskID, task.State, fmt.Sprint(task.Attempt), task.Format, task.PI, task.BatchID, moment(task.CreatedAt), old, took, code)
		} else {
			t.Row(task.TaskID, task.State, old, code)
		}
	}
	if _, err := t.WriteTo(a.Stdout); err != nil {
		return err
	}
	switch {
	case len(list.Tasks) == 0:
		a.note("No runs.")
	case list.NextCursor != "" || !f.all && len(list.Tasks) == f.limit:
		a.note("There may be more; --all or a higher --limit shows them.")
	}
	return nil
}
