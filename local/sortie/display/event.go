package display

import (
	"fmt"

	"github.com/sortie-dev/sortie/events"
)

// Event returns the time, the type, the subject and the details of an event.
func (z Times) Event(e events.Envelope) []string {
	about, details := "", ""
	switch {
	case e.Job != nil:
		about, details = fmt.Sprintf("%s #%d", e.Job.ID, e.Job.Attempt), e.Job.Message
		if e.Job.Fault != nil {
			details = e.Job.Fault.Code + ": " + e.Job.Fault.Message
		}
	case e.Schedule != nil:
		about, details = e.Schedule.DefinitionID, e.Schedule.Reason
	case e.Policy != nil:
		about, details = e.Policy.Resource+" "+e.Policy.ID, e.Actor.Subject
	}
	return []string{z.Instant(e.OccurredAt), Clean(string(e.EventType)), Clean(about), Clean(details)}
}
