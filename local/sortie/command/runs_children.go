package command

import (
	"context"
	"fmt"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func childStates() (names []string) {
	for _, s := range fan.Statuses() {
		names = append(names, string(s))
	}
	return names
}

func (a *app) childrenOfRun() *cobra.Command {
	var state, format string
	var limit int
	var all bool
	c := &cobra.Command{
		Use: "children RUN", Short: "List the children of a run",
		Long: `List the children of a run with items or a matrix, in the order of the items.
TOOK is the time since the program started, EXIT its exit code.`,
		Example: "  sortie runs children resize-01KAFYT2M3V5W7X9Z1B3D5F7H9\n  sortie runs children resize-01KAFYT2M3V5W7X9Z1B3D5F7H9 --state failed --all",
		Args:    argument.Exactly("RUN"), ValidArgsFunction: a.runIDs(),
	}
	flags := c.Flags()
	flags.StringVar(&state, "state", "", "only children in this state")
	flags.StringVar(&format, "format", formatTable, "table or json")
	flags.IntVar(&limit, "limit", 50, "how many, 1 to 1000")
	flags.BoolVar(&all, "all", false, "all of them")
	argument.Complete(c, "state", "", childStates())
	argument.Complete(c, "format", "", []string{formatTable, formatJSON})
	c.RunE = a.WithClient(func(ctx context.Context, server *client.Client, args []string) (err error) {
		if limit < 1 || limit > 1000 {
			return cli.Wrong("--limit: %d is out of range, want 1 to 1000", limit)
		}
		if state != "" {
			if state, err = argument.Choice("--state", state, childStates()); err != nil {
				return err
			}
		}
		if format, err = argument.Choice("--format", format, []string{formatTable, formatJSON}); err != nil {
			return err
		}
		page, err := server.Children(ctx, args[0], client.ChildrenPage{State: state, Limit: limit})
		for err == nil && all && page.NextCursor != "" {
			var next contract.RunChildren
			next, err = server.Children(ctx, args[0], client.ChildrenPage{State: state, Cursor: page.NextCursor, Limit: 1000})
			next.Children = append(page.Children, next.Children...)
			page = next
		}
		if err != nil {
			return err
		}
		if a.JSON || format == formatJSON {
			return a.Print(page)
		}
		return a.showChildren(page)
	})
	return c
}

// itemColumns is the width of the items in a table of children.
const itemColumns = 24

func (a *app) showChildren(page contract.RunChildren) error {
	t := display.NewTable("INDEX", "ITEM", "STATE", "ATTEMPT", "EXIT", "TOOK", "RUN", "REASON")
	for _, c := range page.Children {
		attempt, exit, took, reason := "", "", "", ""
		if c.Attempt > 0 {
			attempt = fmt.Sprint(c.Attempt)
		}
		if c.ExitCode != nil {
			exit = fmt.Sprint(*c.ExitCode)
		}
		if c.DurationSeconds != nil {
			took = display.Duration(time.Duration(*c.DurationSeconds * float64(time.Second)))
		}
		if c.Fault != nil {
			reason = c.Fault.Code
		}
		item := runewidth.Truncate(display.Clean(c.Item), itemColumns, "…")
		t.Row(fmt.Sprint(c.Index), item, c.State, attempt, exit, took, c.RunID, reason)
	}
	if _, err := t.WriteTo(a.Stdout); err != nil {
		return err
	}
	switch {
	case len(page.Children) == 0:
		a.Note("No children.")
	case page.NextCursor != "":
		a.Note("There are more; --all or a higher --limit shows them.")
	}
	return nil
}
