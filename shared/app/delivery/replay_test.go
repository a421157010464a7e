package delivery_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// replaying has the use cases of replays. Unless they are quiet, its feed, bus and store fail
// as planned.
type replaying struct {
	*hooked
	replays   *delivery.Replays
	bus       *delivery.Bus
	publisher *fake.Publisher
	keys      *fake.EventKeys
	quiet     atomic.Bool
}

func withReplays(t *testing.T, plan fake.Plan) *replaying {
	t.Helper()
	h := &replaying{hooked: withWebhooks(t), keys: fake.NewEventKeys(nil)}
	h.quiet.Store(true)
	noisy := func(c fake.Call) fake.Fate {
		if plan == nil || h.quiet.Load() {
			return fake.Applied
		}
		return plan(c)
	}
	policy, err := guard.Policy{}.WithRules("127.0.0.1")
	h.ok(err)
	h.feed = fake.NewFeed(h.clock, 7*24*time.Hour, noisy, func(err error) { t.Error(err) })
	h.connect(fake.NewWebhooks(h.store, noisy, func(err error) { t.Error(err) }), policy.WithPlainLoopback())
	h.publisher = fake.NewPublisher(noisy)
	h.replays = delivery.NewReplays(h.webhooks, true)
	h.bus = delivery.NewBus(h.feed, h.publisher, h.keys, delivery.NoTurns{}, slog.New(slog.NewTextHandler(h.log, nil)))
	return h
}

// toBus runs the part of a sweep that publishes to the bus.
func (h *replaying) toBus() error {
	return errors.Join(h.bus.Publish(h.Context(), subscriber.Tenant), h.bus.Replay(h.Context(), subscriber.Tenant))
}

// all returns a request for all events.
func all(webhookID string) delivery.ReplayRequest {
	return delivery.ReplayRequest{WebhookID: webhookID, Limit: delivery.MaxReplay}
}

// replay accepts a replay without a key.
func (h *replaying) replay(in delivery.ReplayRequest) delivery.EventReplay {
	h.Helper()
	r, existing, err := h.replays.Replay(h.Context(), subscriber, in, "", "d")
	if err != nil || existing {
		h.Fatalf("got %+v, %t, %v, want a new replay", r, existing, err)
	}
	return r
}

// TestReplayToAWebhook sends the events of a task again, under one idempotency key
// (EE-2.15).
func TestReplayToAWebhook(t *testing.T) {
	t.Parallel()
	h := withReplays(t, nil)
	w := h.subscribe(func(in *delivery.WebhookSettings) { in.Filter.Types = []string{"job.*"} })
	h.publish("a", "b", "a", "c", "a")
	h.work()
	first := h.receiver.got
	h.receiver.tasks()
	in := all(w.ID)
	in.Filter.TaskID = "a"
	for turn := range 3 {
		r, existing, err := h.replays.Replay(t.Context(), subscriber, in, "key", "d")
		if err != nil || existing != (turn > 0) || r.Total != 3 || r.Sent != 3*min(turn, 1) {
			t.Fatalf("turn %d: got %+v, %t, %v, want 3 events", turn, r, existing, err)
		}
		h.work()
	}
	if len(h.receiver.got) != 3 {
		t.Fatalf("got %d events, want 3", len(h.receiver.got))
	}
	places := map[int]bool{}
	for i, e := range h.receiver.got {
		at := slices.IndexFunc(first, func(f events.Envelope) bool { return f.EventID == e.EventID })
		if at < 0 || e.Job.ID != "a" || e.IdempotencyKey != first[at].IdempotencyKey || e.Notifier.Replay == nil || e.Notifier.Replay.Total != 3 {
			t.Fatalf("got %s, want an event of task a in a replay of 3", h.receiver.bodies[i])
		}
		places[e.Notifier.Replay.Ordinal] = true
	}
	if !places[1] || !places[2] || !places[3] {
		t.Errorf("got ordinals %v, want 1 to 3", places)
	}
	if _, _, err := h.replays.Replay(t.Context(), subscriber, in, "key", "other"); !fault.Is(err, fault.IdempotencyMismatch) {
		t.Errorf("got %v for another request, want %s", err, fault.IdempotencyMismatch)
	}
	other := subscriber
	other.Tenant = "other"
	if _, _, err := h.replays.Replay(t.Context(), other, in, "key", "d"); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v for the webhook of another tenant, want %s", err, fault.NotFound)
	}
}

