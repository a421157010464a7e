package display

import (
	"fmt"
	"strings"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// EventTypes formats the types of events that a webhook sends.
func EventTypes(w contract.Webhook) string {
	if len(w.EventTypes) == 0 {
		return "all"
	}
	return Clean(strings.Join(w.EventTypes, ","))
}

// Webhook says what a webhook sends and how far it is.
func (z Times) Webhook(w contract.WebhookDetail) string {
	p := w.Progress
	text := fmt.Sprintf("%s: %s\nurl: %s\nevents: %s\nposition %d, %d pending", w.ID, w.Status, Clean(w.URL), EventTypes(w.Webhook), p.Position, p.Pending)
	if w.DisabledReason != "" {
		text += fmt.Sprintf("\ndisabled since %s: %s", z.Moment(w.DisabledAt), w.DisabledReason)
	}
	if p.Failures > 0 {
		text += fmt.Sprintf("\n%d failures in a row, the last one at %s", p.Failures, z.Moment(p.LastFailureAt))
	}
	for _, r := range p.Missed {
		text += fmt.Sprintf("\nmissed: positions %d to %d", r.From, r.To)
	}
	return text
}

// Delivery formats a delivery attempt.
func Delivery(attempt contract.WebhookAttempt) string {
	if attempt.Status == 0 {
		return Clean(attempt.Error)
	}
	return fmt.Sprintf("answered %d in %d ms", attempt.Status, attempt.LatencyMS)
}
