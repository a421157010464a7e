package cli

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

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/sortie/fetch"
	"github.com/sortie-dev/sortie/local/twin/proof"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// failure is an error of a command that ran. Any other error is about the command line.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// Advised is an error with an exit code and a hint.
type Advised struct {
	Err    error
	Code   int
	Hint   string
	TaskID string
}

// Error returns the text of the error.
func (a Advised) Error() string { return a.Err.Error() }

func (a Advised) Unwrap() error { return a.Err }

// Wrong returns a usage error that only the command can detect.
func Wrong(format string, args ...any) error {
	return Advised{Err: fmt.Errorf(format, args...), Code: ExitUsage}
}

// RunEnded returns the error of a command that needs a successful run.
func (a *App) RunEnded(status contract.Status) error {
	if status.State == string(run.Cancelled) {
		return Advised{
			Err: fmt.Errorf("the run %s was cancelled", status.TaskID), Code: ExitCancelled, TaskID: status.TaskID,
			Hint: fmt.Sprintf("%q starts a new run of the same work", a.Name+" retry "+status.TaskID),
		}
	}
	if status.Skipped {
		reason := strings.TrimPrefix(status.Error, "skipped: ")
		return Advised{
			Err: fmt.Errorf("the run %s was skipped: %s", status.TaskID, reason), Code: ExitSkipped, TaskID: status.TaskID,
			Hint: fmt.Sprintf("%q shows why; %q lists all runs that were skipped", a.Name+" explain "+status.TaskID, a.Name+" runs --skipped"),
		}
	}
	reason := status.Error
	if reason == "" {
		reason = "it ended as " + status.State
	}
	if status.ErrorCode != "" {
		reason += " (" + strings.TrimSuffix(status.ErrorCode+", "+status.ErrorCategory, ", ") + ")"
	}
	hint := fmt.Sprintf("%q shows what happened", a.Name+" events "+status.TaskID)
	switch status.ErrorCode {
	case string(fault.ProgramExit):
		hint = fmt.Sprintf("%q shows what the program wrote", a.Name+" logs "+status.TaskID)
	case string(fault.ChildrenFailed):
		hint = fmt.Sprintf("%q saves how each child ended; %q runs those again that have not succeeded",
			a.Name+" download "+status.TaskID, a.Name+" retry "+status.TaskID+" --only-failed")
	case string(fault.WorkerLost):
		hint = fmt.Sprintf("%q shows what the program wrote. A program that does not call Sortie itself runs in sortie-exec:\n"+
			"%s dev --image IMAGE='sortie-exec PROGRAM ARG...'", a.Name+" logs "+status.TaskID, a.Name)
	}
	return Advised{Err: fmt.Errorf("the run failed: %s", reason), Code: ExitFailed, TaskID: status.TaskID, Hint: hint}
}

// StillRunning returns the error of a command that needs an ended run.
func (a *App) StillRunning(taskID string) error {
	return Advised{
		Err: fmt.Errorf("the run %s has not ended", taskID), Code: ExitRunning, TaskID: taskID,
		Hint: a.HowToContinue(taskID),
	}
}

// HowToContinue names the commands that wait for a run and download its output.
func (a *App) HowToContinue(taskID string) string {
	return fmt.Sprintf("the run continues without this command; wait for it with %q, then %q",
		a.Name+" status "+taskID+" --wait", a.Name+" download "+taskID)
}

// report is an error in its displayed form.
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

