package command

import (
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (a *app) explainRun() *cobra.Command {
	return &cobra.Command{
		Use: "explain RUN", Short: "Explain why a run is in its state",
		Long: `Explain why a run is in its state: what it waits for, each limit that applies with
the runs that hold it, its position, when it is expected to start, and the single
change that would let it start.`,
		Example:           "  sortie explain nightly-report:20270301T020000Z\n  sortie explain export_mods_1704857234567_a3f8c2d1 --json",
		ValidArgsFunction: a.runIDs(),
		RunE:              cli.Printed(a.App, cli.ByID((*client.Client).Explain), func(x contract.Explanation) error { return a.Table(x, a.Explanation(x)) }),
	}
}

// planHelp is the help of the flag --plan.
const planHelp = "explain the run without creating it"

func (a *app) jobsExplain() *cobra.Command {
	return &cobra.Command{
		Use: "explain JOB", Short: "Explain why a job has not fired",
		Long: `Explain what the schedule of a job waits for, how its last firing ended, and which
of its firings were skipped and why.`,
		Example: "  sortie jobs explain nightly-report",
		RunE:    cli.Printed(a.App, cli.ByID((*client.Client).ExplainJob), func(x contract.JobExplanation) error { return a.Table(x, a.JobExplanation(x)) }),
	}
}
