package worker

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// Assignment is what a worker was started for. It holds secrets: it is never
// logged.
type Assignment struct {
	// Envelope is the worker contract's; nil where there is only CallbackURL.
	Envelope *contract.TaskEnvelope
	// TaskID is in either.
	TaskID string
	// BatchID and CallbackURL are the export contract's, where there is no
	// envelope.
	BatchID     string
	CallbackURL string
}

// ErrNoTask: the environment holds no task.
var ErrNoTask = errors.New("there is no task: neither " + contract.EnvelopeVariable + " nor CALLBACK_URL is set")

// limits of an envelope.
const (
	maxEnvelope = 1 << 20
	maxInterval = 24 * time.Hour
)

var (
	taskID    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.~:-]{0,255}$`)
	taskToken = regexp.MustCompile(`^[!-~]+$`)
)

// ReadAssignment reads the environment, "NAME=value" each: TASK_ENVELOPE, or
// the export contract's CALLBACK_URL, TASK_ID and BATCH_ID where there is none.
// It is ErrNoTask where neither is set. All problems are named at once, without
// any value.
func ReadAssignment(environ []string) (Assignment, error) {
	env := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = strings.TrimSpace(value)
	}
	if text := env[contract.EnvelopeVariable]; text != "" {
		envelope, err := ParseEnvelope([]byte(text))
		if err != nil {
			return Assignment{}, fmt.Errorf("%s is not valid: %w", contract.EnvelopeVariable, err)
		}
		return Assignment{Envelope: &envelope, TaskID: envelope.TaskID}, nil
	}
	a := Assignment{TaskID: env["TASK_ID"], BatchID: cmp.Or(env["BATCH_ID"], "single"), CallbackURL: env["CALLBACK_URL"]}
	if a.CallbackURL == "" {
		return Assignment{}, ErrNoTask
	}
	var problems []error
	if !taskID.MatchString(a.TaskID) {
		problems = append(problems, errors.New("TASK_ID is not set or is none"))
	}
	if !isAddress(a.CallbackURL) {
		problems = append(problems, errors.New("CALLBACK_URL is no http or https address"))
	}
	if err := errors.Join(problems...); err != nil {
		return Assignment{}, err
	}
	return a, nil
}

// ParseEnvelope reads a TaskEnvelope, at most 1 MiB of JSON, and fills in the
// contract's defaults for its times. Members that it does not know are passed
// over: a newer control plane may send them. All problems are named at once,
// without any value.
func ParseEnvelope(text []byte) (contract.TaskEnvelope, error) {
	var e contract.TaskEnvelope
	if len(text) > maxEnvelope {
		return e, errors.New("it is over 1 MiB")
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return contract.TaskEnvelope{}, shapeError(err)
	}
	e.HeartbeatIntervalMS = cmp.Or(e.HeartbeatIntervalMS, contract.DefaultHeartbeatIntervalMS)
	e.HeartbeatTimeoutMS = cmp.Or(e.HeartbeatTimeoutMS, contract.DefaultHeartbeatTimeoutMS)
	e.CancelGracePeriodMS = cmp.Or(e.CancelGracePeriodMS, contract.DefaultCancelGracePeriodMS)
	var problems []error
	check := func(good bool, problem string) {
		if !good {
			problems = append(problems, errors.New(problem))
		}
	}
	check(taskID.MatchString(e.TaskID), "taskId is missing or is none")
	check(e.Attempt >= 1, "attempt is not a number from 1")
	check(isAddress(e.CallbackBaseURL), "callbackBaseUrl is no http or https address")
	check(taskToken.MatchString(e.TaskToken), "taskToken is missing or is none")
	for name, ms := range map[string]int64{
		"heartbeatIntervalMs": e.HeartbeatIntervalMS, "heartbeatTimeoutMs": e.HeartbeatTimeoutMS, "cancelGracePeriodMs": e.CancelGracePeriodMS,
	} {
		check(ms > 0 && ms <= maxInterval.Milliseconds(), name+" is not a number of milliseconds up to a day")
	}
	check(e.Output == nil || isAddress(e.Output.URL), "output.url is no http or https address")
	check(e.Log == nil || isAddress(e.Log.URL), "log.url is no http or https address")
	if err := errors.Join(problems...); err != nil {
		return contract.TaskEnvelope{}, err
	}
	return e, nil
}

// shapeError says what is wrong with JSON and leaves out its values.
func shapeError(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("it is not JSON (byte %d)", syntax.Offset)
	}
	if shape, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && shape.Field != "" {
		return fmt.Errorf("%s has the wrong type", shape.Field)
	}
	return errors.New("it is no object of the contract's shape; a time is RFC 3339")
}

func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

// pace are the times of a conversation.
type pace struct {
	interval, timeout, grace time.Duration
}

func paceOf(e *contract.TaskEnvelope) pace {
	if e == nil {
		return pace{grace: contract.DefaultCancelGracePeriodMS * time.Millisecond}
	}
	return pace{
		interval: time.Duration(e.HeartbeatIntervalMS) * time.Millisecond,
		timeout:  time.Duration(e.HeartbeatTimeoutMS) * time.Millisecond,
		grace:    time.Duration(e.CancelGracePeriodMS) * time.Millisecond,
	}
}

// callLimit bounds one call: three of them fit into the time after which the
// worker is taken for dead, and an answer is worth 30 s of waiting at most.
func (p pace) callLimit() time.Duration {
	if p.timeout == 0 {
		return maxCall
	}
	return min(maxCall, max(p.timeout/3, minCall))
}
