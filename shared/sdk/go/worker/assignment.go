package worker

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Assignment is the task that a worker was started for. It contains secrets and
// must not be logged.
type Assignment struct {
	// Envelope is the TASK_ENVELOPE of the worker contract. It is nil for a
	// worker that has only CallbackURL.
	Envelope *contract.TaskEnvelope
	// TaskID is set in both cases.
	TaskID string
	// BatchID and CallbackURL are those of the export contract. They are empty if
	// there is an Envelope.
	BatchID     string
	CallbackURL string
}

// ErrNoTask is returned by ReadAssignment if the environment has neither
// TASK_ENVELOPE nor CALLBACK_URL.
var ErrNoTask = errors.New("no task: neither " + contract.EnvelopeVariable + " nor CALLBACK_URL is set")

const (
	maxEnvelope = 1 << 20
	maxInterval = 24 * time.Hour
)

// taskID is the form of the id of a task.
var taskID = limit.Form{First: limit.Letters + limit.Digits, Rest: limit.Letters + limit.Digits + "_.~:-", Most: 256}

// isToken reports whether a text can be a token: printable ASCII characters without spaces.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool { return c < '!' || c > '~' })
}

// ReadAssignment reads the task from an environment of "NAME=value" entries, such
// as os.Environ: TASK_ENVELOPE, or else CALLBACK_URL, TASK_ID and BATCH_ID of the
// export contract. The error is ErrNoTask if there is no task. Otherwise it names
// every problem and contains no value of a variable.
func ReadAssignment(environ []string) (Assignment, error) {
	env := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = strings.TrimSpace(value)
	}
	if text := env[contract.EnvelopeVariable]; text != "" {
		envelope, err := ParseEnvelope([]byte(text))
		if err != nil {
			return Assignment{}, fmt.Errorf("invalid %s: %w", contract.EnvelopeVariable, err)
		}
		return Assignment{Envelope: &envelope, TaskID: envelope.TaskID}, nil
	}
	a := Assignment{TaskID: env["TASK_ID"], BatchID: cmp.Or(env["BATCH_ID"], "single"), CallbackURL: env["CALLBACK_URL"]}
	if a.CallbackURL == "" {
		return Assignment{}, ErrNoTask
	}
	var problems []error
	if !taskID.Matches(a.TaskID) {
		problems = append(problems, errors.New("missing or malformed TASK_ID"))
	}
	if !isURL(a.CallbackURL) {
		problems = append(problems, errors.New("malformed CALLBACK_URL: want an http or https URL"))
	}
	if err := errors.Join(problems...); err != nil {
		return Assignment{}, err
	}
	return a, nil
}

// ParseEnvelope reads a TaskEnvelope of at most 1 MiB of JSON and sets the
// defaults of the contract for absent times. It ignores unknown members, because
// a newer control plane may send them. The error names every problem and
// contains no value, because the values are secrets.
func ParseEnvelope(text []byte) (contract.TaskEnvelope, error) {
	var e contract.TaskEnvelope
	if len(text) > maxEnvelope {
		return e, errors.New("larger than 1 MiB")
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return contract.TaskEnvelope{}, shapeError(err)
	}
	e.HeartbeatIntervalMS = cmp.Or(e.HeartbeatIntervalMS, contract.DefaultHeartbeatIntervalMS)
	e.HeartbeatTimeoutMS = cmp.Or(e.HeartbeatTimeoutMS, contract.DefaultHeartbeatTimeoutMS)
	e.CancelGracePeriodMS = cmp.Or(e.CancelGracePeriodMS, contract.DefaultCancelGracePeriodMS)
	var problems []error
	check := func(valid bool, problem string) {
		if !valid {
			problems = append(problems, errors.New(problem))
		}
	}
	check(taskID.Matches(e.TaskID), "missing or malformed taskId")
	check(e.Attempt >= 1, "attempt: want a number from 1")
	check(isURL(e.CallbackBaseURL), "callbackBaseUrl: want an http or https URL")
	check(isToken(e.TaskToken), "missing or malformed taskToken")
	for name, ms := range map[string]int64{
		"heartbeatIntervalMs": e.HeartbeatIntervalMS, "heartbeatTimeoutMs": e.HeartbeatTimeoutMS, "cancelGracePeriodMs": e.CancelGracePeriodMS,
	} {
		check(ms > 0 && ms <= maxInterval.Milliseconds(), name+": want 1 to 86400000 milliseconds")
	}
	check(e.Output == nil || isURL(e.Output.URL), "output.url: want an http or https URL")
	check(e.Log == nil || isURL(e.Log.URL), "log.url: want an http or https URL")
	check(e.Program == nil || e.Program.Input == nil || isURL(e.Program.Input.URL), "program.input.url: want an http or https URL")
	if err := errors.Join(problems...); err != nil {
		return contract.TaskEnvelope{}, err
	}
	return e, nil
}

// shapeError describes an error of encoding/json without the values in it.
func shapeError(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("not JSON at byte %d", syntax.Offset)
	}
	if shape, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && shape.Field != "" {
		return fmt.Errorf("%s has the wrong type", shape.Field)
	}
	return errors.New("want an object of the contract's shape with RFC 3339 times")
}

func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

// timing holds the durations of an envelope.
type timing struct {
	interval, timeout, grace time.Duration
}

func timingOf(e *contract.TaskEnvelope) timing {
	if e == nil {
		return timing{grace: contract.DefaultCancelGracePeriodMS * time.Millisecond}
	}
	return timing{
		interval: time.Duration(e.HeartbeatIntervalMS) * time.Millisecond,
		timeout:  time.Duration(e.HeartbeatTimeoutMS) * time.Millisecond,
		grace:    time.Duration(e.CancelGracePeriodMS) * time.Millisecond,
	}
}

// callTimeout returns the timeout of one call, such that three calls fit into the heartbeat
// timeout.
func (d timing) callTimeout() time.Duration {
	if d.timeout == 0 {
		return maxCall
	}
	return min(maxCall, max(d.timeout/3, minCall))
}
