package command

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/shared/contract"
)

func (a *app) cancel() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "cancel TASK",
		Short: "Cancel a run",
		Long: `Cancel a run, wherever it is. It is final and may be repeated; what is printed
says what happens next. A run that had ended before stays as it is, and then
the exit code is 1.

` + exitHelp,
		Example: `  sortie cancel export_mods_1704857234567_a3f8c2d1 --reason "wrong collection"`,
		Args:    cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&reason, "reason", "", "why; the worker is told")
	c.RunE = does(func(ctx context.Context, args []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		answer, err := client.Cancel(ctx, args[0], reason)
		if err != nil {
			return err
		}
		if answer.Result == contract.CancelTooLate {
			return advised{error: fmt.Errorf("it is too late: %s", answer.Message), code: ExitFailed, taskID: answer.TaskID}
		}
		if a.json {
			return a.print(answer)
		}
		_, err = fmt.Fprintf(a.Stdout, "%s: %s\n", answer.Result, answer.Message)
		return err
	})
	return c
}

func (a *app) retry() *cobra.Command {
	var key string
	c := &cobra.Command{
		Use:   "retry TASK",
		Short: "Do the work of a run that has ended again",
		Long: `Do the work of a run that has ended again, as a new run. Standard output has the
new run's task.

` + exitHelp,
		Example: `  sortie retry export_mods_1704857234567_a3f8c2d1`,
		Args:    cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&key, "idempotency-key", "", "the same key gives the same task; by default a new one")
	c.RunE = does(func(ctx context.Context, args []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		if key == "" {
			key = uuid.NewString()
		}
		answer, err := client.Retry(ctx, args[0], key)
		if err != nil {
			return err
		}
		if a.json {
			return a.print(answer)
		}
		_, err = fmt.Fprintln(a.Stdout, answer.TaskID)
		return err
	})
	return c
}
