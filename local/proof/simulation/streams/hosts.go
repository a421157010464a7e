package streams

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/functions/relay"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

// host is a process that relays and delivers events, with its memory of the stream. On AWS one
// call at a time uses it. Locally it is part of Sortie's process.
type host struct {
	relay    *delivery.Relay
	function lambdakit.TaskFunc
	delivery *delivery.Deliverer
	dispatch *delivery.Dispatch
	webhooks *delivery.Webhooks
	sweep    *delivery.StreamSweep
	streams  *stream.Streams
}

// newHost starts a process. name is the owner of its leases.
func (w *Streams) newHost(name string) (*host, error) {
	own, err := w.Home.Feed(context.Background())
	if err != nil {
		return nil, err
	}
	h, feed, clock := &host{}, faultyFeed{own, w}, harness.HostClock{W: w.Base}
	store := faultyWebhooks{w.Process.Store, w}
	published := api.Published("http://sortie")
	published.Bare = !w.Home.SurvivesCrash() // the local process has the signing key
	turns := w.writerTurns(clock)
	h.relay = delivery.NewRelay(feed, w.Events.keys, turns, clock, w.Log, published, series.Discard)
	subscriptions := delivery.NewSubscriptions(store, feed, w.Events, api.WebhookDocument, clock, w.Log, harness.Chance{W: w.Base})
	h.delivery = delivery.NewDeliverer(subscriptions, w.Process.Store, w.Events, w.Random.Float64, name, series.Discard)
	h.dispatch = delivery.NewDispatch(h.delivery, turns)
	bus := delivery.NewBus(feed, w.Events, w.Events.keys, turns, w.Log)
	works := []delivery.StreamWork{h.dispatch.Work()}
	if w.Home.SurvivesCrash() {
		works = append(works, bus.Work())
	}
	h.sweep = delivery.NewStreamSweep(h.relay, works, nil)
	h.function = relay.Handler(h.relay, bus, noWebhooks{}, h.sweep, w.Process.Store, dynamo.ChangeOf, &fake.Traces{}, noLags, nil, clock.Now)
	h.webhooks = delivery.NewWebhooks(subscriptions, nil, guard.Policy{})
	h.streams = stream.New(feed, clock, w.Log, w.Random.Float64, stream.Config{Keys: w.Events.keys})
	return h, nil
}

func noLags(context.Context) ([]series.Sample, error) { return nil, nil }

// onHost calls do with a host. It returns false if the host has crashed; that host is not used
// again.
func (w *Streams) onHost(do func(context.Context, *host)) bool {
	p := &w.Events.relays
	var h *host
	if last := len(p.hosts) - 1; last >= 0 {
		h = p.hosts[last]
		if w.Home.SurvivesCrash() {
			p.hosts = p.hosts[:last]
		}
	} else {
		name := "local" // the next process takes over the leases
		if w.Home.SurvivesCrash() {
			name = w.Hex(4)
		}
		var err error
		if h, err = w.newHost(name); err != nil {
			w.Broken = err
			return false
		}
		if !w.Home.SurvivesCrash() {
			p.hosts = append(p.hosts, h)
		}
	}
	ok := w.Call(func(ctx context.Context) {
		w.Time.Current.Call.Lasting = !w.Home.SurvivesCrash()
		do(ctx, h)
	})
	if ok && w.Home.SurvivesCrash() {
		p.hosts = append(p.hosts, h)
	}
	return ok
}

// errKilled is the result of a call of a process that was killed.
var errKilled = fault.New(fault.Unavailable, "the process was killed")

// during makes a call of the streams or the webhooks. The call may be slow, fail, or fail after
// it was made, and the process can crash before and after it. The call of a crashed process
// returns an error instead of a panic, because a goroutine of the process may make it.
func during[T any](ctx context.Context, w *Streams, write bool, do func() (T, error)) (result T, err error) {
	var none T
	defer func() {
		switch reason := recover(); reason {
		case nil:
		case harness.ProcessCrash{}:
			result, err = none, errKilled
		default:
			panic(reason)
		}
	}()
	w.MaybeCrash()
	if err := harness.Interrupted(ctx); err != nil {
		return none, err
	}
	if write && w.Injects("overlapping commit", w.Plan.SlowCommits) {
		w.Time.Sleep(w.UpTo(harness.Slowest))
	}
	fate := w.StoreFaults(fake.Call{})
	if fate == fake.Lost {
		return none, fault.New(fault.Unavailable, "request lost")
	}
	result, err = do()
	if write {
		w.Events.touched = true
	}
	w.MaybeCrash()
	if fate == fake.Unsure && err == nil {
		return none, fault.New(fault.Unavailable, "response lost")
	}
	return result, err
}

