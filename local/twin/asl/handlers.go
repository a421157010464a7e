package asl

import (
	"fmt"
	"slices"
	"strings"
)

// Errors that Step Functions raises or matches.
const (
	errorAll          = "States.ALL"
	errorTaskFailed   = "States.TaskFailed"
	errorTimeout      = "States.Timeout"
	errorHeartbeat    = "States.HeartbeatTimeout"
	errorRuntime      = "States.Runtime"
	errorDataLimit    = "States.DataLimitExceeded"
	errorNoChoice     = "States.NoChoiceMatched"
	errorIntrinsic    = "States.IntrinsicFailure"
	errorResultPath   = "States.ResultPathMatchFailure"
	reservedErrorName = "States."
)

// reserved lists all error names that may begin with "States.".
func reserved() []string {
	return []string{
		errorAll, errorTaskFailed, errorTimeout, errorHeartbeat, errorRuntime, errorDataLimit, errorNoChoice, errorIntrinsic,
		errorResultPath, "States.Permissions", "States.ParameterPathFailure", "States.BranchFailed",
		"States.ExceedToleratedFailureThreshold", "States.ItemReaderFailed", "States.ResultWriterFailed",
		"States.QueryEvaluationError", "States.Http.Socket",
	}
}

func (r *reader) retriers() []retrier {
	var list []retrier
	r.handlers("Retry", func(h *reader, errors []string) {
		t := retrier{errors: errors, interval: 1, maxAttempts: 3, backoff: 2}
		if n, ok := h.integer("IntervalSeconds", 1, maxSeconds); ok {
			t.interval = float64(n)
		}
		if n, ok := h.integer("MaxAttempts", 0, maxSeconds); ok {
			t.maxAttempts = n
		}
		if f, ok := h.float("BackoffRate", 1); ok {
			t.backoff = f
		}
		if n, ok := h.integer("MaxDelaySeconds", 1, maxDelay-1); ok {
			t.maxDelay = float64(n)
			if t.maxDelay < t.interval {
				h.add(h.at("MaxDelaySeconds"), "must not be less than IntervalSeconds")
			}
		}
		switch jitter, ok := h.text("JitterStrategy"); {
		case !ok || jitter == "NONE":
		case jitter == "FULL":
			t.jitter = true
		default:
			h.add(h.at("JitterStrategy"), "must be NONE or FULL")
		}
		list = append(list, t)
	})
	return list
}

func (r *reader) catchers() []catcher {
	var list []catcher
	r.handlers("Catch", func(h *reader, errors []string) {
		list = append(list, catcher{errors: errors, next: h.required("Next"), resultPath: h.target("ResultPath")})
	})
	return list
}

// handlers parses a list of retriers or catchers and checks their common
// fields.
func (r *reader) handlers(key string, each func(*reader, []string)) {
	list, _ := r.list(key)
	for i, value := range list {
		h, ok := r.reader(fmt.Sprintf("%s[%d]", r.at(key), i), value)
		if !ok {
			continue
		}
		h.text("Comment")
		h.refuse("variables", "Assign")
		h.refuse("JSONata", "Output")
		errors := h.errorNames()
		if slices.Contains(errors, errorAll) {
			if len(errors) > 1 {
				h.add(h.at("ErrorEquals"), "%s must be the only name", errorAll)
			}
			if i < len(list)-1 {
				h.add(h.at("ErrorEquals"), "%s must be in the last one", errorAll)
			}
		}
		each(h, errors)
		h.done()
	}
}

func (r *reader) errorNames() []string {
	list, _ := r.list("ErrorEquals")
	if len(list) == 0 {
		r.add(r.at("ErrorEquals"), "want at least one name")
	}
	var names []string
	for i, value := range list {
		name, ok := value.(string)
		at := fmt.Sprintf("%s[%d]", r.at("ErrorEquals"), i)
		switch {
		case !ok:
			r.add(at, "must be a string")
		case strings.HasPrefix(name, reservedErrorName) && !slices.Contains(reserved(), name):
			r.add(at, "unknown error %q with the reserved prefix %q", name, reservedErrorName)
		}
		names = append(names, name)
	}
	return names
}
