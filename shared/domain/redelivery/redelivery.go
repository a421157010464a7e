// Package redelivery decides which failed notifications of a run are sent again.
//
// A notification is an action of a job that sends a webhook or a notice. It has failed when its
// receiver has refused it, or has not taken it for a day. A run keeps the newest failed ones. A client
// sends one again, or all of them. A notification that is still being sent is not sent twice.
package redelivery

import (
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Most is the maximum number of failed notifications that a run keeps.
const Most = 50

// Failed is a notification that has failed.
type Failed struct {
	Action spec.EndAction  `json:"action"`
	Type   spec.ActionType `json:"type"`
	// Answer says why, for clients.
	Answer string `json:"answer"`
	// At is when it failed.
	At time.Time `json:"at"`
}

// Applies reports whether actions of a type are notifications.
func Applies(t spec.ActionType) bool { return t == spec.ActionWebhook || t == spec.ActionNotify }

// Add returns the failed notifications with f, which replaces an earlier failure of its action. The
// oldest above Most are left out.
func Add(failed []Failed, f Failed) []Failed {
	failed = append(Remove(failed, f.Action), f)
	return failed[max(len(failed)-Most, 0):]
}

// Remove returns the failed notifications without those of an action; nil if none are left.
func Remove(failed []Failed, action spec.EndAction) (left []Failed) {
	for _, f := range failed {
		if f.Action != action {
			left = append(left, f)
		}
	}
	return left
}

// Choose returns the failed notifications that are sent again: those of an action, or all if action
// is empty, without those that are being sent. Fault: InvalidRequest with the field action, for an
// action that has not failed and is not being sent.
func Choose(failed []Failed, sending []spec.EndAction, action spec.EndAction) (again []spec.EndAction, err error) {
	for _, f := range failed {
		if (action == "" || f.Action == action) && !slices.Contains(sending, f.Action) {
			again = append(again, f.Action)
		}
	}
	if action == "" || len(again) > 0 || slices.Contains(sending, action) {
		return again, nil
	}
	if len(failed) == 0 {
		return nil, fault.Invalid("action", "%s: no notification of the run has failed", action)
	}
	var names []string
	for _, f := range failed {
		names = append(names, string(f.Action))
	}
	return nil, fault.Invalid("action", "%s: the action has not failed, want one of %s", action, strings.Join(names, ", "))
}
