package webhook

import (
	"slices"
	"time"

	"github.com/sortie-dev/sortie/events"
)

// AttemptTime is the time limit of an attempt.
const AttemptTime = 15 * time.Second

// pauses are the pauses between the attempts of an event. The first attempt is made at once.
var pauses = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// Attempts returns the maximum number of attempts of an event.
func Attempts() int { return len(pauses) + 1 }

// Pauses returns the pauses between the attempts of an event, without jitter.
func Pauses() []time.Duration { return slices.Clone(pauses) }

// keptAttempts is the number of attempts that a delivery stores: the newest ones.
const keptAttempts = 20

// The HTTP statuses that are handled specially.
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
	Pending   State = "pending"   // an attempt is due, or an earlier event of its task comes first
	Delivered State = "delivered" // an attempt was answered with 2xx
	Failed    State = "failed"    // no attempt is left, or the event is no longer stored
)

// States lists the states of a delivery.
func States() []State { return []State{Pending, Delivered, Failed} }

// Delivery is the delivery of one event to one webhook.
type Delivery struct {
	// Position is the position of the event in the stream of its tenant.
	Position  int64  `json:"position"`
	EventID   string `json:"eventId"`
	EventType string `json:"eventType"`
	TaskID    string `json:"taskId,omitempty"`
	State     State  `json:"state"`
	// Tries counts the attempts since the event was published or redelivered. Log has the last
	// attempts, including earlier ones.
	Tries int       `json:"tries"`
	Log   []Attempt `json:"log,omitempty"`
	// Due is when the next attempt of a pending delivery is made; zero means at once.
	Due time.Time `json:"due,omitzero"`
	// Replay is the place of the event in a redelivery; nil without one.
	Replay *events.Replay `json:"replay,omitempty"`
	// ExpiresAt is when the delivery is removed from the log; zero while it is pending.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// Stored: the delivery was read from a store, where it was pending if WasPending.
	Stored     bool `json:"-"`
	WasPending bool `json:"-"`
}

// Attempt is one attempt of a delivery.
type Attempt struct {
	At time.Time `json:"at"`
	// Status is the HTTP status; 0 without a response.
	Status int `json:"status,omitempty"`
	// LatencyMS is the time until the end of the response, in milliseconds.
	LatencyMS int64 `json:"latencyMs"`
	// Error says why there is no response.
	Error string `json:"error,omitempty"`
	// Response is the start of the response body, at most 4 KiB.
	Response string `json:"response,omitempty"`
}

// Succeeded reports whether the receiver has accepted the event.
func (a Attempt) Succeeded() bool { return a.Status >= 200 && a.Status < 300 }

// throttles reports whether the response requests fewer requests.
func (a Attempt) throttles() bool {
	switch a.Status {
	case statusTooManyRequests, statusBadGateway, statusGatewayTimeout:
		return true
	}
	return false
}

// Read returns the delivery, marked as read from a store.
func (d Delivery) Read() Delivery {
	d.Stored, d.WasPending = true, d.State == Pending
	return d
}

// Again returns the delivery reset for a redelivery.
func (d Delivery) Again(place *events.Replay) Delivery {
	d.State, d.Tries, d.Due, d.ExpiresAt, d.Replay = Pending, 0, time.Time{}, time.Time{}, place
	return d
}

// GiveUp returns the delivery as Failed, for an event that cannot be sent. why is the reason.
func (d Delivery) GiveUp(why string, now time.Time, retention time.Duration) Delivery {
	return d.after(Attempt{At: now, Error: why}, Failed, now.Add(retention))
}

// after returns the delivery after an attempt, in state s. expires is the new ExpiresAt.
func (d Delivery) after(a Attempt, s State, expires time.Time) Delivery {
	d.Log = append(slices.Clip(d.Log), a)
	d.Log = d.Log[max(len(d.Log)-keptAttempts, 0):]
	d.Tries++
	d.State, d.Due, d.ExpiresAt = s, time.Time{}, expires
	return d
}

// attempted returns the delivery after an attempt. chance is a random number, 0 <= chance < 1.
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

// jittered returns the pause extended by up to a tenth.
func jittered(pause time.Duration, chance float64) time.Duration {
	return pause + time.Duration(chance*float64(pause)/10)
}

// Ready returns the pending deliveries that may be attempted now, in order, and when the next
// one is due; zero without one. pending is ordered by position. If the webhook is ordered, only
// the first pending delivery of each task may be attempted.
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