// TestReplayToTheBus compares the signed events of a replay with the first ones
// (EE-5.8).
func TestReplayToTheBus(t *testing.T) {
	t.Parallel()
	h := withReplays(t, nil)
	h.append("a", "b", "c", "b")
	h.ok(h.toBus())
	first := h.publisher.Events()
	h.keys.Rotate()
	in := all("")
	in.Filter.TaskID = "b"
	r := h.replay(in)
	h.append("b") // not in the range
	for range 2 {
		h.ok(h.toBus())
	}
	got := h.publisher.Events()[len(first)+1:]
	if r.Total != 2 || len(got) != 2 {
		t.Fatalf("got %+v and %d events, want 2", r, len(got))
	}
	stage := &relayStage{tb: t, keys: h.keys}
	for i, m := range got {
		was := first[[]int{1, 3}[i]]
		e, payload, err := stage.published().OpenMessage(t.Context(), encode(t, m))
		if err != nil {
			t.Fatal(err)
		}
		_, before, err := events.Unverified(was.Data)
		h.ok(err)
		want, wantErr := events.Canonical(before)
		is, isErr := events.Canonical(payload)
		if h.ok(errors.Join(wantErr, isErr)); !bytes.Equal(is, want) {
			t.Errorf("got %s, want %s", is, want)
		}
		if place := (events.Replay{Ordinal: i + 1, Total: 2}); e.Notifier.Replay == nil || e.Notifier.Replay.Ordinal != place.Ordinal || e.Notifier.Replay.Total != 2 ||
			e.Notifier.Channel != "orch.jobs" || m.Replay != fmt.Sprintf("%d/2", i+1) || m.Sequence != was.Sequence || m.DedupID() == was.DedupID() {
			t.Errorf("got %+v of %+v, want place %+v", m, e.Notifier, place)
		}
	}
}

// TestRangeOfAReplay replays parts of ten events, one a minute, of which the first two
// have expired.
func TestRangeOfAReplay(t *testing.T) {
	t.Parallel()
	h := withReplays(t, nil)
	h.append("a", "b")
	h.clock.Advance(7*24*time.Hour + time.Second)
	begin := h.clock.Now()
	for range 8 {
		h.append("c")
		h.clock.Advance(time.Minute)
	}
	head, err := h.feed.Head(t.Context(), port.EventStream(subscriber.Tenant))
	h.ok(err)
	at := func(position int64) *delivery.Place {
		return &delivery.Place{Epoch: head.Epoch, Position: position}
	}
	minute := func(n float64) *delivery.Place {
		return &delivery.Place{At: begin.Add(time.Duration(n * float64(time.Minute)))}
	}
	for name, row := range map[string]struct {
		from, to *delivery.Place
		limit    int
		want     string
		fault    fault.Code
	}{
		"all":                   {limit: 100, want: "3 to 10: 8"},
		"limit":                 {limit: 3, want: "3 to 5: 3, more"},
		"limit is the number":   {limit: 8, want: "3 to 10: 8"},
		"cursors":               {from: at(4), to: at(6), limit: 100, want: "5 to 6: 2"},
		"before the oldest":     {from: at(2), to: at(3), limit: 100, want: "3 to 3: 1"},
		"times":                 {from: minute(2), to: minute(4), limit: 100, want: "5 to 6: 2"},
		"times between events":  {from: minute(1.5), to: minute(4.5), limit: 100, want: "5 to 7: 3"},
		"time before all":       {from: minute(-9999), to: minute(1), limit: 100, want: "3 to 3: 1"},
		"time after all":        {from: minute(7), to: minute(99), limit: 100, want: "10 to 10: 1"},
		"time and cursor":       {from: minute(7), to: at(10), limit: 100, want: "10 to 10: 1"},
		"empty range":           {from: at(6), to: at(6), limit: 100, fault: fault.Unprocessable},
		"to before from":        {from: at(6), to: at(4), limit: 100, fault: fault.Unprocessable},
		"expired cursor":        {from: at(1), limit: 100, fault: fault.InvalidRequest},
		"unknown cursor":        {to: at(11), limit: 100, fault: fault.InvalidRequest},
		"cursor of other epoch": {from: &delivery.Place{Epoch: "zz", Position: 4}, limit: 100, fault: fault.InvalidRequest},
		"no limit":              {fault: fault.InvalidRequest},
		"large limit":           {limit: delivery.MaxReplay + 1, fault: fault.InvalidRequest},
	} {
		r, _, err := h.replays.Replay(t.Context(), subscriber, delivery.ReplayRequest{From: row.from, To: row.to, Limit: row.limit}, "", "")
		if row.fault != "" {
			if !fault.Is(err, row.fault) {
				t.Errorf("%s: got %+v, %v, want %s", name, r, err, row.fault)
			}
			continue
		}
		got := fmt.Sprintf("%d to %d: %d", r.From, r.To, r.Total)
		if r.More {
			got += ", more"
		}
		if err != nil || got != row.want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, row.want)
		}
	}
}

