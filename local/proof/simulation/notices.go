package simulation

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/local/proof/simulation/calendar"
	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// noticeFor is how long a message is sent again to a service that does not take it.
const noticeFor = calendar.Day

// drawNotices draws messages on each event: to Slack, which is slow to take them, and to PagerDuty,
// which never takes those of skipped runs.
func (w *world) drawNotices() map[string]any {
	to := func(service string) map[string]any {
		return map[string]any{"type": spec.ActionNotify, "parameters": map[string]any{"service": service, "secretRef": service}}
	}
	actions := map[string]any{}
	for _, event := range spec.EndActions() {
		switch w.Random.IntN(3) {
		case 0:
			actions[string(event)] = to("slack")
		case 1:
			actions[string(event)] = []any{to("slack"), to("pagerduty")}
		}
	}
	return actions
}

// noticeTime is how long a message may be pending after the end of a run.
func (w *world) noticeTime() time.Duration {
	if w.dates == nil {
		return 0
	}
	return noticeFor
}

// checkNotice compares the event of a message with what the service got: it took the message under
// the id of the event, or took none for a day.
func (w *world) checkNotice(r *run.Run, reason string, executed bool) {
	facts := w.Hooks.Notices[harness.MessageID(r, reason)]
	switch {
	case facts == nil:
		w.Fail("%s has a record of the message %s, and no service got it", r.ID, reason)
	case executed && facts.Taken == 0:
		w.Fail("%s has the sent message %s, and no service took it", r.ID, reason)
	case !executed && facts.Taken == 0 && facts.Last.Before(r.CreatedAt.Add(noticeFor-2*w.Plan.Skew)):
		w.Fail("%s gave up the message %s after %d tries in %s", r.ID, reason, facts.Tries, facts.Last.Sub(r.CreatedAt))
	}
}
