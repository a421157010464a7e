package relay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/relay"
	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

// minutes is the function with its real table, whose reads are counted, and a bus.
type minutes struct {
	*testing.T
	clock   *clock.Virtual
	feed    *dynamo.Feed
	service *delivery.Relay
	handle  lambdakit.TaskFunc

	mu    sync.Mutex
	reads float64
	// served are the tenants whose events the bus received, and "webhooks" for their retries.
	// cut is called before each.
	served []string
	cut    func()
	// lost means that the bus does not respond. It also does not respond for the first failing
	// tenants.
	lost    bool
	failing int
}

func newMinutes(t *testing.T) *minutes {
	t.Helper()
	m := &minutes{T: t, clock: clock.NewVirtual(at), cut: func() {}}
	db := awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: m.clock})
	if err := awsfake.CreateTable(t.Context(), db.AWS(), "sortie"); err != nil {
		t.Fatal(err)
	}
	store, err := dynamo.Open(db.AWS(), dynamo.Config{Table: "sortie", Clock: m.clock, Consumed: func(_ string, _, rru float64) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.reads += rru
	}})
	if err != nil {
		t.Fatal(err)
	}
	if m.feed, err = dynamo.NewFeed(store, dynamo.FeedConfig{Retention: 30 * 24 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	keys, log := fake.NewEventKeys(nil), slog.New(slog.DiscardHandler)
	m.service = delivery.NewRelay(m.feed, keys, delivery.NoTurns{}, m.clock, log, api.Published("https://sortie.example.org"), series.Discard)
	bus := delivery.NewBus(m.feed, m, keys, delivery.NoTurns{}, log)
	dispatch := delivery.NewDispatch(delivery.NewDeliverer(
		delivery.NewSubscriptions(store, m.feed, fake.NewWakes(m.clock, nil), api.WebhookDocument, m.clock, log, fixed{}), store, nil, fixed{}.Float64, "test", series.Discard,
	), delivery.NoTurns{})
	streams := delivery.NewStreamSweep(m.service,
		[]delivery.StreamWork{bus.Work(), dispatch.Work()}, []delivery.StreamWork{bus.ReplayWork(), dispatch.ReplayWork()})
	levels := delivery.NewEventLevels(store, m.feed, store, m.clock, true)
	m.handle = relay.Handler(m.service, bus, relay.Dispatchers{dispatch, m}, streams, store, decode, &fake.Traces{}, levels.Lags, nil, m.clock.Now)
	return m
}

type fixed struct{}

func (fixed) Float64() float64 { return 0.5 }

func (fixed) Hex(n int) string { return fmt.Sprintf("%0*d", n, 1) }

// Publish implements port.Publisher.
func (m *minutes) Publish(_ context.Context, events []port.PublishedEvent) (failed []int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut()
	if m.lost || events[0].Tenant < tenantNumber(m.failing) {
		for i := range events {
			failed = append(failed, i)
		}
		return failed, fault.New(fault.Unavailable, "the bus does not respond")
	}
	for _, e := range events {
		m.served = append(m.served, e.Tenant)
	}
	return nil, nil
}

// DispatchTenants implements relay.Webhooks.
func (m *minutes) DispatchTenants(context.Context, []string) int { return 0 }

// Sweep implements relay.Webhooks. It records the retries of webhooks.
func (m *minutes) Sweep(context.Context) error {
	m.served = append(m.served, "webhooks")
	return nil
}

// minute calls the function like the schedule. It returns the read units and the served
// tenants.
func (m *minutes) minute(ctx context.Context) (reads float64, served []string) {
	m.Helper()
	m.reads, m.served = 0, nil
	m.clock.Advance(time.Minute)
	if _, err := m.handle(ctx, json.RawMessage(`{"detail-type":"Scheduled Event"}`)); err != nil && !m.lost && m.failing == 0 && ctx.Err() == nil {
		m.Fatal(err)
	}
	return m.reads, m.served
}

// append appends an event to the stream of each of n tenants.
func (m *minutes) append(n int) {
	m.Helper()
	var changes []delivery.Change
	for i := range n {
		id := fmt.Sprintf("%s-%d", m.clock.Now(), i)
		changes = append(changes, delivery.Change{ID: id, Change: port.Change{
			Run:    run.Run{Tenant: tenantNumber(i), ID: id, TaskID: id, Work: spec.Work{Kind: spec.KindExport}},
			Events: []run.Event{{ID: run.EventID(m.clock.Now(), id), Seq: 1, Type: run.EventAccepted, At: m.clock.Now(), State: run.Pending}},
		}})
	}
	if done := m.service.Relay(m.Context(), changes); done.Events != n {
		m.Fatalf("got %+v, want %d events", done, n)
	}
}

func tenantNumber(i int) string { return fmt.Sprintf("tenant-%05d", i) }

// settle advances the clock until earlier versions cannot have left unfinished work.
func (m *minutes) settle() {
	m.minute(m.Context())
	m.clock.Advance(2 * time.Hour)
	for range 2 {
		m.minute(m.Context())
	}
}

// TestQuietTenantsAreNotRead compares the reads of a minute with few and with many tenants
// that have had events.
func TestQuietTenantsAreNotRead(t *testing.T) {
	t.Parallel()
	reads := map[int]float64{}
	for _, tenants := range []int{1, 400} {
		m := newMinutes(t)
		m.append(tenants)
		m.settle()
		reads[tenants], _ = m.minute(t.Context())
		m.append(1)
		if _, served := m.minute(t.Context()); !slices.Equal(served, []string{"webhooks", tenantNumber(0)}) {
			t.Errorf("%d tenants: got %v served, want the one with an event", tenants, served)
		}
	}
	if reads[400] != reads[1] || reads[1] > 10 {
		t.Errorf("got %v read units in a minute by tenants, want the same for all, at most 10", reads)
	}
}

// TestCutMinuteIsContinued ends each call after some tenants. The next call starts with the
// retries of webhooks and then the remaining tenants. Tenants that fail, or that always have
// events, do not delay the others.
func TestCutMinuteIsContinued(t *testing.T) {
	t.Parallel()
	const tenants, failing, inOne = 60, 20, 20
	for _, walking := range []bool{true, false} {
		m := newMinutes(t)
		if !walking {
			m.settle()
		}
		m.append(failing)
		m.clock.Advance(time.Second)
		m.append(tenants)
		m.failing = failing
		times := map[string]int{}
		for minute := 1; len(times) < tenants-failing+1; minute++ {
			// A call also loses the tenants that it had begun when it was cut. Without fairness
			// some tenants are never served.
			if minute > 20*tenants/inOne {
				t.Fatalf("got %d of %d tenants served after %d minutes", len(times)-1, tenants-failing, minute)
			}
			ctx, cancel := context.WithCancel(t.Context())
			n := 0
			m.cut = func() {
				if n++; n == inOne {
					cancel()
				}
			}
			_, served := m.minute(ctx)
			cancel()
			if served[0] != "webhooks" {
				t.Errorf("minute %d: got %s first, want the webhooks", minute, served[0])
			}
			for _, tenant := range served {
				times[tenant]++
			}
			m.append(failing + 3) // they are busy all the time
		}
	}
}

// TestEarlierVersionsLeaveNothing covers versions before this one, which did not record the
// streams with unfinished work.
func TestEarlierVersionsLeaveNothing(t *testing.T) {
	t.Parallel()
	m := newMinutes(t)
	m.lost = true
	m.append(5)
	for i := range 5 {
		head, err := m.feed.Head(t.Context(), port.EventStream(tenantNumber(i)))
		if err = errors.Join(err, m.feed.Settle(t.Context(), port.EventStream(tenantNumber(i)), head.Newest)); err != nil {
			t.Fatal(err)
		}
	}
	m.minute(t.Context())
	m.lost = false
	_, served := m.minute(t.Context())
	if len(served) != 6 {
		t.Errorf("got %v served, want all tenants", served)
	}
}

// TestBusOutageIsMadeUpFor stops the bus for a time and then publishes the events of all
// tenants, without events of a later run.
func TestBusOutageIsMadeUpFor(t *testing.T) {
	t.Parallel()
	m := newMinutes(t)
	m.settle()
	m.lost = true
	m.append(7)
	for range 5 {
		m.minute(t.Context())
	}
	m.lost = false
	if _, served := m.minute(t.Context()); len(served) != 8 {
		t.Errorf("got %v served, want all tenants", served)
	}
	if reads, served := m.minute(t.Context()); len(served) != 1 || reads > 10 {
		t.Errorf("got %v served with %v read units, want nothing", served, reads)
	}
}
