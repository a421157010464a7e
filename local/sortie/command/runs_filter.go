package command

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// runsFilter are the flags that select runs.
type runsFilter struct {
	job, pool, kind, trigger, fault, text, before, labels string
	states                                                []string
	skipped                                               bool
	since                                                 time.Duration
	// skippedGiven reports whether --skipped is on the command line.
	skippedGiven func() bool
}

// define adds the flags.
func (f *runsFilter) define(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.job, "job", "", "only runs of this job")
	flags.StringSliceVar(&f.states, "state", nil, "only runs in these states, such as Pending,Running")
	flags.StringVar(&f.pool, "pool", "", "only runs of this pool")
	flags.StringVar(&f.kind, "kind", "", "only runs of this kind: "+strings.Join(kinds(), ", "))
	flags.StringVar(&f.trigger, "trigger", "", "only runs with this trigger: "+strings.Join(triggers(), ", "))
	flags.BoolVar(&f.skipped, "skipped", false, "only runs that were skipped; --skipped=false leaves them out")
	f.skippedGiven = func() bool { return flags.Changed("skipped") }
	flags.StringVar(&f.fault, "fault", "", "only runs with this failure, such as PROGRAM_EXIT")
	flags.StringVar(&f.text, "error", "", "only runs whose failure message has this text")
	selectorFlag(flags, &f.labels)
	flags.DurationVar(&f.since, "since", 0, "only runs that were created within this time, such as 2h")
	flags.StringVar(&f.before, "before", "", "only runs that were created before this time (RFC 3339)")
	argument.CompleteList(c, "state", states())
	argument.Complete(c, "kind", "", kinds())
	argument.Complete(c, "trigger", "", triggers())
}

func kinds() []string { return spec.FilterKinds() }

func triggers() (names []string) {
	for _, t := range run.Triggers() {
		names = append(names, string(t))
	}
	return names
}

// read returns the filter that the flags describe. now is the reference of --since.
func (f *runsFilter) read(now time.Time) (filter contract.RunFilter, err error) {
	filter = contract.RunFilter{JobID: f.job, Pool: f.pool, Kind: f.kind, FaultCode: strings.ToUpper(f.fault), Error: f.text, Label: f.labels}
	if f.skippedGiven() {
		filter.Skipped = &f.skipped
	}
	for _, name := range f.states {
		state, err := argument.Choice("--state", name, states())
		if err != nil {
			return filter, err
		}
		filter.States = append(filter.States, state)
	}
	if f.kind != "" {
		if filter.Kind, err = argument.Choice("--kind", f.kind, kinds()); err != nil {
			return filter, err
		}
	}
	if f.trigger != "" {
		if filter.Trigger, err = argument.Choice("--trigger", f.trigger, triggers()); err != nil {
			return filter, err
		}
	}
	if f.since < 0 {
		return filter, cli.Wrong("--since: %s is negative, want a duration such as 2h", f.since)
	}
	if f.since > 0 {
		filter.CreatedAfter = now.Add(-f.since).UTC()
	}
	filter.CreatedBefore, err = timeFlag("before", f.before, time.Time{})
	return filter, err
}
