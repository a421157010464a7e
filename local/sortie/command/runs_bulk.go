package command

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (a *app) cancelRuns() *cobra.Command {
	var reason string
	c := a.bulk("cancel", "Cancel the runs that flags select",
		`Request the end of all runs that the flags select and that have not ended. At
least one flag is required. The output has a line for each run.`,
		func([]string) (page, error) {
			return func(ctx context.Context, c *client.Client, request contract.BulkRequest) (contract.BulkAnswer, error) {
				return c.CancelAll(ctx, contract.BulkCancelRequest{
					Filter: request.Filter, DryRun: request.DryRun, Cursor: request.Cursor, Reason: reason,
				})
			}, nil
		})
	c.Flags().StringVar(&reason, "reason", "", "the reason, which the workers receive")
	return c
}

func (a *app) retryRuns() *cobra.Command {
	var key string
	c := a.bulk("retry", "Retry the runs that flags select",
		`Start a new run of each run that the flags select and that has ended: by default
of those that are Failed or Orphaned, and with --skipped of those that were
skipped. At least one flag is required. The output has a line for each run, with
its new run.`,
		func([]string) (page, error) {
			key = cmp.Or(key, uuid.NewString())
			return func(ctx context.Context, c *client.Client, request contract.BulkRequest) (contract.BulkAnswer, error) {
				return c.RetryAll(ctx, request, key)
			}, nil
		})
	c.Flags().StringVar(&key, "idempotency-key", "", "the same key retries each run once; by default a new key")
	return c
}

// page changes one page of runs.
type page func(context.Context, *client.Client, contract.BulkRequest) (contract.BulkAnswer, error)

// bulk returns a command that applies change, for its arguments, to the selected runs, page by page.
func (a *app) bulk(name, short, long string, change func(args []string) (page, error)) *cobra.Command {
	var f runsFilter
	var dryRun bool
	var ids []string
	c := &cobra.Command{
		Use: name, Short: short, Long: long, Args: argument.Exactly(),
		Example: fmt.Sprintf("  sortie runs %s --job nightly-report --dry-run\n  sortie runs %s --kind job --since 2h", name, name),
	}
	f.define(c)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show which runs")
	c.Flags().StringSliceVar(&ids, "id", nil, "only these runs, at most 100; repeatable")
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		filter, err := f.read(a.Clock.Now())
		if err != nil {
			return err
		}
		filter.RunIDs = ids
		if reflect.ValueOf(filter).IsZero() {
			return cli.Wrong("missing --job, --state, --pool, --kind, --trigger, --skipped, --fault, --error, --selector, --since, --before or --id, want a flag that selects runs")
		}
		if filter.CreatedBefore.IsZero() {
			filter.CreatedBefore = a.Clock.Now().UTC() // excludes the runs that a retry creates
		}
		server, err := a.Client()
		if err != nil {
			return err
		}
		next, err := change(args)
		if err != nil {
			return err
		}
		refused, all := 0, 0
		for request := (contract.BulkRequest{Filter: filter, DryRun: dryRun}); ; {
			answer, err := next(ctx, server.WithRetry(outage, nil), request)
			if err != nil {
				return err
			}
			for _, r := range answer.Runs {
				if all++; r.Result == contract.BulkRefused {
					refused++
				}
				if err := a.showChanged(r); err != nil {
					return err
				}
			}
			if request.Cursor = answer.NextCursor; request.Cursor == "" {
				break
			}
		}
		if all == 0 {
			a.Note("No runs.")
		}
		if refused > 0 {
			return cli.Advised{Err: fmt.Errorf("%d of %d runs were not changed", refused, all), Code: cli.ExitFailed}
		}
		return nil
	})
	return c
}

func (a *app) showChanged(r contract.BulkRun) error {
	if a.JSON {
		return a.PrintLine(r)
	}
	words := []string{r.RunID, r.State, r.Result}
	if r.Retry != nil {
		words = append(words, r.Retry.RunID)
	}
	line := strings.Join(words, "  ")
	if r.Message != "" {
		line += ": " + r.Message
	}
	return a.Say("%s\n", display.Clean(line))
}
