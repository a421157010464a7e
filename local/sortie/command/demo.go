package command

import (
	"context"
	"errors"
	"log/slog"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/contract"
)

func (a *app) demo() *cobra.Command {
	f := stackFlags{addr: "127.0.0.1:0"}
	out := ""
	c := &cobra.Command{
		Use:   "demo",
		Short: "Try it: export the sample collection, from the request to the file",
		Long: `Start the whole system on a free port, export the sample collection (tape 281 of
the White House Tapes, 72 entities), show the run through its states, download
the file, say what happened, and stop again.`,
		Example: "  sortie demo\n  sortie demo --data /tmp/sortie --out /tmp",
		Args:    cobra.NoArgs,
	}
	c.Flags().StringVar(&f.data, "data", ".sortie", "the folder that everything is kept in")
	c.Flags().StringVar(&out, "out", "out", "the folder for the file")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show the log too")
	c.RunE = does(func(ctx context.Context, _ []string) error { return a.runDemo(ctx, f, out) })
	return c
}

func (a *app) runDemo(ctx context.Context, f stackFlags, out string) error {
	level := slog.LevelWarn
	if f.verbose {
		level = slog.LevelInfo
	}
	a.note("Starting the system, with its data in %s ...", f.data)
	s, settings, err := a.startStack(ctx, f, a.logger(level))
	if err != nil {
		return err
	}
	err = a.show(ctx, s, settings, out)
	if ctx.Err() != nil {
		a.note("Stopping the machines ...")
	}
	return errors.Join(err, stopStack(s))
}

// show makes the export on the stack and tells the story.
func (a *app) show(ctx context.Context, s *stack.Stack, settings stack.Settings, out string) error {
	config := client.Config{URL: s.Addresses().URL, Clock: a.Clock, Agent: "sortie/" + versionOf(build())}
	if len(settings.Tokens) > 0 {
		config.Token = settings.Tokens[0]
	}
	c, err := client.New(config)
	if err != nil {
		return err
	}
	recursive := true
	a.note("POST %s/export/mods for %s, recursive", s.Addresses().URL, samples.SampleRoot)
	accepted, err := c.Export(ctx, "mods", contract.ExportRequest{
		PI: samples.SampleRoot, Options: &contract.ExportOptions{Recursive: &recursive},
	}, uuid.NewString())
	if err != nil {
		return err
	}
	a.note("202 accepted: %s", accepted.TaskID)
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
		if file, size, err = follow.save(watched, status, out+"/"); err == nil {
			follow.close()
			return a.tellStory(status, follow.events, file, size)
		}
	}
	if ctx.Err() != nil {
		return advised{error: ctx.Err(), code: ExitInterrupted, hint: "the run is kept, and goes on when the system is started again"}
	}
	if cause := context.Cause(watched); cause != nil {
		return cause
	}
	return err
}

func (a *app) tellStory(status contract.Status, events []contract.TaskEvent, file string, size int64) error {
	if a.json {
		return a.print(exported{status, file})
	}
	if err := a.say("\nExported %s.\n\n", summaryLine(status, size)); err != nil {
		return err
	}
	if err := display.WritePhases(a.Stdout, events); err != nil {
		return err
	}
	return a.say(`
The file is %s

Try next:
  go run ./local/sortie dev             # keep it running on http://127.0.0.1:8080
  go run ./local/sortie export mods --pi %s --recursive
  go run ./local/sortie events TASK     # what happened to a run
  go run ./local/sortie --help
`, file, status.PI)
}
