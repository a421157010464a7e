package delivery_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/local/proof/port/sqlitetest"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	sharedclock "github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// hooked has the use cases of webhooks on the SQLite store, a feed in memory, a receiver
// on loopback, and a clock that the test advances.
type hooked struct {
	*testing.T
	clock    *sharedclock.Virtual
	store    *notedWebhooks
	outbox   port.Outbox
	feed     *fake.Feed
	wakes    *fake.Wakes
	receiver *hookReceiver
	sender   *hook.Sender
	tasks    knownTasks
	subs     *delivery.Subscriptions
	webhooks *delivery.Webhooks
	delivery *delivery.Deliverer
	dispatch *delivery.Dispatch
	log      *bytes.Buffer
	tally    porttest.Tally
	appended int
}

// notedWebhooks is a store that keeps the events of changes.
type notedWebhooks struct {
	port.WebhookStore
	mu    sync.Mutex
	notes []events.Envelope
}

func (s *notedWebhooks) note(notes []port.Note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range notes {
		var e events.Envelope
		if json.Unmarshal(n.Document, &e) == nil {
			s.notes = append(s.notes, e)
		}
	}
}

func (s *notedWebhooks) SaveWebhook(ctx context.Context, w webhook.Webhook, p *webhook.Progress, notes ...port.Note) error {
	err := s.WebhookStore.SaveWebhook(ctx, w, p)
	if err == nil {
		s.note(notes)
	}
	return err
}

func (s *notedWebhooks) DeleteWebhook(ctx context.Context, w webhook.Webhook, notes ...port.Note) error {
	err := s.WebhookStore.DeleteWebhook(ctx, w)
	if err == nil {
		s.note(notes)
	}
	return err
}

// knownTasks is the set of tasks that exist.
type knownTasks map[string]bool

func (k knownTasks) Find(_ context.Context, _, id string) (run.Run, error) {
	if !k[id] {
		return run.Run{}, port.ErrNotFound
	}
	return run.Run{TaskID: id}, nil
}

// hookReceiver is a server that keeps the requests that it receives.
type hookReceiver struct {
	*httptest.Server
	mu      sync.Mutex
	answer  func(w http.ResponseWriter, r *http.Request, e events.Envelope)
	headers []http.Header
	bodies  []string
	got     []events.Envelope
}

func (r *hookReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	e, _ := events.Parse(body)
	r.mu.Lock()
	r.headers, r.bodies, r.got = append(r.headers, request.Header), append(r.bodies, string(body)), append(r.got, e)
	answer := r.answer
	r.mu.Unlock()
	if answer != nil {
		answer(w, request, e)
	}
}

// answers sets the status of the receiver's answers.
func (r *hookReceiver) answers(status int, headers ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = func(w http.ResponseWriter, _ *http.Request, _ events.Envelope) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "an answer")
	}
}

// tasks returns the tasks of the received events in their order, and deletes the events.
func (r *hookReceiver) tasks() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.got {
		all = append(all, e.Job.ID)
	}
	r.headers, r.bodies, r.got = nil, nil, nil
	return all
}

// epoch is the time at which tests begin.
var epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

var subscriber = port.Identity{Tenant: "acme", Workspace: "web", Subject: "token:abc123"}

func withWebhooks(t *testing.T) *hooked {
	t.Helper()
	h := &hooked{T: t, clock: sharedclock.NewVirtual(epoch), tasks: knownTasks{}, receiver: &hookReceiver{}, log: &bytes.Buffer{}}
	db, err := sqlitetest.Open(t.Context(), filepath.Join(sqlitetest.Folder(t), "sortie.db"))
	h.ok(err)
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqlite.NewStore(t.Context(), db, h.clock)
	h.ok(err)
	h.receiver.Server = httptest.NewTLSServer(h.receiver)
	h.receiver.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	t.Cleanup(h.receiver.Close)
	h.feed = fake.NewFeed(h.clock, 7*24*time.Hour, nil, func(err error) { t.Error(err) })
	h.wakes = fake.NewWakes(h.clock, nil)
	policy, err := guard.Policy{}.WithRules("127.0.0.1")
	h.ok(err)
	roots := x509.NewCertPool()
	roots.AddCert(h.receiver.Certificate())
	h.sender = hook.NewSender(hook.Config{Policy: policy.WithPlainLoopback(), Clock: h.clock, RootCAs: roots})
	h.outbox = store
	h.store = &notedWebhooks{WebhookStore: fake.NewWebhooks(store, nil, func(err error) { t.Error(err) })}
	h.connect(h.store, policy)
	return h
}

// connect creates the use cases on a store.
func (h *hooked) connect(store port.WebhookStore, policy guard.Policy) {
	document := func(w webhook.Webhook) ([]byte, error) { return json.Marshal(w) }
	log := slog.New(slog.NewTextHandler(h.log, nil))
	h.subs = delivery.NewSubscriptions(store, h.feed, h.wakes, document, h.clock, log, &seededRandom{})
	h.webhooks = delivery.NewWebhooks(h.subs, h.sender, policy)
	h.delivery = h.worker("worker")
	h.dispatch = delivery.NewDispatch(h.delivery, delivery.NoTurns{})
}

