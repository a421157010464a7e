package command

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (a *app) cancel() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel a run",
		Long: `Cancel a run in any state. The request is final and idempotent; the output says
what happens next. A run that has ended before is unchanged, and the exit code
is 1, unless it began a graph: what comes after it is then cancelled.`,
		Example:           `  sortie cancel export_mods_1704857234567_a3f8c2d1 --reason "wrong collection"`,
		ValidArgsFunction: a.runIDs(),
	}
	c.Flags().StringVar(&reason, "reason", "", "the reason, which the worker receives")
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		client, err := a.Client()
		if err != nil {
			return err
		}
		answer, err := client.Cancel(ctx, args[0], reason)
		if err != nil {
			return err
		}
		if answer.Result == contract.CancelTooLate {
			return cli.Advised{Err: fmt.Errorf("too late: %s", answer.Message), Code: cli.ExitFailed, TaskID: answer.TaskID}
		}
		return a.Result(answer, "%s: %s\n", answer.Result, answer.Message)
	})
	return c
}

// pinRuns returns the command that pins runs, or the one that unpins them.
func (a *app) pinRuns(name string) *cobra.Command {
	c := &cobra.Command{
		Use: name + " RUN...", Short: "Keep runs until they are unpinned",
		Long: `Keep runs with their outputs and logs until "sortie runs unpin", whatever their
retention is. Both commands are idempotent.`,
		Example:           "  sortie runs " + name + " nightly-report:20270301T013000Z",
		ValidArgsFunction: a.runIDs(),
	}
	if name == "unpin" {
		c.Short = "Let pinned runs expire"
		c.Long = `Let pinned runs expire as if they had never been pinned, but not within a day.`
	}
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		client, err := a.Client()
		if err != nil {
			return err
		}
		for _, id := range args {
			task, err := client.Pin(ctx, id, name)
			if err == nil {
				err = a.Result(task, "%s: %sned\n", task.RunID, name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return c
}

// redeliverActions returns the command that sends failed notifications of a run again.
func (a *app) redeliverActions() *cobra.Command {
	var action string
	c := &cobra.Command{
		Use: "redeliver RUN", Short: "Send failed notifications of a run again",
		Long: `Send the webhooks and notifications of a run's job again that have failed, or one of
them. "sortie status RUN" lists them. One that is being sent is not sent twice.`,
		Example: `  sortie runs redeliver nightly-report:20270301T013000Z
  sortie runs redeliver nightly-report:20270301T013000Z --action onFailure`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.runIDs(),
	}
	c.Flags().StringVar(&action, "action", "", "only that of this action, such as onFailure or onRetry#2")
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		client, err := a.Client()
		if err != nil {
			return err
		}
		task, err := client.RedeliverActions(ctx, args[0], action)
		if err != nil {
			return err
		}
		failed, sending := 0, 0
		for _, f := range task.FailedActions {
			if failed++; f.Sending {
				sending++
			}
		}
		if failed == 0 {
			return a.Result(task, "%s: no notification has failed\n", task.RunID)
		}
		return a.Result(task, "%s: %d of %d failed notifications are being sent\n", task.RunID, sending, failed)
	})
	return c
}

func (a *app) retry() *cobra.Command {
	var key string
	var given, labels, inputs []string
	var changes contract.RetryRequest
	c := &cobra.Command{
		Use:   "retry RUN",
		Short: "Rerun a finished run",
		Long: `Start a new run with the work of one that has ended, also with changes. Standard
output has the id of the new run.`,
		Example: `  sortie retry export_mods_1704857234567_a3f8c2d1
  sortie retry job_01KAFYT2M3V5W7X9Z1B3D5F7H9 --param LEVEL=debug
  sortie retry prices:20270301T020000Z --downstream`,
		ValidArgsFunction: a.runIDs(),
	}
	flags := c.Flags()
	flags.StringVar(&key, "idempotency-key", "", "the same key returns the same run; by default a new key")
	flags.StringArrayVar(&given, "param", nil, "other value of an environment variable, NAME=VALUE (repeatable)")
	flags.StringArrayVar(&labels, "label", nil, "other label, KEY=VALUE, or KEY- to remove it (repeatable)")
	flags.StringArrayVar(&inputs, "input", nil, "other value of an input, NAME=VALUE (repeatable)")
	flags.StringVar(&changes.Image, "image", "", "other image of a program without a stored job")
	flags.BoolVar(&changes.Downstream, "downstream", false, "also rerun the jobs that come after the job of the run")
	flags.BoolVar(&changes.OnlyFailed, "only-failed", false, "run only those children again that have not succeeded")
	flags.StringVar(&changes.Priority, "priority", "", "other priority: interactive, normal or batch")
	c.RunE = cli.Does(func(ctx context.Context, args []string) (err error) {
		if changes.Parameters, err = argument.Assignments("param", given); err != nil {
			return err
		}
		if changes.Inputs, err = argument.Inputs(inputs); err != nil {
			return err
		}
		if changes.Labels, err = labelChange(labels); err != nil {
			return err
		}
		client, err := a.Client()
		if err != nil {
			return err
		}
		key = cmp.Or(key, uuid.NewString())
		answer, err := client.Retry(ctx, args[0], key, changes)
		if err != nil {
			return err
		}
		return a.Result(answer, "%s\n", answer.TaskID)
	})
	return c
}