func TestReplayNeedsItsTarget(t *testing.T) {
	t.Parallel()
	h := withReplays(t, nil)
	h.append("a")
	h.replays = delivery.NewReplays(h.webhooks, false)
	if _, _, err := h.replays.Replay(t.Context(), subscriber, all(""), "", ""); !fault.Is(err, fault.Unprocessable) || !strings.Contains(err.Error(), "no bus") {
		t.Errorf("got %v without a bus, want %s", err, fault.Unprocessable)
	}
	w := h.subscribe(func(in *delivery.WebhookSettings) { in.Paused = true })
	for range 10 {
		h.replay(all(w.ID))
	}
	if _, _, err := h.replays.Replay(t.Context(), subscriber, all(w.ID), "", ""); !fault.Is(err, fault.Unprocessable) || !strings.Contains(err.Error(), "10 redeliveries") {
		t.Errorf("got %v for the eleventh replay, want %s", err, fault.Unprocessable)
	}
}

// TestFaultsLoseNoReplay fails calls before and after they are applied. The bus gets each event
// of each replay with its place, at least once; the webhook gets each replay once.
func TestFaultsLoseNoReplay(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			h := withReplays(t, fake.Seeded(seed, 0.15))
			w := h.subscribe()
			h.append(slices.Repeat([]string{"a", "b"}, 65)...)
			h.pass(time.Minute)
			requests := map[string]delivery.ReplayRequest{"bus": all(""), "task": all(""), "webhook": all(w.ID), "webhook of a task": all(w.ID)}
			for _, key := range []string{"task", "webhook of a task"} {
				in := requests[key]
				in.Filter.TaskID = "b"
				requests[key] = in
			}
			deliveredBefore := len(h.receiver.tasks())
			h.quiet.Store(false)
			for range 40 {
				for key, in := range requests {
					_, _, _ = h.replays.Replay(t.Context(), subscriber, in, key, key)
				}
				_ = h.toBus()
				h.pass(20 * time.Second)
			}
			h.quiet.Store(true)
			h.ok(h.toBus())
			h.pass(time.Hour)
			places := map[string]map[string]string{} // by replay
			for _, m := range h.publisher.Events() {
				if m.ReplayID == "" {
					continue
				}
				if places[m.ReplayID] == nil {
					places[m.ReplayID] = map[string]string{}
				}
				if was := places[m.ReplayID][m.Replay]; was != "" && was != m.ID {
					t.Errorf("got %s and %s at place %s of a replay, want one event", was, m.ID, m.Replay)
				}
				places[m.ReplayID][m.Replay] = m.ID
			}
			var sizes []int
			for _, events := range places {
				sizes = append(sizes, len(events))
			}
			if slices.Sort(sizes); fmt.Sprint(sizes) != "[65 130]" {
				t.Errorf("got replays with %v places, want 65 and 130", sizes)
			}
			for key, in := range requests {
				r, existing, err := h.replays.Replay(t.Context(), subscriber, in, key, key)
				if err != nil || !existing || r.Sent != r.Total {
					t.Errorf("%s: got %+v, %t, %v, want all events sent", key, r, existing, err)
				}
			}
			h.receiver.mu.Lock()
			ends := map[string]int{} // the last events of replays by their totals
			for _, e := range h.receiver.got {
				if p := e.Notifier.Replay; p != nil && p.Ordinal == p.Total {
					ends[fmt.Sprint(p.Total, e.EventID)]++
				}
			}
			h.receiver.mu.Unlock()
			if len(ends) != 2 || deliveredBefore < 130 {
				t.Errorf("got ends of replays %v behind %d deliveries, want one of 65 and one of 130", ends, deliveredBefore)
			}
			if p := h.view(w).Progress; len(p.Replays) != 0 || p.Pending != 0 {
				t.Errorf("got %+v, want nothing left", p)
			}
		})
	}
}

// TestReplayOfAnotherWorkerContinues starts a replay to the bus in a process that ends during
// it. Another process continues the replay.
func TestReplayOfAnotherWorkerContinues(t *testing.T) {
	t.Parallel()
	published := 0
	h := withReplays(t, func(c fake.Call) fake.Fate {
		if strings.HasPrefix(c.Subject, "urn:orch:event:") {
			if published++; published > 250 {
				return fake.Lost
			}
		}
		return fake.Applied
	})
	h.append(slices.Repeat([]string{"a"}, 300)...)
	r := h.replay(all(""))
	h.quiet.Store(false)
	if err := h.bus.Replay(t.Context(), subscriber.Tenant); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("got %v, want Unavailable", err)
	}
	h.quiet.Store(true)
	other := delivery.NewBus(h.feed, h.publisher, h.keys, delivery.NoTurns{}, slog.New(slog.DiscardHandler))
	h.ok(other.Replay(t.Context(), subscriber.Tenant))
	var places []string
	for _, m := range h.publisher.Events() {
		places = append(places, m.Replay)
	}
	if len(places) != r.Total || places[250] != "251/300" || places[299] != "300/300" {
		t.Errorf("got %d events, want 300 once each", len(places))
	}
}

func encode(t *testing.T, m port.PublishedEvent) []byte {
	t.Helper()
	document, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return document
}
