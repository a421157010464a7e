package streams

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
)

// subscriber is a client with a webhook, and the receiver at its address. Several goroutines
// call the receiver concurrently, so its answers depend only on the message.
type subscriber struct {
	w        *Streams
	name     string
	ref      webhook.Ref
	settings delivery.WebhookSettings
	// failures is the share of failed attempts until the time working. A dead receiver never
	// works. A receiver that is gone answers 410 to some event.
	failures   float64
	working    time.Time
	dead, gone bool
	// begin is the first cursor of the webhook; -1 before it is stored.
	begin int64
	// paused means that the client pauses the webhook for a while.
	paused, done bool

	mu sync.Mutex
	// tries and accepted count the attempts and acceptances of each event, by position. refused
	// are the events that were answered with 410.
	tries, accepted map[int64]int
	refused         map[int64]bool
	Count           int
	waited          time.Duration
}

// DrawSubscribers draws the webhooks of the world.
func (w *Streams) DrawSubscribers() {
	for i := range w.Random.IntN(4) {
		s := &subscriber{w: w, name: fmt.Sprintf("subscriber-%d", i+1), begin: -1, tries: map[int64]int{}, accepted: map[int64]int{}, refused: map[int64]bool{}}
		s.ref = webhook.Ref{Tenant: harness.Client.Tenant, ID: webhook.ID(time.Time{}, "key", harness.Client.Tenant, s.name)}
		s.settings = delivery.WebhookSettings{URL: "https://hooks.example.org/" + s.name, Ordered: w.Chance(0.5)}
		if w.Chance(0.3) {
			s.settings.RateLimit = 1 + w.Random.IntN(5)
		}
		s.failures = []float64{0, 0.1, 0.5, 1}[w.Random.IntN(4)]
		s.working = harness.Start.Add(w.UpTo(3 * time.Hour))
		s.settings.Filter.Types = [][]string{nil, nil, {"job.*"}, {"policy.updated", "schedule.*"}}[w.Random.IntN(4)]
		switch w.Random.IntN(10) {
		case 0:
			s.dead, s.failures, s.settings.Filter.Types = true, 1, []string{"job.completed", "job.failed"}
		case 1:
			s.gone = true
		}
		s.paused = w.Chance(0.3)
		w.Subscribers = append(w.Subscribers, s)
	}
}

// StartSubscribers schedules the clients with webhooks.
func (w *Streams) StartSubscribers() {
	for _, s := range w.Subscribers {
		w.Time.After(w.UpTo(time.Minute), func() {
			s.call("create", func(ctx context.Context, h *host) error {
				_, _, _, err := h.webhooks.Create(ctx, harness.Client, s.settings, s.name, "digest")
				return err
			})
			if s.paused {
				w.Time.Sleep(w.UpTo(w.Longest))
				s.pause(true)
				w.Time.Sleep(w.UpTo(w.Longest))
				s.pause(false)
			}
			s.done = true
		})
	}
	for range w.Random.IntN(3) {
		w.Time.Push(0, true, func() { w.Time.Spawn(true, w.follow) })
	}
}

func (s *subscriber) pause(pause bool) {
	s.call(fmt.Sprintf("pause %t", pause), func(ctx context.Context, h *host) error {
		_, err := h.webhooks.Change(ctx, harness.Client, s.ref.ID, change.Precondition{},
			func(in delivery.WebhookSettings) (delivery.WebhookSettings, bool, error) {
				in.Paused = pause
				return in, true, nil
			})
		return err
	})
}

// call repeats a call of the client until it is answered.
func (s *subscriber) call(what string, do func(context.Context, *host) error) {
	for {
		var err error = harness.ErrUnreachable
		if !s.w.Down(harness.NetworkOutage) && s.w.onHost(func(ctx context.Context, h *host) { err = do(ctx, h) }) && s.w.Injects("lost call", s.w.Plan.LostCalls) {
			err = harness.ErrUnreachable
		}
		s.w.Note("%s: %s: %v", s.name, what, err)
		if err == nil {
			return
		}
		if f, known := errors.AsType[*fault.Fault](err); known && (f.Code == fault.InvalidRequest || f.Code == fault.Unprocessable || f.Code == fault.NotFound) {
			s.w.Broken = fmt.Errorf("%s: %w", what, err)
			return
		}
		s.w.Time.Sleep(s.w.UpTo(5 * time.Second))
	}
}

