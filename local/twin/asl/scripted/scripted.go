// Package scripted runs executions with scripted task results on a virtual
// clock: years of waiting take no time.
//
// It is a filter over JSON lines. Each line is one execution:
//
//	{"name", "definition", "input", "task_results": [{"state", "event", "output" | "error", "cause"}]}
//
// and is answered by one line, in the same order:
//
//	{"name", "status", "output" | "error" + "cause", "states": [...], "task_inputs": [{"state", "input"}]}
//	{"name", "unsupported": "..."}
//
// The n-th call in a state takes the n-th result of that state, or else the next result without
// a state. A call without a result, or with an event that ends in TimedOut, gets no answer. The
// answer for a definition that the interpreter does not support is "unsupported". A line that
// is not such an object ends the run with an error.
package scripted

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/twin/asl"
	"github.com/sortie-dev/sortie/local/twin/asl/document"
)

// Options configures a run.
type Options struct {
	// Start is the virtual time at which every execution starts.
	Start time.Time
	// Random returns 64 random bits.
	Random func() uint64
}

// Run reads executions from in and writes the answers to out, until in ends or ctx is done.
func Run(ctx context.Context, in io.Reader, out io.Writer, options Options) error {
	lines := bufio.NewReader(in)
	answers := bufio.NewWriter(out)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if text := bytes.TrimSpace(line); len(text) > 0 {
			answer, failed := one(ctx, text, options)
			if failed != nil {
				return errors.Join(fmt.Errorf("cannot run line %d: %w", number, failed), answers.Flush())
			}
			answers.Write(append(document.Append(nil, answer), '\n')) //nolint:errcheck // Flush returns the error
		}
		switch {
		case errors.Is(err, io.EOF):
			return answers.Flush()
		case err != nil:
			return errors.Join(fmt.Errorf("cannot read line %d: %w", number, err), answers.Flush())
		case lines.Buffered() == 0:
			if err := answers.Flush(); err != nil {
				return err
			}
		}
	}
}

func one(ctx context.Context, line []byte, options Options) (*document.Object, error) {
	value, err := document.Parse(line)
	if err != nil {
		return nil, err
	}
	request, ok := value.(*document.Object)
	if !ok {
		return nil, errors.New("want an object")
	}
	name, _ := request.Get("name")
	answer := document.NewObject(document.Member{Key: "name", Value: name})
	definition, ok := request.Get("definition")
	if !ok {
		return nil, errors.New("missing definition")
	}
	text, isText := definition.(string)
	if !isText {
		text = document.String(definition)
	}
	machine, err := asl.Parse([]byte(text))
	if err != nil {
		answer.Set("unsupported", refusal(err))
		return answer, nil
	}
	script, err := newScript(request)
	if err != nil {
		return nil, err
	}
	input, _ := request.Get("input")
	title, _ := name.(string)
	return answer, play(ctx, answer, machine, title, input, script, options)
}

func refusal(err error) string {
	if unsupported, ok := errors.AsType[*asl.UnsupportedError](err); ok {
		return unsupported.Feature
	}
	return err.Error()
}

// play runs the execution to its end and fills in the answer.
func play(ctx context.Context, answer *document.Object, machine *asl.Machine, name string, input any, script *script, options Options) error {
	states, inputs := []any{}, []any{}
	env := asl.Env{
		Now: options.Start, Random: options.Random,
		Identity: identity(name),
		Entered:  func(state string) { states = append(states, state) },
	}
	execution, todo := machine.Start(env, input)
	for execution.Status() == asl.Running {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(todo) > 0 {
			call := todo[0]
			todo = append(todo[1:], script.answer(env, execution, call)...)
			inputs = append(inputs, document.NewObject(
				document.Member{Key: "state", Value: call.State}, document.Member{Key: "input", Value: call.Payload}))
			continue
		}
		due, ok := execution.Deadline()
		if !ok {
			return errors.New("execution without a deadline")
		}
		if due.After(env.Now) {
			env.Now = due
		}
		todo = execution.Tick(env)
	}
	answer.Set("status", string(execution.Status()))
	if failed := execution.Failure(); failed != nil {
		answer.Set("error", optional(failed.Code))
		answer.Set("cause", optional(failed.Cause))
	} else {
		answer.Set("output", execution.Output())
	}
	answer.Set("states", states)
	answer.Set("task_inputs", inputs)
	return nil
}

func optional(text *string) any {
	if text == nil {
		return nil
	}
	return *text
}

// identity returns a made-up identity for the context object.
func identity(name string) asl.Identity {
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '-'
	}, name)
	const account = "us-east-1:000000000000"
	return asl.Identity{
		ID: "arn:aws:states:" + account + ":execution:scripted:" + label, Name: label,
		RoleARN:   "arn:aws:iam::000000000000:role/scripted",
		MachineID: "arn:aws:states:" + account + ":stateMachine:scripted", MachineName: "scripted",
	}
}
