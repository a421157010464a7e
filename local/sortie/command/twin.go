//go:build unix

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/sortie/jobfile"
	"github.com/sortie-dev/sortie/local/twin/scenario"
	"github.com/sortie-dev/sortie/shared/domain/job"
)

// twins returns the commands of scenarios. They use the local system, which needs Unix.
func (a *app) twins() []*cobra.Command {
	return []*cobra.Command{cli.Group("twin", "Play a month of your jobs in seconds", a.twinInit(), a.twinRun())}
}

func (a *app) twinInit() *cobra.Command {
	c := &cobra.Command{
		Use: "init FILE", Short: "Write a scenario with comments",
		Long: `Write a scenario with comments. It can be played as it is. The command replaces no
file.`,
		Example: "  sortie twin init month.yaml",
	}
	c.RunE = cli.Does(func(_ context.Context, args []string) error {
		if err := jobfile.WriteNew(args[0], scenario.Sample); err != nil {
			return err
		}
		a.Note("Next: %s twin run %s", a.Name, args[0])
		return a.Result(map[string]string{"file": args[0]}, "%s\n", args[0])
	})
	return c
}

func (a *app) twinRun() *cobra.Command {
	var seed int
	var page string
	var settings []string
	c := &cobra.Command{
		Use: "run FILE...", Short: "Play scenarios and show what happened",
		Long: `Play scenarios and show what would have happened: which firings were missed and why,
how long runs waited, what failed, how many machines ran, and what they cost. The jobs
run by the code of a real server, in a temporary folder and on a virtual clock;
machines, their programs and clients are drawn. The command needs no server.

Several files are shown side by side. --set plays each file once more with other
values; it can set ` + scenario.Settable + `.
The same seed gives the same answer. A scenario with a part that is not modelled is
refused.`,
		Example: "  sortie twin run month.yaml\n" +
			"  sortie twin run month.yaml --set limits.machines=20 --html month.html\n" +
			"  sortie twin run month.yaml --seed 2 --json",
		Args: argument.AtLeastOne("FILE"),
	}
	flags := c.Flags()
	flags.IntVar(&seed, "seed", 0, "seed of all that is drawn; by default that of the file")
	flags.StringVar(&page, "html", "", "also write a page with pictures to this file")
	flags.StringArrayVar(&settings, "set", nil, "play each file again with FIELD=VALUE (repeatable)")
	argument.Must(c.MarkFlagFilename("html", "html"))
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		if seed < 0 {
			return cli.Wrong("--seed: %d is out of range, want 0 or more", seed)
		}
		variants, err := a.scenarios(args, settings)
		if err != nil {
			return err
		}
		if flags.Changed("seed") {
			for i, s := range variants {
				variants[i] = s.WithSeed(uint64(seed)) //nolint:gosec // not negative
			}
		}
		return a.playAll(ctx, variants, page)
	})
	return c
}

// scenarios reads the files, each followed by its variant with the settings.
func (a *app) scenarios(names, settings []string) ([]scenario.Scenario, error) {
	var found []scenario.Scenario
	for _, name := range names {
		text, err := a.ReadFile(name)
		if err != nil {
			return nil, err
		}
		s, err := scenario.Read(name, text, a.jobBeside(name))
		if err != nil {
			return nil, cli.Wrong("%v", err)
		}
		found = append(found, s)
		if len(settings) == 0 {
			continue
		}
		if s, err = s.With(settings); err != nil {
			return nil, cli.Wrong("--set: %v", err)
		}
		found = append(found, s)
	}
	return found, nil
}

// jobBeside returns a function that reads the job file of a name relative to a scenario.
func (a *app) jobBeside(name string) scenario.JobReader {
	return func(file string) (job.Definition, error) {
		if !filepath.IsAbs(file) && name != "-" {
			file = filepath.Join(filepath.Dir(name), file)
		}
		f, err := jobfile.ReadOne(a.ReadUpTo, file)
		return f.Definition, err
	}
}

// playAll plays scenarios and shows their answers. It also writes them to a page, if that has a
// name.
func (a *app) playAll(ctx context.Context, variants []scenario.Scenario, page string) error {
	var results []scenario.Result
	for _, s := range variants {
		r, err := a.play(ctx, s)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	if page != "" {
		if err := writePage(page, results); err != nil {
			return err
		}
	}
	return a.showResults(results)
}

// play plays a scenario, with a live line of the simulated days on a terminal.
func (a *app) play(ctx context.Context, s scenario.Scenario) (scenario.Result, error) {
	defer a.Screen.Draw("")
	return scenario.Play(ctx, s, func(day, of int) {
		if !a.JSON {
			a.Screen.Draw(fmt.Sprintf("%s: day %d of %d", s.Name, day, of))
		}
	})
}

func writePage(name string, results []scenario.Result) error {
	var text bytes.Buffer
	err := scenario.Page(&text, results...)
	if err == nil {
		err = os.WriteFile(name, text.Bytes(), 0o644) //nolint:gosec // G306: a page of the user
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot write %s", name), err)
	}
	return nil
}

// showResults prints the answers of scenarios side by side.
func (a *app) showResults(results []scenario.Result) error {
	head := []string{"JOB", "FIGURE"}
	for _, r := range results {
		head = append(head, r.Scenario)
	}
	t := display.NewTable(head...)
	for _, m := range scenario.Measures(results...) {
		t.Row(append([]string{m.Of, m.Name}, m.Values...)...)
	}
	return a.Table(results, t)
}