// Explain returns the report of an error.
func (a *App) Explain(err error) report {
	r := report{Code: ExitFailed, Message: err.Error()}
	unreachable, isUnreachable := errors.AsType[*client.Unreachable](err)
	problem, isProblem := errors.AsType[*client.Problem](err)
	other, isOther := errors.AsType[*proof.Error](err)
	switch {
	case errors.Is(err, context.Canceled):
		r.Code, r.Message = ExitInterrupted, "interrupted"
	case isUnreachable:
		r.Code, r.Message = ExitUnreachable, unreachable.Error()
		if unreachable.Refused {
			r.Hint = fmt.Sprintf("start a server with %q, or name another one with --url or SORTIE_URL", a.Name+" dev")
		}
	case isOther:
		r.Code, r.Message = ExitUnreachable, other.Error()
		r.Hint = fmt.Sprintf("start the folder's server with %q, or restart it if it is of an older version;\n"+
			"for another server at this address, give its token with --token-file or SORTIE_TOKEN", a.Name+" dev")
	case isProblem:
		r.Status, r.Fault, r.Field, r.CorrelationID = problem.Status, problem.Code, problem.Field, problem.CorrelationID
		r.Code, r.Hint = outcome(problem)
		if strings.HasPrefix(r.Message, "Task not found") { // a route of the export contract
			r.Message = "no such run, or it has expired"
		}
	case errors.Is(err, syscall.EADDRINUSE):
		r.Hint = "choose another address with --addr, such as --addr 127.0.0.1:0 for any free port"
	case errors.Is(err, fetch.ErrExists):
		r.Hint = "choose another file with -o, or replace it with --force"
	default:
		r.Hint = a.serverHint(err)
	}
	if _, ok := errors.AsType[argument.Error](err); ok {
		r.Code = ExitUsage
	}
	if a, ok := errors.AsType[Advised](err); ok {
		r.Code, r.TaskID = a.Code, a.TaskID
		if a.Hint != "" {
			r.Hint = a.Hint
		}
		if r.Code == ExitInterrupted {
			r.Message = "interrupted"
		}
	}
	if _, ran := errors.AsType[failure](err); !ran {
		r.Code, r.Hint = ExitUsage, fmt.Sprintf("%q and %q list commands and flags", a.Name+" --help", a.Name+" COMMAND --help")
	}
	return r
}

// outcome returns the exit code and the hint for an error response.
func outcome(p *client.Problem) (code int, hint string) {
	switch {
	case p.Foreign:
		return ExitUnreachable, "check --url and SORTIE_URL"
	case p.Status == http.StatusUnauthorized:
		return ExitDenied, "send one of the server's tokens: export SORTIE_TOKEN=TOKEN, or --token-file FILE;\n" +
			`"sortie dev" keeps one in the file "token" of its data folder, "sortie tokens add NAME" makes another`
	case p.Code == fault.MissingScope:
		return ExitDenied, `use a token that has the scope; "sortie tokens add NAME --scope SCOPE" creates one`
	case p.Status == http.StatusForbidden:
		return ExitDenied, "the token in SORTIE_TOKEN does not allow this"
	case p.Status == http.StatusNotFound, p.Status == http.StatusGone:
		return ExitGone, ""
	case p.Code == fault.NotReady:
		return ExitRunning, ""
	case p.Status == http.StatusTooManyRequests, p.Status >= http.StatusInternalServerError:
		if p.CorrelationID == "" {
			return ExitUnreachable, "try again later"
		}
		return ExitUnreachable, "try again later; the server's log has the correlation id " + p.CorrelationID
	case p.Status >= http.StatusBadRequest:
		return ExitUsage, ""
	}
	return ExitFailed, ""
}

// Write writes the report as text, or as a line of JSON.
func (r report) Write(out io.Writer, asJSON, colored bool) {
	if asJSON {
		// A failed write of an error cannot be reported.
		_ = json.NewEncoder(out).Encode(map[string]report{"error": r}) //nolint:errchkjson // as above
		return
	}
	name := "sortie:"
	if colored {
		name = display.Red(name)
	}
	text := name + " " + display.Clean(r.Message) + "\n"
	if lines := strings.Split(r.Message, "\n"); len(lines) > 1 {
		text = name + "\n"
		for _, line := range lines {
			text += "  " + display.Clean(line) + "\n"
		}
	}
	if r.Hint != "" {
		for line := range strings.SplitSeq(r.Hint, "\n") {
			text += "  " + display.Clean(line) + "\n"
		}
	}
	_, _ = io.WriteString(out, text)
}

// Missing returns a usage error for a file that does not exist.
func Missing(path string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return Wrong("%s does not exist", path)
	}
	return fmt.Errorf("cannot read %s: %w", path, err)
}
