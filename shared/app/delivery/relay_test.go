package delivery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	systemclock "github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// relayStage is a relay to a feed.
type relayStage struct {
	tally porttest.Tally
	tb    fails
	feed  *fake.Feed
	keys  *fake.EventKeys
	clock *systemclock.Virtual
	relay *delivery.Relay
	log   lockedBuffer
	// quiet reports that calls of the feed do not fail.
	quiet atomic.Bool
	// bare reports that events are stored without DSSE envelopes.
	bare bool
}

// lockedBuffer is the log output of concurrent relays.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// fails is the common interface of *testing.T and *rapid.T.
type fails interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newRelayStage(tb fails, plan fake.Plan) *relayStage {
	s := &relayStage{tb: tb, clock: systemclock.NewVirtual(relayStart), keys: fake.NewEventKeys(nil)}
	feedPlan := func(c fake.Call) fake.Fate {
		if plan == nil || s.quiet.Load() {
			return fake.Applied
		}
		return plan(c)
	}
	s.feed = fake.NewFeed(s.clock, 7*24*time.Hour, feedPlan, func(err error) { tb.Errorf("%v", err) })
	s.relayTo(s.feed)
	return s
}

// relayTo makes the relay append to a feed.
func (s *relayStage) relayTo(feed port.Feed) {
	s.relay = delivery.NewRelay(feed, s.keys, delivery.NoTurns{}, s.clock, slog.New(slog.NewTextHandler(&s.log, nil)), delivery.Published{
		Events: func(c port.Change) (all []events.Envelope, err error) {
			for _, e := range c.Events {
				all = append(all, relayEvent(c.Run.Tenant, e.ID, e.At))
			}
			return all, nil
		},
		Unreadable: func(tenant, id string, at time.Time) events.Envelope {
			e := relayEvent(tenant, run.EventID(at, id), at)
			e.EventType, e.Job = eventtype.RelayUnreadable, nil
			return e
		},
		Bare: s.bare,
	}, s.tally.Record)
}

// sweep writes the last checkpoints.
func (s *relayStage) sweep(ctx context.Context) error {
	return delivery.NewStreamSweep(s.relay, nil, nil).Sweep(ctx)
}

var relayStart = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func relayEvent(tenant, ulid string, at time.Time) events.Envelope {
	return events.Envelope{
		SchemaVersion: events.SchemaVersion, EventID: events.ID(ulid), EventType: eventtype.Queued, OccurredAt: at, TenantID: tenant,
		IdempotencyKey: "orch-" + ulid, Actor: events.Actor{Subject: "service:steps"},
		Job: &events.Job{ID: "t", RunID: "t", Type: events.JobExport, Status: events.StatusRunning},
	}
}

// changes returns changes of a tenant with an event each. from is the number of the first.
func (s *relayStage) changes(tenant string, from, n int) (list []delivery.Change) {
	at := s.clock.Now()
	for i := range n {
		id := fmt.Sprintf("%s-%04d", tenant, from+i)
		list = append(list, delivery.Change{ID: id, At: at, Change: port.Change{
			Run: run.Run{Tenant: tenant}, Events: []run.Event{{ID: run.EventID(at.Add(time.Duration(i)*time.Millisecond), id), At: at}},
		}})
	}
	return list
}

// wantStream checks that a stream has the events of changes in their order, gapless and
// signed, and that its checkpoints prove it. It returns the number of proved events.
func (s *relayStage) wantStream(tenant string, changes []delivery.Change) int64 {
	s.tb.Helper()
	s.quiet.Store(true)
	var want []string
	for _, c := range changes {
		for _, e := range c.Events {
			want = append(want, e.ID)
		}
	}
	var got []string
	file := s.file(tenant, func(r port.FeedRecord) {
		if got = append(got, r.ID); r.Position != int64(len(got)) {
			s.tb.Errorf("got position %d of record %d", r.Position, len(got))
		}
	})
	if !slices.Equal(got, want) {
		s.tb.Fatalf("got events %v, want %v", got, want)
	}
	if len(want) == 0 {
		return 0
	}
	proof, err := events.Verify(context.Background(), strings.NewReader(file), s.published())
	if err != nil {
		s.tb.Fatalf("the stream of %s does not verify: %v\n%s", tenant, err, &s.log)
	}
	if proof.From != 0 || proof.To+proof.Outside != int64(len(want)) {
		s.tb.Errorf("got proof %+v of %d events", proof, len(want))
	}
	return proof.To
}

