package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// The formats of a list.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatWide  = "wide"
)

// runsFlags select and format a list of runs.
type runsFlags struct {
	runsFilter
	batch, pi, format string
	limit             int
	all, watch        bool
}

func (a *app) runs() *cobra.Command {
	var f runsFlags
	c := &cobra.Command{
		Use:   "runs",
		Short: "List runs, newest first",
		Long: `List runs, newest first. The table fits 80 columns; the wide format has all
columns. --batch, --pi and several states select from the runs that the server
lists, the other filters select on the server.

--watch shows the newest runs and the pools until it is interrupted: on a terminal
as a table that is drawn again, elsewhere as a line for each change, and with
--json as an object for each change. It waits for a server that restarts.`,
		Example: `  sortie runs
  sortie runs --state running --since 2h
  sortie runs --job nightly-report --fault PROGRAM_EXIT
  sortie runs -l team=data,env!=dev
  sortie runs --batch nightly --format wide
  sortie runs --all --format json
  sortie runs --watch`,
	}
	f.define(c)
	flags := c.Flags()
	flags.StringVar(&f.batch, "batch", "", "only runs of this batch")
	flags.StringVar(&f.pi, "pi", "", "only exports of this record")
	flags.StringVar(&f.format, "format", formatTable, "table, wide or json")
	flags.IntVar(&f.limit, "limit", 20, "how many, 1 to 1000")
	flags.BoolVar(&f.all, "all", false, "all of them")
	flags.BoolVar(&f.watch, "watch", false, "show changes until interrupted")
	argument.Complete(c, "format", "", []string{formatTable, formatWide, formatJSON})
	c.RunE = cli.Does(func(ctx context.Context, _ []string) error { return a.listRuns(ctx, f) })
	for _, of := range []*cobra.Command{a.cancelRuns(), a.retryRuns(), a.labelRuns(), a.pinRuns("pin"), a.pinRuns("unpin"), a.redeliverActions(), a.childrenOfRun()} {
		a.ServerFlags(of)
		c.AddCommand(of)
	}
	return c
}

func (a *app) listRuns(ctx context.Context, f runsFlags) error {
	if f.limit < 1 || f.limit > 1000 {
		return cli.Wrong("--limit: %d is out of range, want 1 to 1000", f.limit)
	}
	filter, err := f.runsFilter.read(a.Clock.Now())
	if err != nil {
		return err
	}
	if f.format, err = argument.Choice("--format", f.format, []string{formatTable, formatWide, formatJSON}); err != nil {
		return err
	}
	if a.JSON {
		f.format = formatJSON
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	if f.watch {
		if f.format == formatJSON {
			a.JSON = true
		}
		return a.watchRuns(ctx, c, f, filter)
	}
	list, err := f.read(ctx, c, filter)
	if err != nil {
		return err
	}
	return a.showRuns(list, f)
}

// selects applies the filters that the server does not have.
func (f runsFlags) selects(task contract.Task) bool {
	return (f.batch == "" || task.BatchID == f.batch) && (f.pi == "" || task.PI == f.pi) &&
		(len(f.states) < 2 || slices.ContainsFunc(f.states, func(state string) bool { return strings.EqualFold(state, task.State) }))
}

// read reads pages until the limit is reached.
func (f runsFlags) read(ctx context.Context, c *client.Client, filter contract.RunFilter) (contract.TaskList, error) {
	local := f.batch != "" || f.pi != "" || len(f.states) > 1
	if len(filter.States) > 1 {
		filter.States = nil
	}
	list := contract.TaskList{Tasks: []contract.Task{}}
	for page := (client.Page{Filter: filter}); ; {
		page.Limit = 1000
		if !local && !f.all {
			page.Limit = f.limit - len(list.Tasks)
		}
		next, err := c.Tasks(ctx, page)
		if err != nil {
			return list, err
		}
		list.NextCursor = next.NextCursor
		for _, task := range next.Tasks {
			if !f.selects(task) {
				continue
			}
			if !f.all && len(list.Tasks) == f.limit {
				list.NextCursor = "" // the page's cursor would skip the remaining runs
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

// The columns of a table without a terminal, and the least of those for what a run is of.
const (
	tableColumns = 80
	leastWhat    = 12
)

// whatRoom returns the columns that a table of runs has for what the runs are of.
func (a *app) whatRoom(tasks []contract.Task) int {
	columns := tableColumns
	if a.Size != nil {
		columns, _ = a.Size()
	}
	widths := make([]int, 4)
	for _, task := range tasks {
		for i, cell := range []string{task.TaskID, task.State, a.age(task), a.StateReason(task)} {
			widths[i] = max(widths[i], runewidth.StringWidth(cell))
		}
	}
	for _, width := range widths {
		columns -= width + 2
	}
	return max(columns, leastWhat)
}

func (a *app) age(task contract.Task) string { return display.Age(a.Clock.Now().Sub(task.CreatedAt)) }

func (a *app) showRuns(list contract.TaskList, f runsFlags) error {
	if f.format == formatJSON {
		return a.Print(list)
	}
	t := display.NewTable("RUN", "STATE", "AGE", "WHAT", "REASON")
	if f.format == formatWide {
		t = display.NewTable("RUN", "STATE", "ATTEMPT", "WHAT", "BATCH", "CREATED", "AGE", "TOOK", "REASON", "LABELS")
	}
	room := a.whatRoom(list.Tasks)
	for _, task := range list.Tasks {
		took, batch := "", task.BatchID
		if !task.EndedAt.IsZero() {
			took = display.Duration(task.EndedAt.Sub(task.CreatedAt))
		}
		if batch == contract.BatchSingle {
			batch = ""
		}
		old := a.age(task)
		if f.format == formatWide {
			t.Row(task.TaskID, task.State, fmt.Sprint(task.Attempt), display.Subject(task), batch, a.Moment(task.CreatedAt), old, took, a.StateReason(task), label.Text(task.Labels))
		} else {
			t.Row(task.TaskID, task.State, old, runewidth.Truncate(display.Clean(display.Brief(task)), room, "…"), a.StateReason(task))
		}
	}
	if _, err := t.WriteTo(a.Stdout); err != nil {
		return err
	}
	switch {
	case len(list.Tasks) == 0:
		a.Note("No runs.")
	case list.NextCursor != "" || !f.all && len(list.Tasks) == f.limit:
		a.Note("There may be more; --all or a higher --limit shows them.")
	}
	return nil
}
