//go:build unix

package operate

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/conformance"
	"github.com/sortie-dev/sortie/local/sortie/display"
)

func (a *Operator) worker() *cobra.Command {
	return cli.Group("worker", "Check workers", a.checkWorker())
}

func (a *Operator) checkWorker() *cobra.Command {
	var (
		c       conformance.Config
		verbose bool
	)
	cmd := &cobra.Command{
		Use:   "check [flags] -- CMD ARG...",
		Short: "Check a worker against the worker contract",
		Long: `Play the control plane for a worker in any language and report the requirements of
the worker contract that it does not meet.

CMD is run once for each scenario, in the environment that sortie dev gives a
worker: the same variables and PATH, and an empty current folder. The program is
found by your PATH, and arguments that name a file become absolute. SORTIE_CHECK
names the scenario. CMD should work for at least ten heartbeat intervals. What it
writes to the bucket is discarded.

A worker that only calls CALLBACK_URL is checked against the export contract. A
defect that shows in several scenarios is reported once.

Notes say which extensions of Sortie the worker knows: renewed tokens, a repeated
completed. They do not count: a worker conforms without them.

Exit codes: 0 the worker conforms, 1 it does not, 2 wrong command line.

Scenarios: ` + strings.Join(conformance.Scenarios(), ", "),
		Example: "  sortie worker check -- python3 worker.py\n  sortie worker check -- sortie-exec sleep 3",
		Args:    argument.AtLeastOne("CMD"),
		RunE: cli.Does(func(ctx context.Context, command []string) error {
			c.Command, c.Clock = command, a.Clock
			c.Report = func(scenario string, verdicts []conformance.Verdict) { a.printVerdicts(scenario, verdicts, verbose) }
			return a.check(ctx, c)
		}),
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.DurationVar(&c.Interval, "interval", 250*time.Millisecond, "heartbeatIntervalMs of the envelope")
	flags.DurationVar(&c.Timeout, "timeout", 0, "longest time without a call (default 6 intervals)")
	flags.DurationVar(&c.Grace, "grace", 5*time.Second, "cancelGracePeriodMs of the envelope")
	flags.DurationVar(&c.Abort, "abort", 2*time.Second, "how long \"at once\" may take")
	flags.DurationVar(&c.Limit, "limit", time.Minute, "how long one scenario may last")
	flags.StringSliceVar(&c.Only, "only", nil, "run only these scenarios")
	argument.CompleteList(cmd, "only", conformance.Scenarios())
	flags.BoolVarP(&verbose, "verbose", "v", false, "also list the requirements that are met")
	return cmd
}

func (a *Operator) check(ctx context.Context, c conformance.Config) error {
	for name, d := range map[string]time.Duration{"interval": c.Interval, "grace": c.Grace, "abort": c.Abort, "limit": c.Limit} {
		if d < time.Millisecond {
			return cli.Wrong("--%s: %s is out of range, want 1ms or more", name, d)
		}
	}
	for i, name := range c.Only {
		scenario, err := argument.Choice("--only", name, conformance.Scenarios())
		if err != nil {
			return err
		}
		c.Only[i] = scenario
	}
	if _, err := exec.LookPath(c.Command[0]); err != nil {
		return cli.Wrong("cannot run %s: %v", c.Command[0], errors.Unwrap(err))
	}
	report, err := conformance.Check(ctx, c)
	if err != nil {
		return err
	}
	if a.JSON {
		if err := a.Print(report); err != nil {
			return err
		}
	}
	failures := report.Failures()
	for _, v := range failures {
		if len(v.Also) > 0 {
			a.Note("%s %s: also in %s.", v.Where, v.Name, strings.Join(v.Also, ", "))
		}
	}
	if len(report.Skipped) > 0 {
		a.Note("Not run: %s.", strings.Join(report.Skipped, ", "))
	}
	if report.Contract == "export" {
		a.Note("The worker makes no call of the worker contract; it was checked against the export contract.")
	}
	if len(failures) == 0 {
		a.Note("The worker conforms.")
		return nil
	}
	return fmt.Errorf("the worker does not conform: %s", display.Plural(int64(len(failures)), "requirement", "requirements"))
}

// printVerdicts prints the result of one scenario.
func (a *Operator) printVerdicts(scenario string, verdicts []conformance.Verdict, verbose bool) {
	if a.JSON {
		return
	}
	met := 0
	for _, v := range verdicts {
		if v.Mark == conformance.Passed {
			met++
		}
	}
	_ = a.Say("%s: %d met\n", scenario, met)
	for _, v := range verdicts {
		if v.Mark == conformance.Passed && !verbose {
			continue
		}
		_ = a.Say("  %-8s  %-9s  %s\n", v.Mark, v.Where, v.Text)
		if v.Detail != "" {
			_ = a.Say("            %s\n", v.Detail)
		}
	}
}
