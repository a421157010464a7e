package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/twin/asl"
	"github.com/sortie-dev/sortie/local/twin/asl/scripted"
)

func (a *Operator) asl() *cobra.Command {
	return cli.Group("asl", "Validate and run state machine definitions", a.validateASL(), a.runASL())
}

// mistake is one problem of a definition, as --json prints it.
type mistake struct {
	File        string `json:"file"`
	Place       string `json:"place"`
	What        string `json:"what"`
	Unsupported string `json:"unsupported,omitempty"`
}

func (a *Operator) validateASL() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "List the mistakes in a definition",
		Long: `List every mistake in state machine definitions (Amazon States Language with
JSONPath), with its path. The file "-" is standard input. A warning names what is
valid and probably not meant: a state from which no terminal state is reachable.

Exit codes: 0 no mistakes, 1 mistakes, 2 the command line is wrong.`,
		Example: "  sortie asl validate statemachines/run.asl.json",
		RunE:    cli.Does(func(_ context.Context, files []string) error { return a.validate(files) }),
	}
}

func (a *Operator) validate(files []string) error {
	mistakes, warnings := []mistake{}, []mistake{}
	for _, file := range files {
		text, err := a.read(file)
		if err != nil {
			return err
		}
		mistakes = append(mistakes, mistakesOf(file, asl.Validate(text))...)
		warnings = append(warnings, mistakesOf(file, asl.Warnings(text))...)
	}
	if a.JSON {
		if err := a.Print(map[string]any{"valid": len(mistakes) == 0, "mistakes": mistakes, "warnings": warnings}); err != nil {
			return err
		}
	} else if err := errors.Join(a.list("", mistakes), a.list("warning: ", warnings)); err != nil {
		return err
	}
	switch n := int64(len(mistakes)); {
	case n > 0:
		return fmt.Errorf("found %s", display.Plural(n, "mistake", "mistakes"))
	case !a.JSON:
		a.Note("No mistakes in %s.", display.Plural(int64(len(files)), "definition", "definitions"))
	}
	return nil
}

func mistakesOf(file string, found []asl.Problem) []mistake {
	list := make([]mistake, len(found))
	for i, p := range found {
		list[i] = mistake{File: file, Place: p.Place, What: p.What, Unsupported: p.Unsupported}
	}
	return list
}

// list prints each mistake with its file and place.
func (a *Operator) list(kind string, mistakes []mistake) error {
	for _, m := range mistakes {
		at := m.File + ": "
		if m.Place != "" {
			at += m.Place + ": "
		}
		if err := a.Say("%s%s%s\n", at, kind, m.What); err != nil {
			return err
		}
	}
	return nil
}

func (a *Operator) read(file string) ([]byte, error) {
	if file == "-" {
		text, err := io.ReadAll(a.Stdin)
		if err != nil {
			return nil, fmt.Errorf("cannot read standard input: %w", err)
		}
		return text, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, cli.Missing(file, err)
	}
	return text, nil
}

func (a *Operator) runASL() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run definitions with scripted task results",
		Long: `Read executions from standard input, one JSON object per line, and write one line
for each to standard output, in the same order.

  in   {"name", "definition", "input", "task_results": [{"state", "event", "output" | "error", "cause"}]}
  out  {"name", "status", "output" | "error" + "cause", "states": [...], "task_inputs": [{"state", "input"}]}
       {"name", "unsupported": "what"}

Waits, timeouts and retry delays use a virtual clock that starts now. The n-th
call in a state gets its n-th result. A call without a result, or with an event
that ends in TimedOut, gets no response.`,
		Example: `  echo '{"name":"one","definition":{"StartAt":"A","States":{"A":{"Type":"Pass","End":true}}},"input":{"x":1}}' | sortie asl run`,
		RunE: cli.Does(func(ctx context.Context, _ []string) error {
			return scripted.Run(ctx, a.Stdin, a.Stdout, scripted.Options{Start: a.Clock.Now(), Random: a.Random})
		}),
	}
}
