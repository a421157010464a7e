package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/proof/conformance"
)

func (a *app) worker() *cobra.Command {
	return group("worker", "Help for people who write workers", a.checkWorker())
}

func (a *app) checkWorker() *cobra.Command {
	var (
		c       conformance.Config
		verbose bool
	)
	cmd := &cobra.Command{
		Use:   "check [flags] -- CMD ARG...",
		Short: "Tell what is wrong with a worker, sentence by sentence of the contract",
		Long: `Play the control plane for a worker, in any language, and tell what is wrong
with it, sentence by sentence of the worker contract. CMD is started once for
each scenario, with TASK_ENVELOPE in its environment and SORTIE_CHECK naming the
scenario; it should work for ten heartbeat intervals at least. What it writes to
the bucket goes nowhere.

Exit codes: 0 it conforms, 1 it does not, 2 the command line is wrong.

Scenarios: ` + strings.Join(conformance.Scenarios(), ", "),
		Example: "  sortie worker check -- python3 worker.py\n  sortie worker check -- sortie-exec sleep 3",
		Args:    cobra.MinimumNArgs(1),
		RunE: does(func(ctx context.Context, command []string) error {
			c.Command, c.Environ, c.Clock = command, a.Environ, a.Clock
			c.Tell = func(verdicts []conformance.Verdict) { a.tellVerdicts(verdicts, verbose) }
			return a.check(ctx, c)
		}),
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.DurationVar(&c.Interval, "interval", 250*time.Millisecond, "heartbeatIntervalMs of the envelope")
	flags.DurationVar(&c.Timeout, "timeout", 0, "the longest time without a call (default 6 intervals)")
	flags.DurationVar(&c.Grace, "grace", 5*time.Second, "cancelGracePeriodMs of the envelope")
	flags.DurationVar(&c.Abort, "abort", 2*time.Second, "how long \"at once\" may take")
	flags.DurationVar(&c.Limit, "limit", time.Minute, "how long one scenario may last")
	flags.StringSliceVar(&c.Only, "only", nil, "play these scenarios alone")
	flags.BoolVarP(&verbose, "verbose", "v", false, "name the sentences that are kept, too")
	return cmd
}

func (a *app) check(ctx context.Context, c conformance.Config) error {
	for name, d := range map[string]time.Duration{"interval": c.Interval, "grace": c.Grace, "abort": c.Abort, "limit": c.Limit} {
		if d < time.Millisecond {
			return wrong("--%s must be a millisecond at least", name)
		}
	}
	report, err := conformance.Check(ctx, c)
	if err != nil {
		return err
	}
	if a.json {
		if err := a.print(report); err != nil {
			return err
		}
	}
	failures := report.Failures()
	if len(failures) == 0 {
		a.note("The worker conforms.")
		return nil
	}
	return fmt.Errorf("the worker does not conform: %s", plural(int64(len(failures)), "sentence", "sentences"))
}

// tellVerdicts prints one scenario.
func (a *app) tellVerdicts(verdicts []conformance.Verdict, verbose bool) {
	if a.json || len(verdicts) == 0 {
		return
	}
	kept := 0
	for _, v := range verdicts {
		if v.Mark == conformance.Kept {
			kept++
		}
	}
	_ = a.say("%s: %d kept\n", verdicts[0].Scenario, kept)
	for _, v := range verdicts {
		if v.Mark == conformance.Kept && !verbose {
			continue
		}
		_ = a.say("  %-8s  %-9s  %s\n", v.Mark, v.Where, v.Text)
		if v.Detail != "" {
			_ = a.say("            %s\n", v.Detail)
		}
	}
}
