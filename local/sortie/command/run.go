package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/jobfile"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// runFlags are the flags of a run of a program.
type runFlags struct {
	file, input, outputPath, key string
	priority, concurrencyKey     string
	to                           target
	env, labels                  []string
	retries                      int
	timeout                      time.Duration
	detach, plan                 bool
}

func (a *app) run() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run IMAGE [-- ARG...]",
		Short: "Run any program once, and follow it",
		Long: `Run the program of an image once, without a stored job, and follow it. What it
writes to its standard output and error appears on those of the command while it
runs, and at the end its exit code on standard error. The command
exits with 0 if the program succeeded, with 1 if it failed, and with 8 if the run
was skipped. Ctrl-C requests the cancellation of the run and waits for its end; a
second Ctrl-C leaves the run alone.

IMAGE is the name of an image. On a local system it can be exec:PROGRAM, a path or
a name in PATH, and a name that "sortie dev --image" binds. Other images run in
containers of Docker or Podman. exec: and bound images need a token with the scope
exec: that of the data folder, which this command finds. Arguments of exec: that name
existing files become absolute paths.

The program runs in an empty folder with the variables of --env. --output saves the
file that the program leaves at --output-path, which is relative to that folder; by
default it has the name of the file to save. The program finds its path in
SORTIE_OUTPUT.

With -f the definition comes from a job file, in YAML or JSON, and IMAGE is left out.
Flags and arguments replace what it says. What only a stored job has, such as its
schedule, is left out, and named on standard error.

With --json the command prints the run at its end, with what the program wrote as
the member log.`,
		Example: `  sortie run exec:/bin/echo -- hello
  sortie run exec:python3 -- report.py
  sortie run exec:sort --input names.txt
  sortie run exec:/bin/sh --output report.csv --env LEVEL=info -- -c 'echo "$LEVEL" > report.csv'
  sortie run -f nightly-report.yaml --detach`,
		Args: cobra.ArbitraryArgs,
	}
	flags := c.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "take the definition from a job file")
	flags.StringVar(&f.input, "input", "", "standard input of the program: a file, or - for that of this command")
	flags.StringArrayVar(&f.env, "env", nil, "environment variable of the program: NAME=VALUE (repeatable)")
	labelFlag(flags, &f.labels, "label of the run")
	f.to.flags(c)
	flags.StringVar(&f.outputPath, "output-path", "", "path of the file that the program writes")
	flags.IntVar(&f.retries, "retries", 0, "further attempts after a failure; by default none")
	flags.DurationVar(&f.timeout, "timeout", 0, "limit of the time of an attempt, such as 90s; then it is stopped, and fails")
	flags.StringVar(&f.priority, "priority", "", "interactive, normal or batch; by default normal")
	flags.StringVar(&f.concurrencyKey, "concurrency-key", "", "key whose runs share a limit, by default of one run")
	flags.StringVar(&f.key, "idempotency-key", "", "the same key returns the same run; by default a new key")
	flags.BoolVar(&f.plan, "plan", false, planHelp)
	flags.BoolVarP(&f.detach, "detach", "d", false, "print the run's id and return")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return cli.Does(func(ctx context.Context, args []string) error {
			d, err := a.definition(f, args, cmd.ArgsLenAtDash())
			if err != nil {
				return err
			}
			f.override(&d, flags.Changed)
			return byFlags(a.runProgram(ctx, d, f), flags.Changed)
		})(cmd, args)
	}
	return c
}

// definition returns the definition that the command line describes, without its input. dash is
// the number of arguments before "--", or -1.
func (a *app) definition(f runFlags, args []string, dash int) (d job.Definition, err error) {
	command := args
	if f.file != "" {
		if len(args) > 0 && dash != 0 {
			return d, cli.Wrong("IMAGE %s: the definition of --file has the image; put arguments of the program after --", args[0])
		}
		if d, err = a.readDefinition(f.file); err != nil {
			return d, err
		}
	} else {
		if len(args) == 0 || dash == 0 {
			return d, cli.Wrong("missing IMAGE")
		}
		d.Image, command = args[0], args[1:]
	}
	if len(command) > 0 {
		d.Command = command
	}
	if err := jobfile.CheckImage(d.Image); err != nil {
		return d, err
	}
	if _, err := jobfile.Absolute(&d, "."); err != nil {
		return d, cli.Wrong("%s: %v", d.Image, err)
	}
	env, err := argument.Assignments("env", f.env)
	if err != nil {
		return d, err
	}
	for name, value := range env {
		if d.Env == nil {
			d.Env = map[string]job.Variable{}
		}
		d.Env[name] = job.Variable{Value: value}
	}
	labels, err := argument.Assignments("label", f.labels)
	if err != nil {
		return d, err
	}
	d.Labels = label.Of(labels).Apply(d.Labels)
	switch {
	case d.Export != nil: // the export's output is the file
	case f.outputPath != "":
		d.Output = &job.Output{Path: f.outputPath}
	case f.to.path == "-" && d.Output == nil:
		return d, cli.Wrong("--output -: missing --output-path, the file that the program writes")
	case f.to.path != "" && d.Output == nil:
		d.Output = &job.Output{Path: filepath.Base(f.to.path)}
	}
	return d, nil
}