// duringWrite is like during for a write without a result.
func duringWrite(ctx context.Context, w *Streams, do func() error) error {
	_, err := during(ctx, w, true, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// faultyFeed is a feed with injected faults.
type faultyFeed struct {
	port.Feed
	w *Streams
}

// Head implements port.Feed.
func (f faultyFeed) Head(ctx context.Context, stream string) (port.Head, error) {
	return during(ctx, f.w, false, func() (port.Head, error) { return f.Feed.Head(ctx, stream) })
}

// Append implements port.Feed.
func (f faultyFeed) Append(ctx context.Context, stream string, b port.Batch) (port.Head, error) {
	return during(ctx, f.w, true, func() (port.Head, error) { return f.Feed.Append(ctx, stream, b) })
}

// Positions implements port.Feed.
func (f faultyFeed) Positions(ctx context.Context, stream string, records []port.FeedRecord) (map[string]int64, error) {
	return during(ctx, f.w, false, func() (map[string]int64, error) { return f.Feed.Positions(ctx, stream, records) })
}

// Read implements port.Feed.
func (f faultyFeed) Read(ctx context.Context, stream string, after int64, limit int) ([]port.FeedRecord, error) {
	return during(ctx, f.w, false, func() ([]port.FeedRecord, error) { return f.Feed.Read(ctx, stream, after, limit) })
}

// Due implements port.Feed.
func (f faultyFeed) Due(ctx context.Context, group string, now time.Time, after string, limit int) (streams []string, next string, err error) {
	streams, err = during(ctx, f.w, false, func() (streams []string, err error) {
		streams, next, err = f.Feed.Due(ctx, group, now, after, limit)
		return streams, err
	})
	return streams, next, err
}

// SetDue implements port.Feed.
func (f faultyFeed) SetDue(ctx context.Context, stream string, at time.Time) error {
	return duringWrite(ctx, f.w, func() error { return f.Feed.SetDue(ctx, stream, at) })
}

// Settle implements port.Feed.
func (f faultyFeed) Settle(ctx context.Context, stream string, newest int64) error {
	return duringWrite(ctx, f.w, func() error { return f.Feed.Settle(ctx, stream, newest) })
}

// Cursor implements port.Feed.
func (f faultyFeed) Cursor(ctx context.Context, stream, consumer string) (int64, error) {
	return during(ctx, f.w, false, func() (int64, error) { return f.Feed.Cursor(ctx, stream, consumer) })
}

// MoveCursor implements port.Feed.
func (f faultyFeed) MoveCursor(ctx context.Context, stream, consumer string, from, to int64) error {
	return duringWrite(ctx, f.w, func() error { return f.Feed.MoveCursor(ctx, stream, consumer, from, to) })
}

// faultyWebhooks is a store of webhooks with injected faults.
type faultyWebhooks struct {
	port.WebhookStore
	w *Streams
}

// SaveWebhook implements port.WebhookStore.
func (s faultyWebhooks) SaveWebhook(ctx context.Context, hook webhook.Webhook, p *webhook.Progress, notes ...port.Note) error {
	return duringWrite(ctx, s.w, func() error {
		err := s.WebhookStore.SaveWebhook(ctx, hook, p, notes...)
		s.w.Events.Written(err, notes...)
		if hook.Version == 0 {
			s.w.begun(hook.Ref(), p.Cursor)
		}
		return err
	})
}

// LoadWebhook implements port.WebhookStore.
func (s faultyWebhooks) LoadWebhook(ctx context.Context, ref webhook.Ref) (webhook.Webhook, error) {
	return during(ctx, s.w, false, func() (webhook.Webhook, error) { return s.WebhookStore.LoadWebhook(ctx, ref) })
}

// Progress implements port.WebhookStore.
func (s faultyWebhooks) Progress(ctx context.Context, ref webhook.Ref) (webhook.Progress, error) {
	return during(ctx, s.w, false, func() (webhook.Progress, error) { return s.WebhookStore.Progress(ctx, ref) })
}

// SaveDeliveries implements port.WebhookStore. It first waits for the time for which the
// receiver hung.
func (s faultyWebhooks) SaveDeliveries(ctx context.Context, p webhook.Progress, deliveries ...webhook.Delivery) error {
	return duringWrite(ctx, s.w, func() error {
		if hung := s.w.subscriberOf(p.Ref()).hung(); hung > 0 {
			s.w.Time.Sleep(hung)
		}
		return s.WebhookStore.SaveDeliveries(ctx, p, deliveries...)
	})
}

// PendingDeliveries implements port.WebhookStore.
func (s faultyWebhooks) PendingDeliveries(ctx context.Context, ref webhook.Ref, limit int) ([]webhook.Delivery, error) {
	return during(ctx, s.w, false, func() ([]webhook.Delivery, error) { return s.WebhookStore.PendingDeliveries(ctx, ref, limit) })
}

// noWebhooks is used for relays whose tenants have no webhooks.
type noWebhooks struct{}

// DispatchTenants implements relay.Webhooks.
func (noWebhooks) DispatchTenants(context.Context, []string) int { return 0 }

// Sweep implements relay.Webhooks.
func (noWebhooks) Sweep(context.Context) error { return nil }
