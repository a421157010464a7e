//go:build unix

package command

import (
	"context"
	"errors"
	"log/slog"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/sortie/operate"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// demos returns the demo, which needs the local system.
func (a *app) demos() []*cobra.Command { return []*cobra.Command{a.demo()} }

func (a *app) demo() *cobra.Command {
	f := operate.StackFlags{Addr: "127.0.0.1:0", Data: ".sortie-demo"}
	out := ""
	c := &cobra.Command{
		Use:   "demo",
		Short: "Export the sample collection, from the request to the file",
		Long: `Start the whole system on free ports, export the sample collection (tape 281 of
the White House Tapes, 72 entities), show the states of the run, download the
file, and stop. The data folder is not that of "sortie dev", so that both can run.`,
		Example: "  sortie demo\n  sortie demo --data ~/.cache/sortie-demo --out ~/Downloads",
	}
	c.Flags().StringVar(&out, "out", "out", "folder of the file")
	f.Define(c)
	c.RunE = cli.Does(func(ctx context.Context, _ []string) error { return a.runDemo(ctx, f, out) })
	return c
}

func (a *app) runDemo(ctx context.Context, f operate.StackFlags, out string) error {
	level := slog.LevelWarn
	if f.Verbose {
		level = slog.LevelInfo
	}
	o := &operate.Operator{App: a.App}
	log, err := o.Logger(f, level)
	if err != nil {
		return err
	}
	a.Note("Starting the system, with its data in %s ...", f.Data)
	s, err := o.StartStack(ctx, f, log)
	if err != nil {
		return err
	}
	err = a.exportSample(ctx, s, f.Data, out)
	if ctx.Err() != nil {
		a.Note("Stopping the machines ...")
	}
	return errors.Join(err, operate.StopStack(s))
}

// exportSample exports the sample collection and prints the result.
func (a *app) exportSample(ctx context.Context, s *stack.Stack, data, out string) error {
	c, err := (&operate.Operator{App: a.App}).ClientOf(s)
	if err != nil {
		return err
	}
	recursive := true
	a.Note("POST %s/export/mods for %s, recursive", s.Addresses().URL, samples.SampleRoot)
	accepted, err := c.Export(ctx, "mods", contract.ExportRequest{
		PI: samples.SampleRoot, Options: &contract.ExportOptions{Recursive: &recursive},
	}, uuid.NewString())
	if err != nil {
		return err
	}
	a.Note("202 accepted: %s", accepted.TaskID)
	follow := a.newFollower(c)
	defer follow.close()
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-s.Failed():
			cancel(err)
		case <-watched.Done():
		}
	}()
	status, err := follow.wait(watched, accepted.TaskID, 0)
	if err == nil {
		var file string
		var size int64
		if file, size, err = follow.save(watched, status, target{path: out + "/", force: true}); err == nil {
			follow.close()
			return a.summarize(status, follow.events, file, size, data)
		}
	}
	if ctx.Err() != nil {
		return cli.Advised{Err: ctx.Err(), Code: cli.ExitInterrupted, Hint: "the run is stored and starts over with the next demo"}
	}
	if cause := context.Cause(watched); cause != nil {
		return cause
	}
	return err
}

// summarize prints the result of the demo and the next commands.
func (a *app) summarize(status contract.Status, events []contract.TaskEvent, file string, size int64, data string) error {
	if a.JSON {
		return a.Print(exported{status, file})
	}
	if err := a.Say("\nExported %s.\n\n", display.Export(status, size)); err != nil {
		return err
	}
	if err := display.WritePhases(a.Stdout, events); err != nil {
		return err
	}
	return a.Say(`
The file is %[1]s

Look at the run in a browser. The first command prints a link that signs it in:
  %[2]s dev --data %[4]s
  http://127.0.0.1:8080/console/runs/%[5]s

Try next, in another terminal:
  %[2]s events %[5]s
  %[2]s export mods --pi %[3]s --recursive
  %[2]s --help
`, file, a.Name, status.PI, data, status.TaskID)
}
