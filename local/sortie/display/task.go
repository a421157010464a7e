package display

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Subject says in a few words what a task is of.
func Subject(t contract.Task) string {
	switch {
	case t.JobID != "":
		return "job " + t.JobID
	case t.Program != nil:
		return strings.Join(append([]string{t.Program.Image}, t.Program.Command...), " ")
	case t.Inference != nil:
		return "model " + t.Inference.Model
	}
	if t.Format == "" {
		return ""
	}
	return t.Format + " of " + t.PI
}

// Brief is like Subject, without the folders of programs and files on this machine.
func Brief(t contract.Task) string {
	if t.JobID != "" || t.Program == nil {
		return Subject(t)
	}
	var words []string
	for _, word := range append([]string{strings.TrimPrefix(t.Program.Image, "exec:")}, t.Program.Command...) {
		if path.IsAbs(word) {
			word = path.Base(word)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// Age formats a duration in one short word: "45s", "12m", "3h", "9d".
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(d, 0)/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// Reason returns why a run failed or was skipped, or "".
func (z Times) Reason(r contract.Task) string {
	switch {
	case r.Missed != nil && r.Missed.Count > 1:
		return fmt.Sprintf("%s, %d firings until %s", r.Missed.Reason, r.Missed.Count, z.Moment(r.Missed.Until))
	case r.Missed != nil:
		return r.Missed.Reason
	case r.Overflowed != nil:
		return "full queue of its key, " + r.Overflowed.Rule
	case r.Skipped:
		var violated []string
		for _, v := range r.Violations {
			violated = append(violated, v.Constraint)
		}
		return strings.Join(violated, ", ")
	case r.Fault != nil:
		return r.Fault.Code
	}
	return ""
}

// StateReason returns why a run failed or was skipped.
func (z Times) StateReason(task contract.Task) string {
	if task.Skipped {
		return strings.TrimSuffix("skipped: "+z.Reason(task), ": ")
	}
	return z.Reason(task)
}

// Firings returns the number of firings that a run records. One run records all firings that
// were missed together.
func Firings(r contract.Task) int {
	if r.Missed != nil {
		return r.Missed.Count
	}
	return 1
}