func (h *hooked) worker(owner string) *delivery.Deliverer {
	return delivery.NewDeliverer(h.subs, h.tasks, h.sender, func() float64 { return 0 }, owner, h.tally.Record)
}

// seededRandom is a Random with distinct results. It is safe for concurrent use.
type seededRandom struct {
	mu sync.Mutex
	n  int
}

func (r *seededRandom) Float64() float64 { return 0 }

func (r *seededRandom) Hex(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	return fmt.Sprintf("%0*x", 2*n, r.n)
}

func (h *hooked) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// subscribe creates a webhook at the receiver.
func (h *hooked) subscribe(change ...func(*delivery.WebhookSettings)) webhook.Webhook {
	h.Helper()
	in := delivery.WebhookSettings{URL: h.receiver.URL + "/events"}
	for _, c := range change {
		c(&in)
	}
	v, secret, existing, err := h.webhooks.Create(h.Context(), subscriber, in, "", "")
	if err != nil || existing || secret == "" {
		h.Fatalf("got %+v, %t, %v, want a new webhook with its secret", v, existing, err)
	}
	return v.Webhook
}

// publish appends events of tasks to the stream, and dispatches them.
func (h *hooked) publish(tasks ...string) {
	h.Helper()
	h.append(tasks...)
	h.ok(h.dispatch.Dispatch(h.Context(), subscriber.Tenant))
}

func (h *hooked) append(tasks ...string) {
	h.Helper()
	head, err := h.feed.Head(h.Context(), port.EventStream(subscriber.Tenant))
	h.ok(err)
	b := port.Batch{After: head.Newest, DueAt: h.clock.Now()}
	for _, task := range tasks {
		h.appended++
		id := events.ID(run.EventID(h.clock.Now(), fmt.Sprint(h.appended)))
		e := events.Envelope{
			SchemaVersion: events.SchemaVersion, EventID: id, EventType: eventtype.Failed, OccurredAt: h.clock.Now(), TenantID: subscriber.Tenant,
			IdempotencyKey: events.RunKey(eventtype.Failed, task, 1, h.appended), Actor: events.Actor{Subject: "service:steps"},
			Job:      &events.Job{ID: task, RunID: task, Type: events.JobExport, Status: events.StatusFailed, Attempt: 1, Seq: h.appended},
			Notifier: &events.Notifier{Channel: "orch.jobs", Delivery: events.DeliveryDSSE},
		}
		payload, err := json.Marshal(e)
		h.ok(err)
		data := fmt.Sprintf(`{"payloadType":%q,"payload":%q}`, events.PayloadType, base64.StdEncoding.EncodeToString(payload))
		b.Records = append(b.Records, port.FeedRecord{ID: id, At: h.clock.Now(), Data: []byte(data)})
	}
	_, err = h.feed.Append(h.Context(), port.EventStream(subscriber.Tenant), b)
	h.ok(err)
}

// work makes the deliveries that are due now.
func (h *hooked) work() {
	h.Helper()
	for due := h.wakes.Due(); len(due) > 0; due = h.wakes.Due() {
		for _, w := range due {
			if err := h.delivery.Deliver(h.Context(), webhook.Ref{Tenant: w.Tenant, ID: w.Webhook}); err != nil {
				h.Log(err)
			}
		}
	}
}

// pass lets time pass: wakes are delivered at their time, and a sweep runs each minute.
func (h *hooked) pass(d time.Duration) {
	h.Helper()
	end := h.clock.Now().Add(d)
	for h.work(); h.clock.Now().Before(end); h.work() {
		step := min(time.Minute, end.Sub(h.clock.Now()))
		if next := h.wakes.Next(); !next.IsZero() {
			step = min(step, max(next.Sub(h.clock.Now()), time.Millisecond))
		}
		h.clock.Advance(step)
		if step == time.Minute || d < time.Minute {
			if err := errors.Join(h.dispatch.WakeDue(h.Context(), 0), h.dispatch.ReplayWork().Do(h.Context(), subscriber.Tenant)); err != nil {
				h.Log(err)
			}
		}
	}
}

// delivered returns the log of a webhook, the oldest position first.
func (h *hooked) delivered(w webhook.Webhook) []webhook.Delivery {
	h.Helper()
	all, err := h.webhooks.Deliveries(h.Context(), subscriber, w.ID, "", 1<<62, 1000)
	h.ok(err)
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	return all
}

func (h *hooked) view(w webhook.Webhook) delivery.WebhookView {
	h.Helper()
	v, err := h.webhooks.Webhook(h.Context(), subscriber, w.ID)
	h.ok(err)
	return v
}
