package webhook

import (
	"slices"
	"time"

	"github.com/sortie-dev/sortie/events"
)

// AttemptTime is the time limit of an attempt.
const AttemptTime = 15 * time.Second

// pauses are those between two attempts of an event; the first attempt is made at once.
var pauses = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// Attempts returns how often an event is attempted.
func Attempts() int { return len(pauses) + 1 }

// Pauses returns the pauses between the attempts of an event, each without its jitter.
func Pauses() []time.Duration { return slices.Clone(pauses) }

// keptAttempts is how many attempts a delivery shows, the newest ones.
const keptAttempts = 20

// The statuses with a meaning of their own.
const (
	statusGone            = 410
	statusTooManyRequests = 429
	statusBadGateway      = 502
	statusGatewayTimeout  = 504
)

// State is the state of a delivery.
type State string

// The states of a delivery.
const (
	Pending   State = "pending"   // an attempt is due, or waits for an earlier event of its task
	Delivered State = "delivered" // an attempt had an answer of 2xx
	Failed    State = "failed"    // no attempt is left, or the event is no longer stored
)

// States lists the states of a delivery.
func States() []State { return []State{Pending, Delivered, Failed} }

// Delivery is the delivery of one event to one webhook.
type Delivery struct {
	// Position is that of the event in the stream of its tenant.
	Position  int64  `json:"position"`
	EventID   string `json:"eventId"`
	EventType string `json:"eventType"`
	TaskID    string `json:"taskId,omitempty"`
	State     State  `json:"state"`
	// Tries counts the attempts since the event was published or redelivered; Log has
	// the last attempts of all.
	Tries int       `json:"tries"`
	Log   []Attempt `json:"log,omitempty"`
	// Due is when the next attempt of a pending delivery is made; zero is at once.
	Due time.Time `json:"due,omitzero"`
	// Replay is the place in a redelivery.
	Replay *events.Replay `json:"replay,omitempty"`
	// ExpiresAt is when the log drops it; zero for a pending one.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// Stored: a store has the delivery, pending if WasPending.
	Stored     bool `json:"-"`
	WasPending bool `json:"-"`
}

// Attempt is one attempt of a delivery.
type Attempt struct {
	At time.Time `json:"at"`
	// Status is the HTTP status; 0 without an answer.
	Status int `json:"status,omitempty"`
	// LatencyMS is the time until the end of the answer, in milliseconds.
	LatencyMS int64 `json:"latencyMs"`
	// Error says why there is no answer.
	Error string `json:"error,omitempty"`
	// Response is the start of the answer's body, at most 4 KiB.
	Response string `json:"response,omitempty"`
}

// Succeeded reports whether the receiver has accepted the event.
func (a Attempt) Succeeded() bool { return a.Status >= 200 && a.Status < 300 }

// throttles reports whether the answer asks for fewer requests.
func (a Attempt) throttles() bool {
	switch a.Status {
	case statusTooManyRequests, statusBadGateway, statusGatewayTimeout:
		return true
	}
	return false
}

// Read marks a delivery as one that a store has returned.
func (d Delivery) Read() Delivery {
	d.Stored, d.WasPending = true, d.State == Pending
	return d
}

// Again returns the delivery of an event that is to be delivered once more.
func (d Delivery) Again(place *events.Replay) Delivery {
	d.State, d.Tries, d.Due, d.ExpiresAt, d.Replay = Pending, 0, time.Time{}, time.Time{}, place
	return d
}

// GiveUp returns the delivery of an event that cannot be sent, with the reason.
func (d Delivery) GiveUp(why string, now time.Time, retention time.Duration) Delivery {
	return d.after(Attempt{At: now, Error: why}, Failed, now.Add(retention))
}

// after returns the delivery after an attempt. expires is used if it ends the delivery.
func (d Delivery) after(a Attempt, s State, expires time.Time) Delivery {
	d.Log = append(slices.Clip(d.Log), a)
	d.Log = d.Log[max(len(d.Log)-keptAttempts, 0):]
	d.Tries++
	d.State, d.Due, d.ExpiresAt = s, time.Time{}, expires
	return d
}

// attempted returns the delivery after an attempt. chance is 0 <= chance < 1.
func (d Delivery) attempted(a Attempt, now time.Time, retention time.Duration, chance float64) Delivery {
	switch {
	case a.Succeeded():
		return d.after(a, Delivered, now.Add(retention))
	case d.Tries >= len(pauses) || a.Status == statusGone:
		return d.after(a, Failed, now.Add(retention))
	}
	pause := jittered(pauses[d.Tries], chance)
	d = d.after(a, Pending, time.Time{})
	d.Due = now.Add(pause)
	return d
}

// jittered returns a pause that is up to a tenth longer.
func jittered(pause time.Duration, chance float64) time.Duration {
	return pause + time.Duration(chance*float64(pause)/10)
}

// Ready returns the pending deliveries that may be attempted now, in order, and when the
// next one is due; zero without one. pending is ordered by position. If the webhook is
// ordered, the first delivery of a task holds up the others.
func (w Webhook) Ready(pending []Delivery, now time.Time) (ready []Delivery, next time.Time) {
	tasks := map[string]bool{}
	for _, d := range pending {
		if w.Ordered && d.TaskID != "" {
			if tasks[d.TaskID] {
				continue
			}
			tasks[d.TaskID] = true
		}
		switch {
		case !d.Due.After(now):
			ready = append(ready, d)
		case next.IsZero() || d.Due.Before(next):
			next = d.Due
		}
	}
	return ready, next
}