func (w *Streams) subscriberOf(ref webhook.Ref) *subscriber {
	for _, s := range w.Subscribers {
		if s.ref == ref {
			return s
		}
	}
	return nil
}

// begun records the cursor with which a webhook was stored.
func (w *Streams) begun(ref webhook.Ref, cursor int64) {
	s := w.subscriberOf(ref)
	s.begin = max(s.begin, cursor)
}

// hung returns how long the receiver hung in attempts since the last call of hung.
func (s *subscriber) hung() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.waited
	s.waited = 0
	return d
}

// Send implements runs.Sender.
func (m *streamModel) Send(ctx context.Context, message hook.Message) (hook.Reply, error) {
	if err := ctx.Err(); err != nil {
		return hook.Reply{}, err
	}
	for _, s := range m.w.Subscribers {
		if s.settings.URL == message.URL {
			return s.receive(message), nil
		}
	}
	m.problem("a message is sent to %s", message.URL)
	return hook.Reply{Problem: "unknown"}, nil
}

// receive handles a delivery attempt.
func (s *subscriber) receive(message hook.Message) hook.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.w.Events
	event, err := events.Parse(message.Body)
	id, _ := events.ULID(event.EventID) //nolint:errcheck // compared with known ids
	position, known := m.positions[id]
	if err != nil || !known || event.EventID != message.ID || event.Notifier == nil || event.Notifier.Delivery != events.DeliveryHMAC {
		m.problem("%s got a message that is not of the stream, %v: %.200s", s.name, err, message.Body)
		return hook.Reply{Status: http.StatusBadRequest}
	}
	if !s.settings.Filter.Matches(event) {
		m.problem("%s got %s, which its filter does not select", s.name, event.EventType)
	}
	if s.settings.Ordered && !s.paused && event.Job != nil {
		for _, earlier := range m.tasks[event.Job.ID] {
			if earlier > s.begin && earlier < position && s.begin >= 0 && s.settings.Filter.Matches(m.all[earlier-1]) && !s.ended(earlier) {
				m.problem("%s got the event at %d of %s before that at %d", s.name, position, event.Job.ID, earlier)
			}
		}
	}
	s.Count++
	s.tries[position]++
	reply, taken := s.answer(id, position)
	if taken {
		s.accepted[position]++
	}
	s.waited = max(s.waited, reply.Latency)
	return reply
}

// ended reports whether an event was accepted, was refused with 410, or has used all attempts.
func (s *subscriber) ended(position int64) bool {
	return s.accepted[position] > 0 || s.refused[position] || s.tries[position] >= webhook.Attempts()
}

// answer returns the answer to an attempt. taken reports whether the receiver has received the
// event.
func (s *subscriber) answer(id string, position int64) (reply hook.Reply, taken bool) {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%d %s %s %d", s.w.Seed, s.name, id, s.tries[position])
	draw := rand.New(rand.NewPCG(hash.Sum64(), s.w.Seed)) //nolint:gosec // the seed must determine everything
	latency := time.Duration(draw.IntN(3000)) * time.Millisecond
	switch {
	case s.gone && draw.IntN(20) == 0:
		s.refused[position] = true
		return hook.Reply{Status: http.StatusGone, Latency: latency}, false
	case !s.dead && (s.w.Settling || s.w.Time.Now.After(s.working) || draw.Float64() >= s.failures):
		return hook.Reply{Status: http.StatusNoContent, Latency: latency}, true
	}
	switch draw.IntN(5) {
	case 0:
		return hook.Reply{Status: http.StatusTooManyRequests, RetryAfter: time.Duration(draw.IntN(60)) * time.Second, Latency: latency}, false
	case 1:
		return hook.Reply{Problem: "no answer", Latency: webhook.AttemptTime}, false
	case 2: // the event is received, and the connection breaks
		return hook.Reply{Problem: "connection cut", Latency: latency}, !s.dead
	}
	return hook.Reply{Status: http.StatusInternalServerError, Latency: latency}, false
}
