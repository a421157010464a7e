package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// askFlags are the flags of ask.
type askFlags struct {
	request     contract.TaskRequest
	labels      []string
	system, key string
	maxTokens   int
	seed        int64
	temperature float64
	reasoning   bool
	deadline    time.Duration
}

func (a *app) ask() *cobra.Command {
	var f askFlags
	c := &cobra.Command{
		Use:   "ask MODEL PROMPT",
		Short: "Ask a model, and show its answer while it is generated",
		Long: `Start a run of a model, and write the answer to standard output while
it is generated. PROMPT is a text, or - for standard input. With --system the
engine applies its chat template to both texts; otherwise it continues PROMPT.

The command exits with 0 after a whole answer, and with 1 if the run failed. It
continues the stream after an interruption of the connection. Ctrl-C cancels the
run. GET /v1/capabilities lists the models, and sortie dev --engine serves some.

With --reasoning the reasoning that an engine separates from the answer goes to
standard error. With --json the command prints the run at its end with the members
answer and, if there was any, reasoning.`,
		Example: "  sortie ask mock 'Tell a story' --max-tokens 50\n  sortie ask llama - --system 'Translate to French.' < letter.txt",
	}
	flags := c.Flags()
	flags.StringVar(&f.system, "system", "", "instruction before the prompt; the prompt is then a message")
	flags.IntVar(&f.maxTokens, "max-tokens", 0, "most tokens to generate; by default what the context leaves")
	flags.StringVar(&f.request.Engine, "engine", "", "only pools with this engine")
	flags.StringVar(&f.request.SessionID, "session", "", "id of a session")
	flags.Int64Var(&f.seed, "seed", 0, "number that makes the choice of tokens repeatable")
	flags.Float64Var(&f.temperature, "temperature", 0, "0 to 2; by default that of the engine")
	flags.BoolVar(&f.reasoning, "reasoning", false, "show the reasoning before the answer too")
	flags.DurationVar(&f.deadline, "deadline", 0, "time after which the answer is of no use; by default 5m")
	flags.StringVar(&f.request.Priority, "priority", "", "interactive, normal or batch; by default normal")
	labelFlag(flags, &f.labels, "label of the run")
	flags.StringVar(&f.key, "idempotency-key", "", "the same key returns the same run; by default a new key")
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		if err := f.complete(flags.Changed, args[0], args[1], a.Stdin); err != nil {
			return err
		}
		return a.showAnswer(ctx, f)
	})
	return c
}

// complete builds the request from the flags and arguments. given reports whether a flag is on
// the command line.
func (f *askFlags) complete(given func(flag string) bool, model, prompt string, stdin io.Reader) error {
	if prompt == "-" {
		text, err := io.ReadAll(stdin)
		if err != nil {
			return fmt.Errorf("cannot read standard input: %w", err)
		}
		prompt = string(text)
	}
	q := &f.request
	q.ModelRef, q.Prompt = model, prompt
	if f.system != "" {
		q.Prompt, q.Messages = "", []contract.TaskMessage{{Role: "system", Content: &f.system}, {Role: "user", Content: &prompt}}
	}
	var err error
	if q.Labels, err = argument.Assignments("label", f.labels); err != nil {
		return err
	}
	if given("max-tokens") {
		q.MaxTokens = &f.maxTokens
	}
	if given("seed") {
		q.Seed = new(contract.Seed(f.seed))
	}
	if given("temperature") {
		q.Temperature = &f.temperature
	}
	if given("deadline") {
		q.DeadlineMS = new(f.deadline.Milliseconds())
	}
	f.key = cmp.Or(f.key, uuid.NewString())
	return nil
}

// showAnswer creates a task and shows its answer.
func (a *app) showAnswer(ctx context.Context, f askFlags) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	task, err := c.CreateTask(ctx, f.request, f.key)
	if err != nil {
		return err
	}
	var got client.Answer
	after := ""
	patient := c.WithRetry(outage, func(err error) { a.Note("%v; trying again", err) })
	err = patient.FollowAnswer(ctx, task.TaskID, &after, func(name string, data json.RawMessage) error {
		begins := got.Text.Len() == 0
		text, thought, err := got.Add(name, data)
		if !a.JSON && f.reasoning {
			if begins && text != "" && got.Thought.Len() > 0 {
				thought = "\n"
			}
			if _, err := a.Stderr.Write(display.Escape([]byte(thought))); err != nil {
				return err
			}
		}
		if !a.JSON && text != "" {
			if _, err := a.Stdout.Write(display.Escape([]byte(text))); err != nil {
				return err
			}
		}
		return err
	})
	interrupted := ctx.Err() != nil
	if !a.JSON && got.Text.Len() > 0 {
		if err := a.Say("\n"); err != nil && !interrupted {
			return err
		}
	}
	if interrupted {
		return a.cancelAnswer(context.WithoutCancel(ctx), c, task.TaskID)
	}
	if !errors.Is(err, client.ErrAnswered) {
		return err
	}
	if got.Failure != nil {
		return cli.Advised{Err: fmt.Errorf("%s: %s", got.Failure.Code, got.Failure.Message), Code: cli.ExitFailed, TaskID: task.TaskID}
	}
	if a.JSON {
		record, err := a.endedTask(ctx, c, task.TaskID)
		if err != nil {
			return err
		}
		return a.Print(struct {
			contract.Task
			Answer    string `json:"answer"`
			Reasoning string `json:"reasoning,omitempty"`
		}{record, got.Text.String(), got.Thought.String()})
	}
	a.Note("%d tokens in %.1f s, run %s", got.Tokens, got.Took.Seconds(), task.TaskID)
	return nil
}

// The first pause and the timeout of endedTask.
const (
	endedPause = 20 * time.Millisecond
	endedWait  = 10 * time.Second
)

// endedTask returns the task of a stream that has its last event. The record of the task ends a
// moment later, so endedTask polls it. After ten seconds it returns the record as it is.
func (a *app) endedTask(ctx context.Context, c *client.Client, id string) (contract.Task, error) {
	until := a.Clock.Now().Add(endedWait)
	for pause := endedPause; ; pause *= 2 {
		task, err := c.Task(ctx, id)
		if err != nil || ended(task) || !a.Clock.Now().Before(until) {
			return task, err
		}
		if err := clock.Sleep(ctx, a.Clock, pause); err != nil {
			return task, err
		}
	}
}

// cancelAnswer cancels the task of an interrupted command.
func (a *app) cancelAnswer(ctx context.Context, c *client.Client, task string) error {
	interrupted := cli.Advised{Err: context.Canceled, Code: cli.ExitInterrupted, TaskID: task, Hint: "the run " + task + " was cancelled"}
	if _, err := c.Cancel(ctx, task, "interrupted by its user"); err != nil {
		interrupted.Hint = fmt.Sprintf("the run continues, because it could not be cancelled (%v); %q cancels it", err, a.Name+" cancel "+task)
	}
	return interrupted
}