// file returns the stream of a tenant with its checkpoints, in the form of an export.
func (s *relayStage) file(tenant string, each func(port.FeedRecord)) string {
	s.tb.Helper()
	stream := port.EventStream(tenant)
	records, err := s.feed.Read(context.Background(), stream, 0, 100_000)
	if err != nil {
		s.tb.Fatal(err)
	}
	marks, err := s.feed.Marks(context.Background(), stream, 0, 100_000)
	if err != nil {
		s.tb.Fatal(err)
	}
	var file strings.Builder
	for _, r := range records {
		each(r)
		fmt.Fprintf(&file, "%s\n", r.Data)
		for _, m := range marks {
			if m.Position == r.Position {
				line, _ := json.Marshal(events.CheckpointLine{Checkpoint: string(m.Data)}) //nolint:errchkjson // text
				fmt.Fprintf(&file, "%s\n", line)
			}
		}
	}
	return file.String()
}

func (s *relayStage) published() events.Keys {
	s.tb.Helper()
	all, err := s.keys.Published(context.Background())
	if err != nil {
		s.tb.Fatal(err)
	}
	document, err := json.Marshal(map[string]any{"keys": all})
	if err != nil {
		s.tb.Fatal(err)
	}
	keys, err := events.ParseKeys(document)
	if err != nil {
		s.tb.Fatal(err)
	}
	return keys
}

func (s *relayStage) wantRelayed(changes []delivery.Change) {
	s.tb.Helper()
	if done := s.relay.Relay(context.Background(), changes); len(done.Redeliver)+len(done.SetAside) > 0 {
		s.tb.Errorf("got %+v, want all changes relayed\n%s", done, &s.log)
	}
}

func TestStreamHasEachEventOnceInOrder(t *testing.T) {
	t.Parallel()
	s := newRelayStage(t, nil)
	first, other := s.changes("acme", 1, 5), s.changes("other", 1, 3)
	s.wantRelayed(slices.Concat(first[:2], other, first[2:]))
	s.wantRelayed(slices.Concat(first[3:], s.changes("acme", 6, 2)))
	s.wantStream("acme", append(first, s.changes("acme", 6, 2)...))
	s.wantStream("other", other)
}

// TestRelayFailsAtEachCall fails each call of the feed, before and after it is applied, while
// changes are delivered repeatedly.
func TestRelayFailsAtEachCall(t *testing.T) {
	t.Parallel()
	for _, fate := range []fake.Fate{fake.Lost, fake.Unsure} {
		failed := 0
		for at := 1; at < 40; at++ {
			s := newRelayStage(t, func(c fake.Call) fake.Fate {
				if c.Number == at {
					failed++
					return fate
				}
				return fake.Applied
			})
			all := s.changes("acme", 1, 40)
			for _, part := range [][]delivery.Change{all[:10], all[:10], all[5:20], all[:20], all[20:21], all[20:21], all[10:], all[10:]} {
				_ = s.relay.Relay(t.Context(), part)
				s.clock.Advance(4 * time.Second)
			}
			s.wantStream("acme", all)
		}
		if failed < 20 {
			t.Errorf("got %d failed calls, want those of all steps", failed)
		}
	}
}

// TestRelaysCompete runs relays with the same changes, with random failures in a random order.
// Sweeps write the last checkpoint.
func TestRelaysCompete(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newRelayStage(t, fake.Seeded(rapid.Uint64().Draw(t, "seed"), rapid.Float64Range(0, 0.3).Draw(t, "rate")))
		all := s.changes("acme", 1, rapid.IntRange(1, 30).Draw(t, "changes"))
		for at := 0; at < len(all); {
			part := all[at : at+rapid.IntRange(1, len(all)-at).Draw(t, "size")]
			relays := rapid.IntRange(1, 3).Draw(t, "relays")
			done := make(chan delivery.Relayed, relays)
			for range relays {
				go func() { done <- s.relay.Relay(context.Background(), part) }()
			}
			relayed := false
			for range relays {
				one := <-done
				relayed = relayed || len(one.Redeliver)+len(one.SetAside) == 0
			}
			s.clock.Advance(time.Duration(rapid.IntRange(0, 15).Draw(t, "seconds")) * time.Second)
			if rapid.Bool().Draw(t, "rotate") {
				s.keys.Rotate()
			}
			if relayed {
				at += len(part)
			}
		}
		s.quiet.Store(true)
		s.clock.Advance(11 * time.Second)
		if err := s.sweep(context.Background()); err != nil {
			t.Fatal(err)
		}
		if proved := s.wantStream("acme", all); proved != int64(len(all)) {
			t.Fatalf("got checkpoints of %d events, want %d", proved, len(all))
		}
	})
}

