package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// exportFlags are the flags of an export.
type exportFlags struct {
	pi, batchID, key      string
	to                    target
	recursive, includeOCR bool
	maxDepth, batchSize   int
	cheimarros            string
	noWait                bool
	timeout               time.Duration
}

func (a *app) export() *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export FORMAT --pi PI",
		Short: "Export a record or a collection, and download the file",
		Long: `Export the record with this PI, or with --recursive the collection below it.

The command waits for the run, shows its progress on standard error, and saves
the file. Standard output has the run's id on its first line and the file on
its last; with --json it has one object, and with "-o -" the file itself. The
file name has the format before the extension, such as PI-collection.mods.xml. An
existing file with other content is replaced only with --force.

An interrupted command does not end the run: the id leads back to it. If the
server restarts meanwhile, the command retries for a minute.

Options that are not given have the server's defaults.`,
		Example: `  sortie export mods --pi 01K9XVBAQZF9EHDRXGBEADTZYY --recursive
  sortie export mods --pi 01K9XVBAQZF9EHDRXGBEADTZYY -o - | xmllint --format -
  RUN=$(sortie export mods --pi 01K9XVBAQZF9EHDRXGBEADTZYY --no-wait)`,
		ValidArgsFunction: cobra.FixedCompletions(
			limit.Formats(), cobra.ShellCompDirectiveNoFileComp),
	}
	flags := c.Flags()
	flags.StringVar(&f.pi, "pi", "", "persistent identifier of the record (required)")
	flags.BoolVar(&f.recursive, "recursive", false, "export all records below it too")
	flags.IntVar(&f.maxDepth, "max-depth", 0, "levels below it; 0 is only the record")
	flags.IntVar(&f.batchSize, "parallel-batch-size", 0, "records that are read at once")
	flags.BoolVar(&f.includeOCR, "include-ocr", true, "export the text of scans")
	flags.StringVar(&f.cheimarros, "cheimarros-mode", "", "how much of the graph: full, minimal or skip")
	flags.StringVar(&f.batchID, "batch-id", "", "a name for a group of exports")
	flags.StringVar(&f.key, "idempotency-key", "", "the same key returns the same run; by default a new key")
	f.to.flags(c)
	flags.BoolVar(&f.noWait, "no-wait", false, "print the run's id and return")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long to wait for the run, such as 90s; 0 is unlimited")
	argument.Require(c, "pi")
	argument.Complete(c, "cheimarros-mode", "", limit.CheimarrosModes())
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		return a.runExport(ctx, args[0], f, f.request(flags))
	})
	return c
}

// request returns a request with the options whose flags are set. The server applies its
// defaults for the others.
func (f exportFlags) request(flags *pflag.FlagSet) contract.ExportRequest {
	var o contract.ExportOptions
	set := false
	given := func(name string) bool {
		changed := flags.Changed(name)
		set = set || changed
		return changed
	}
	if given("recursive") {
		o.Recursive = &f.recursive
	}
	if given("max-depth") {
		o.MaxDepth = &f.maxDepth
	}
	if given("parallel-batch-size") {
		o.ParallelBatchSize = &f.batchSize
	}
	if given("include-ocr") {
		o.IncludeOCR = &f.includeOCR
	}
	if given("cheimarros-mode") {
		o.CheimarrosMode = &f.cheimarros
	}
	request := contract.ExportRequest{PI: f.pi}
	if given("batch-id") {
		request.BatchID = &f.batchID
	}
	if set {
		request.Options = &o
	}
	return request
}

// exported is the result of an export or a download with --json.
type exported struct {
	contract.Status
	// File is where the output was saved.
	File string `json:"file,omitempty"`
}

func (a *app) runExport(ctx context.Context, format string, f exportFlags, request contract.ExportRequest) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	f.key = cmp.Or(f.key, uuid.NewString())
	accepted, err := c.Export(ctx, format, request, f.key)
	if client.Gone(err) { // the format is unknown
		return cli.Advised{Err: err, Code: cli.ExitUsage, Hint: strings.Trim(argument.Similar(format, limit.Formats()), " ()")}
	}
	if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Field == "options.cheimarrosMode" {
		return cli.Advised{Err: err, Code: cli.ExitUsage, Hint: strings.Trim(argument.Similar(f.cheimarros, limit.CheimarrosModes()), " ()")}
	}
	if err != nil {
		return err
	}
	if f.noWait {
		return a.Result(accepted, "%s\n", accepted.TaskID)
	}
	if err := a.announce(accepted.TaskID, f.to.path); err != nil {
		return err
	}
	follow := a.newFollower(c)
	defer follow.close()
	status, err := follow.wait(ctx, accepted.TaskID, f.timeout)
	if err != nil {
		return err
	}
	return a.saved(ctx, follow, status, f.to)
}

// announce prints the task id early, before a later step can fail.
func (a *app) announce(taskID, target string) error {
	switch {
	case a.JSON:
		_, err := fmt.Fprintf(a.Screen, "{\"task_id\":%q}\n", taskID)
		return err
	case target == "-":
		a.Note("%s", taskID)
		return nil
	}
	return a.Say("%s\n", taskID)
}
