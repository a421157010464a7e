package command

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/contract"
)

// exportFlags are the flags of an export.
type exportFlags struct {
	pi, batchID, key, output string
	recursive, includeOCR    bool
	maxDepth, batchSize      int
	cheimarros               string
	noWait                   bool
	timeout                  time.Duration
}

func (a *app) export() *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export FORMAT --pi PI",
		Short: "Export a record or a collection, and download the file",
		Long: `Export the record with this PI, or with --recursive the collection under it.

The command waits for the run, shows its progress on standard error, and saves
the file. Standard output has the task's id on its first line and the file on
its last; with --json it has one object, and with "-o -" the file itself.

Interrupting the command does not end the run: the id leads back to it. A server
that is restarted meanwhile is waited for, for a minute.

Options that are not given are left to the server.

` + exitHelp,
		Example: `  sortie export mods --pi 01K9XVBAQZF9EHDRXGBEADTZYY --recursive
  sortie export mods --pi 01K9XVBAQZF9EHDRXGBEADTZYY -o - | xmllint --format -
  TASK=$(sortie export mods --pi 01K9XVBAQZF9EHDRXGBEADTZYY --no-wait)`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(
			[]cobra.Completion{"mods", "dc", "marcxml"}, cobra.ShellCompDirectiveNoFileComp),
	}
	flags := c.Flags()
	flags.StringVar(&f.pi, "pi", "", "persistent identifier of the record (required)")
	flags.BoolVar(&f.recursive, "recursive", false, "export everything below it too")
	flags.IntVar(&f.maxDepth, "max-depth", 0, "how many levels below it; 0 is the record alone")
	flags.IntVar(&f.batchSize, "parallel-batch-size", 0, "how many records are read at once")
	flags.BoolVar(&f.includeOCR, "include-ocr", true, "export the text of scans")
	flags.StringVar(&f.cheimarros, "cheimarros-mode", "", "how much of the graph: full, minimal or skip")
	flags.StringVar(&f.batchID, "batch-id", "", "a name for exports that belong together")
	flags.StringVar(&f.key, "idempotency-key", "", "the same key gives the same task; by default a new one")
	flags.StringVarP(&f.output, "output", "o", "", "file or folder to save to; - is standard output")
	flags.BoolVar(&f.noWait, "no-wait", false, "print the task's id and return")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long to wait for the run, such as 90s; 0 is until its end")
	for _, err := range []error{
		c.MarkFlagRequired("pi"),
		c.RegisterFlagCompletionFunc("cheimarros-mode",
			cobra.FixedCompletions(contract.CheimarrosModes(), cobra.ShellCompDirectiveNoFileComp)),
	} {
		if err != nil { // the flag was defined above
			panic(err)
		}
	}
	c.RunE = does(func(ctx context.Context, args []string) error {
		return a.runExport(ctx, args[0], f, f.request(flags))
	})
	return c
}

// request has the options whose flags were set, and no others: the rest is the
// server's to decide.
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
	request := contract.ExportRequest{PI: f.pi, BatchID: f.batchID}
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
	c, err := a.client()
	if err != nil {
		return err
	}
	if f.key == "" {
		f.key = uuid.NewString()
	}
	accepted, err := c.Export(ctx, format, request, f.key)
	if client.Gone(err) { // it is the format that is not there
		return advised{error: err, code: ExitUsage}
	}
	if err != nil {
		return err
	}
	if f.noWait {
		if a.json {
			return a.print(accepted)
		}
		return a.say("%s\n", accepted.TaskID)
	}
	if err := a.announce(accepted.TaskID, f.output); err != nil {
		return err
	}
	follow := a.newFollower(c)
	defer follow.close()
	status, err := follow.wait(ctx, accepted.TaskID, f.timeout)
	if err != nil {
		return err
	}
	return a.saved(ctx, follow, status, f.output)
}

// announce tells the id before anything can go wrong.
func (a *app) announce(taskID, target string) error {
	switch {
	case a.json:
		_, err := fmt.Fprintf(a.screen, "{\"task_id\":%q}\n", taskID)
		return err
	case target == "-":
		a.note("%s", taskID)
		return nil
	}
	return a.say("%s\n", taskID)
}

// saved downloads the output and tells where it is.
func (a *app) saved(ctx context.Context, follow *follower, status contract.Status, target string) error {
	file, size, err := follow.save(ctx, status, target)
	follow.close()
	if err != nil || file == "-" {
		return err
	}
	if a.json {
		return a.print(exported{status, file})
	}
	if file == "" {
		return nil
	}
	a.note("%s", summaryLine(status, size))
	return a.say("%s\n", file)
}
