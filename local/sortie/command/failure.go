package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
)

// failure is an error of a command that ran. Cobra's own errors, which are none,
// are about the command line.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// advised is an error with its exit code and what to do about it.
type advised struct {
	error
	code   int
	hint   string
	taskID string
}

func (a advised) Unwrap() error { return a.error }

// wrong is an error in the command line that only the command can see.
func wrong(format string, args ...any) error {
	return advised{error: fmt.Errorf(format, args...), code: ExitUsage}
}

// runFailed is the end of a command that waited for a run which failed.
func runFailed(status contract.Status) error {
	reason := status.Error
	if reason == "" {
		reason = "it ended as " + status.State
	}
	if status.ErrorCode != "" {
		reason += " (" + strings.TrimSuffix(status.ErrorCode+", "+status.ErrorCategory, ", ") + ")"
	}
	return advised{
		error: fmt.Errorf("the run failed: %s", reason), code: ExitFailed, taskID: status.TaskID,
		hint: fmt.Sprintf("%q tells what happened", "sortie events "+status.TaskID),
	}
}

// stillRunning is the end of a command that needs a run's end.
func stillRunning(taskID string) error {
	return advised{
		error: fmt.Errorf("the run %s has not ended yet", taskID), code: ExitRunning, taskID: taskID,
		hint: goOn(taskID),
	}
}

// goOn says how to come back to a run.
func goOn(taskID string) string {
	return fmt.Sprintf("it goes on by itself; wait for it with %q, then %q", "sortie status "+taskID+" --wait", "sortie download "+taskID)
}

// report is an error as it is told.
type report struct {
	Code          int        `json:"exitCode"`
	Message       string     `json:"message"`
	Hint          string     `json:"hint,omitempty"`
	TaskID        string     `json:"taskId,omitempty"`
	Status        int        `json:"status,omitempty"`
	Fault         fault.Code `json:"code,omitempty"`
	Field         string     `json:"field,omitempty"`
	CorrelationID string     `json:"correlationId,omitempty"`
}

// explain makes a report of any error of a command.
func explain(err error) report {
	r := report{Code: ExitFailed, Message: err.Error()}
	unreachable, isUnreachable := errors.AsType[*client.Unreachable](err)
	problem, isProblem := errors.AsType[*client.Problem](err)
	switch {
	case errors.Is(err, context.Canceled):
		r.Code, r.Message = ExitInterrupted, "interrupted"
	case isUnreachable:
		r.Code, r.Message = ExitUnreachable, unreachable.Error()
		if unreachable.Refused {
			r.Hint = `start a server with "sortie dev", or say where there is one with --url or SORTIE_URL`
		}
	case isProblem:
		r.Status, r.Fault, r.Field, r.CorrelationID = problem.Status, problem.Code, problem.Field, problem.CorrelationID
		r.Code, r.Hint = outcome(problem)
	case errors.Is(err, sqlite.ErrInUse):
		r.Hint = "stop the other one, or choose another folder with --data"
	case errors.Is(err, syscall.EADDRINUSE):
		r.Hint = "choose another address with --addr, such as --addr 127.0.0.1:0 for any free port"
	}
	if a, ok := errors.AsType[advised](err); ok {
		r.Code, r.TaskID = a.code, a.taskID
		if a.hint != "" {
			r.Hint = a.hint
		}
		if r.Code == ExitInterrupted {
			r.Message = "interrupted"
		}
	}
	if _, ran := errors.AsType[failure](err); !ran {
		r.Code, r.Hint = ExitUsage, `"sortie --help" and "sortie COMMAND --help" tell what there is`
	}
	return r
}

// judge gives a refused call's exit code and what to do.
func outcome(p *client.Problem) (code int, hint string) {
	switch {
	case p.Status == http.StatusUnauthorized:
		return ExitDenied, "set SORTIE_TOKEN to one of the server's tokens"
	case p.Status == http.StatusForbidden:
		return ExitDenied, "the token in SORTIE_TOKEN is for something else"
	case p.Status == http.StatusNotFound, p.Status == http.StatusGone:
		return ExitGone, ""
	case p.Code == fault.NotReady:
		return ExitRunning, ""
	case p.Status == http.StatusTooManyRequests, p.Status >= http.StatusInternalServerError:
		if p.CorrelationID == "" {
			return ExitUnreachable, "try again later"
		}
		return ExitUnreachable, "try again later; the server's log has it under the correlation id " + p.CorrelationID
	case p.Status >= http.StatusBadRequest:
		return ExitUsage, ""
	}
	return ExitFailed, ""
}

// tell writes the report: for people, or as a line of JSON.
func (r report) write(out io.Writer, asJSON bool) {
	if asJSON {
		// There is nobody left to tell a failure to.
		_ = json.NewEncoder(out).Encode(map[string]report{"error": r}) //nolint:errchkjson // as above
		return
	}
	text := "sortie: " + display.Clean(r.Message) + "\n"
	if many := strings.Split(r.Message, "\n"); len(many) > 1 {
		text = "sortie:\n"
		for _, line := range many {
			text += "  " + display.Clean(line) + "\n"
		}
	}
	if r.Hint != "" {
		text += "  " + display.Clean(r.Hint) + "\n"
	}
	_, _ = io.WriteString(out, text)
}

// missing tells a file that is not there from other failures to read it.
func missing(path string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return wrong("there is no %s", path)
	}
	return fmt.Errorf("cannot read %s: %w", path, err)
}