func TestCheckpointsByTimeAndNumber(t *testing.T) {
	t.Parallel()
	s := newRelayStage(t, nil)
	sizes := func() (sizes []int64) {
		t.Helper()
		marks, err := s.feed.Marks(t.Context(), port.EventStream("acme"), 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range marks {
			c, err := s.published().Checkpoint(string(m.Data))
			if err != nil || c.Tree.Size != m.Position {
				t.Fatalf("got a checkpoint of %d events at %d, %v", c.Tree.Size, m.Position, err)
			}
			sizes = append(sizes, c.Tree.Size)
		}
		return sizes
	}
	want := func(when string, want ...int64) {
		t.Helper()
		if got := sizes(); !slices.Equal(got, want) {
			t.Errorf("%s: got checkpoints %v, want %v", when, got, want)
		}
	}
	s.wantRelayed(s.changes("acme", 1, 2))
	want("first events", 2)
	s.clock.Advance(9 * time.Second)
	s.wantRelayed(s.changes("acme", 10, 1))
	want("after 9 s", 2)
	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("sweep after 9 s", 2)
	s.clock.Advance(time.Second)
	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("sweep after 10 s", 2, 3)
	s.clock.Advance(time.Hour)
	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("sweep without events", 2, 3)
	s.wantRelayed(s.changes("acme", 20, 1))
	want("after an hour", 2, 3, 4)
	s.wantRelayed(s.changes("acme", 30, 2100))
	want("2,100 events", 2, 3, 4, 1004, 2004)
}

// TestTenantsAreIndependent fails the stream of one tenant. Its changes are delivered again.
// They are set aside after 15 minutes if they delay changes of others, and otherwise after 20
// hours.
func TestTenantsAreIndependent(t *testing.T) {
	t.Parallel()
	s := newRelayStage(t, func(c fake.Call) fake.Fate {
		if c.Subject == port.EventStream("broken") {
			return fake.Lost
		}
		return fake.Applied
	})
	broken, works := s.changes("broken", 1, 2), s.changes("works", 1, 2)
	mixed := []delivery.Change{broken[0], works[0], broken[1], works[1]}
	check := func(when string, changes []delivery.Change, again, aside int) {
		t.Helper()
		if done := s.relay.Relay(t.Context(), changes); len(done.Redeliver) != again || len(done.SetAside) != aside {
			t.Errorf("%s: got %+v, want %d again and %d aside", when, done, again, aside)
		}
	}
	check("at once", mixed, 2, 0)
	s.clock.Advance(15 * time.Minute)
	check("15 min later, alone", broken, 2, 0)
	check("15 min later", mixed, 0, 2)
	s.clock.Advance(20 * time.Hour)
	check("20 h later, alone", broken, 0, 2)
	s.wantStream("works", works)
}

func TestUnreadableChangeTakesAPosition(t *testing.T) {
	t.Parallel()
	s := newRelayStage(t, nil)
	all := s.changes("acme", 1, 3)
	bad := delivery.Change{ID: "bad", At: s.clock.Now(), Change: port.Change{Run: run.Run{Tenant: "acme"}}, Err: errors.New("it is poison")}
	unknown := delivery.Change{ID: "worse", At: s.clock.Now(), Err: errors.New("it has no tenant")}
	for range 2 {
		done := s.relay.Relay(t.Context(), []delivery.Change{all[0], bad, unknown, all[1]})
		if !slices.Equal(done.SetAside, []string{"bad", "worse"}) || len(done.Redeliver) > 0 || done.Events != 3 {
			t.Fatalf("got %+v, want bad and worse set aside", done)
		}
	}
	bad.Err, bad.Events = nil, []run.Event{{ID: run.EventID(bad.At, "bad")}}
	s.wantStream("acme", []delivery.Change{all[0], bad, all[1]})
}

// TestLostStreamBeginsAgain loses a stream: the new one begins at the first position.
func TestLostStreamBeginsAgain(t *testing.T) {
	t.Parallel()
	s := newRelayStage(t, nil)
	all := s.changes("acme", 1, 5)
	s.wantRelayed(all[:3])
	s.feed.Lose(port.EventStream("acme"))
	s.wantRelayed(all[2:])
	s.wantStream("acme", all[2:])
}