// readDefinition reads a job file for a single run, which needs no id.
func (a *app) readDefinition(name string) (job.Definition, error) {
	document, err := os.ReadFile(name)
	if err != nil {
		return job.Definition{}, cli.Missing(name, err)
	}
	d, ignored, err := jobfile.Single(name, document)
	if len(ignored) > 0 {
		a.Note("%s: without meaning for a single run: %s", name, strings.Join(ignored, ", "))
	}
	return d, err
}

// readInput returns the standard input of the program, from the flag or else from the
// definition.
func (a *app) readInput(from string, d job.Definition) ([]byte, error) {
	var content []byte
	var err error
	switch from {
	case "":
		return []byte(d.Input), nil
	case "-":
		content, err = io.ReadAll(io.LimitReader(a.Stdin, limit.Input+1))
	default:
		content, err = os.ReadFile(from)
	}
	if err != nil {
		return nil, cli.Missing(from, err)
	}
	if len(content) > limit.Input {
		return nil, cli.Wrong("--input: more than %d bytes", limit.Input)
	}
	return content, nil
}

func (a *app) runProgram(ctx context.Context, d job.Definition, f runFlags) error {
	input, err := a.readInput(f.input, d)
	if err != nil {
		return err
	}
	d.Input = ""
	document, err := json.Marshal(struct {
		job.Definition
		Input []byte `json:"input,omitempty"`
	}{d, input})
	if err != nil {
		return fmt.Errorf("cannot encode the run: %w", err)
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	if f.plan {
		p, err := c.Plan(ctx, json.RawMessage(document))
		if err != nil {
			return err
		}
		return a.Table(p, a.Plan(p))
	}
	f.key = cmp.Or(f.key, uuid.NewString())
	accepted, err := c.Run(ctx, document, f.key)
	if err != nil {
		return err
	}
	if f.detach {
		return a.Result(accepted, "%s\n", accepted.RunID)
	}
	a.Note("%s", accepted.RunID)
	t := &tail{app: a, client: c, TaskID: accepted.TaskID}
	status, err := t.follow(ctx)
	if err != nil {
		return err
	}
	if err := a.reportRun(ctx, t, status); err != nil {
		return err
	}
	if status.Status != contract.StatusSuccess {
		ended := a.RunEnded(status)
		if _, missing := exec.LookPath(d.Image); missing == nil && status.ErrorCode == string(fault.Image) {
			return cli.Advised{Err: ended, Code: cli.ExitFailed, TaskID: status.TaskID, Hint: fmt.Sprintf("the program of that name is %s%s", jobfile.Scheme, d.Image)}
		}
		return ended
	}
	if d.Output == nil && d.Export == nil || f.to.path == "" {
		return nil
	}
	follow := &follower{app: a, client: c}
	file, _, err := follow.save(context.WithoutCancel(ctx), status, f.to)
	if err == nil && file != "-" {
		a.Note("%s", file)
	}
	return err
}

// ranProgram is the result of a run with --json.
type ranProgram struct {
	contract.Task
	Log string `json:"log"`
}

// reportRun prints the result of the program.
func (a *app) reportRun(ctx context.Context, t *tail, status contract.Status) error {
	task, err := t.client.Task(context.WithoutCancel(ctx), status.TaskID)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.Print(ranProgram{task, t.text.String()})
	}
	if task.Machine != nil && task.Machine.Exit != nil {
		a.Note("exit code %d", task.Machine.Exit.Code)
	}
	return nil
}
