package command

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// selectorFlag adds the flag of a selector of labels.
func selectorFlag(flags *pflag.FlagSet, to *string) {
	flags.StringVarP(to, "selector", "l", "", "only those with these labels, such as team=data,env!=dev, env in (dev, test), owner or !owner")
}

// eventLabelFlag adds the flag of a selector of the labels of runs.
func eventLabelFlag(flags *pflag.FlagSet, to *string) {
	flags.StringVarP(to, "selector", "l", "", "only events of runs with these labels, such as team=data")
}

// parentFlag adds the flag that selects the events of the children of a run.
func parentFlag(flags *pflag.FlagSet, to *string) {
	flags.StringVar(to, "parent", "", "only events of children of this run, or none: no events of children")
}

// labelFlag adds the flag of the labels of a new run.
func labelFlag(flags *pflag.FlagSet, to *[]string, help string) {
	flags.StringArrayVar(to, "label", nil, help+", KEY=VALUE (repeatable)")
}

func (a *app) label() *cobra.Command {
	c := &cobra.Command{
		Use: "label RUN KEY=VALUE|KEY- ...", Short: "Change the labels of a run",
		Long: `Set labels of a run in any state, with KEY=VALUE, and remove labels, with KEY-. The
output has the labels of the run. "sortie runs label" changes those of many runs.`,
		Example: "  sortie label job_01KAFYT2M3V5W7X9Z1B3D5F7H9 owner=ana triage-",
		Args:    cobra.MinimumNArgs(2), ValidArgsFunction: a.runIDs(),
	}
	c.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		change, err := labelChange(args[1:])
		if err != nil {
			return err
		}
		task, err := c.Label(ctx, args[0], change)
		if err != nil {
			return err
		}
		return a.Result(task, "%s\n", label.Text(task.Labels))
	})
	return c
}

func (a *app) labelRuns() *cobra.Command {
	c := a.bulk("label", "Change the labels of the runs that flags select",
		`Set labels, with KEY=VALUE, and remove labels, with KEY-, of all runs that the flags
select, in any state. At least one flag is required. The output has a line for each run.`,
		func(args []string) (page, error) {
			change, err := labelChange(args)
			return func(ctx context.Context, c *client.Client, request contract.BulkRequest) (contract.BulkAnswer, error) {
				return c.LabelAll(ctx, contract.BulkLabelRequest{
					Filter: request.Filter, DryRun: request.DryRun, Cursor: request.Cursor, LabelRequest: contract.LabelRequest{Labels: change},
				})
			}, err
		})
	c.Use, c.Args = "label KEY=VALUE|KEY- ...", cobra.MinimumNArgs(1)
	c.Example = "  sortie runs label owner=ana --job nightly-report --dry-run\n  sortie runs label triage- -l triage=open"
	return c
}

// labelChange returns the change that arguments describe.
func labelChange(args []string) (label.Change, error) {
	change, err := label.ParseChange(args)
	if err != nil {
		return nil, cli.Wrong("%v", err)
	}
	return change, nil
}
