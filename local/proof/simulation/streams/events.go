package streams

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// streamName is the event stream of the only tenant.
var streamName = port.EventStream(harness.Client.Tenant)

// Streams are the events of the world, their relays and the clients with webhooks.
type Streams struct {
	*harness.Base
	// Events is the observed event stream.
	Events      *streamModel
	Subscribers []*subscriber
}

// New returns an empty stream without webhooks.
func New(w *harness.Base) *Streams {
	s := &Streams{Base: w}
	s.Events = newStreamModel(s)
	return s
}

// streamModel is the observed stream of the tenant's events. It is read after each step that
// may have changed it. It is also the bus and the queue of the webhooks.
type streamModel struct {
	w    *Streams
	keys *fake.EventKeys
	relays
	// touched means that the stream may have changed.
	touched bool
	epoch   string
	Newest  int64
	// all are the events by position, from 1. positions maps ULIDs to positions, and tasks maps
	// tasks to positions.
	all       []events.Envelope
	positions map[string]int64
	tasks     map[string][]int64
	// facts maps idempotency keys to events. seqs has the number of each run's last event.
	facts map[string]string
	seqs  map[string]int
	// notes maps the ids of notes to true if their change was committed, and to false if it may
	// have been.
	notes map[string]bool
	// published counts the publications on the bus by position.
	published map[int64]int
	// read counts the events received by readers, queued the relays that queued for the stream.
	read, Queued int

	// mu guards found, which receivers add to.
	mu    sync.Mutex
	found string
}

func newStreamModel(w *Streams) *streamModel {
	return &streamModel{
		w: w, keys: fake.NewEventKeys(nil), positions: map[string]int64{}, tasks: map[string][]int64{}, facts: map[string]string{},
		seqs: map[string]int{}, notes: map[string]bool{}, published: map[int64]int{},
	}
}

// problem records the finding of a receiver. It is safe for concurrent use.
func (m *streamModel) problem(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.found == "" {
		m.found = fmt.Sprintf(format, args...)
	}
}

// Written records a write of the store and schedules the relay.
func (m *streamModel) Written(err error, notes ...port.Note) {
	for _, n := range notes {
		m.notes[n.ID] = m.notes[n.ID] || err == nil
	}
	if m.w.Process != nil && !m.w.Process.Crashed {
		m.relayAfter(m.w.UpTo(2 * time.Second))
	}
}

// Refresh reads the new events. It checks that positions have no gaps, that each fact has one
// event, and that the events of a run are in order.
func (m *streamModel) Refresh() {
	if m.mu.Lock(); m.found != "" {
		m.w.Fail("%s", m.found)
	}
	m.mu.Unlock()
	if !m.touched {
		return
	}
	m.touched = false
	head, records := m.tail()
	if m.epoch != "" && head.Epoch != m.epoch {
		m.w.Fail("the stream has epoch %s, want %s", head.Epoch, m.epoch)
	}
	m.epoch = head.Epoch
	for _, r := range records {
		m.add(r)
	}
	if head.Newest != m.Newest {
		m.w.Fail("the stream ends at %d, and its newest event is at %d", head.Newest, m.Newest)
	}
}

// tail returns the head of the stream and the records after the last known one.
func (m *streamModel) tail() (head port.Head, records []port.FeedRecord) {
	feed, err := m.w.Home.Feed(context.Background())
	if err != nil {
		m.w.Broken = err
		return head, nil
	}
	m.w.Observe(func() {
		if head, err = feed.Head(context.Background(), streamName); err != nil {
			return
		}
		for at := m.Newest; at < head.Newest; {
			var page []port.FeedRecord
			if page, err = feed.Read(context.Background(), streamName, at, 1000); err != nil || len(page) == 0 {
				return
			}
			records, at = append(records, page...), page[len(page)-1].Position
		}
	})
	if err != nil {
		m.w.Fail("cannot read the stream: %v", err)
	}
	return head, records
}

func (m *streamModel) add(r port.FeedRecord) {
	e, _, err := events.Unverified(r.Data)
	if err != nil || e.EventID != events.ID(r.ID) || e.Job == nil && e.Policy == nil && e.Schedule == nil {
		m.w.Fail("record %d of the stream is not event %s: %v", r.Position, r.ID, err)
	}
	if r.Position != m.Newest+1 {
		m.w.Fail("the stream has position %d behind %d", r.Position, m.Newest)
	}
	if before, has := m.positions[r.ID]; has {
		m.w.Fail("event %s is at %d and at %d", r.ID, before, r.Position)
	}
	if other, has := m.facts[e.IdempotencyKey]; has {
		m.w.Fail("events %s and %s are about %s", other, r.ID, e.IdempotencyKey)
	}
	if e.Job != nil && e.Job.Seq > 0 {
		if last := m.seqs[e.Job.RunID]; e.Job.Seq != last+1 {
			m.w.Fail("event %d of run %s is behind event %d", e.Job.Seq, e.Job.RunID, last)
		}
		m.seqs[e.Job.RunID] = e.Job.Seq
	}
	if e.Job != nil {
		m.tasks[e.Job.ID] = append(m.tasks[e.Job.ID], r.Position)
	}
	m.Newest, m.all = r.Position, append(m.all, e)
	m.positions[r.ID], m.facts[e.IdempotencyKey] = r.Position, r.ID
}

// Publish implements port.Publisher.
func (m *streamModel) Publish(_ context.Context, published []port.PublishedEvent) (failed []int, err error) {
	w := m.w
	w.MaybeCrash()
	for i, e := range published {
		if w.Injects("lost call", w.Plan.LostCalls) {
			failed = append(failed, i)
			continue
		}
		m.published[e.Position]++
	}
	w.MaybeCrash()
	if len(failed) > 0 {
		return failed, fault.New(fault.Unavailable, "the bus is slow")
	}
	return nil, nil
}

// follow reads the whole stream. Its connection breaks, and it continues after the last event
// received.
func (w *Streams) follow() {
	m, at, got := w.Events, "0", int64(0)
	for {
		w.Time.Sleep(w.UpTo(5 * time.Minute))
		page, err := stream.Page{}, error(nil)
		ok := w.onHost(func(ctx context.Context, h *host) {
			page, err = h.streams.Page(ctx, harness.Client, stream.PageQuery{After: at, Limit: 1 + w.Random.IntN(20)})
		})
		if !ok || err != nil || w.Injects("lost call", w.Plan.LostCalls) {
			continue
		}
		next := page.Next.String()
		for _, e := range page.Events {
			if w.Injects("lost call", w.Plan.LostCalls) {
				next = at // the connection breaks
				break
			}
			if e.Position != got+1 {
				w.Fail("a reader got the event at %d behind that at %d", e.Position, got)
			}
			got, at = e.Position, stream.Cursor{Epoch: m.epoch, Position: e.Position}.String()
			m.read++
		}
		at = next
	}
}

// file returns the stream in export format, with its checkpoints.
func (m *streamModel) file(ctx context.Context) ([]byte, error) {
	var file []byte
	feed, err := m.w.Home.Feed(ctx)
	if err != nil {
		return nil, err
	}
	marks, err := feed.Marks(ctx, streamName, 0, 100_000)
	if err != nil {
		return nil, err
	}
	for at := int64(0); at < m.Newest; {
		records, err := feed.Read(ctx, streamName, at, 1000)
		if err != nil || len(records) == 0 {
			return nil, err
		}
		for _, r := range records {
			signed, err := events.Signed(ctx, r.Data, m.keys.Signing)
			if err != nil {
				return nil, err
			}
			file = append(append(file, signed...), '\n')
			at = r.Position
			for _, mark := range marks {
				if mark.Position == at {
					line, err := json.Marshal(events.CheckpointLine{Checkpoint: string(mark.Data)})
					if err != nil {
						return nil, err
					}
					file = append(append(file, line...), '\n')
				}
			}
		}
	}
	return file, nil
}

// verifiers returns the keys that verify the stream.
func (m *streamModel) verifiers(ctx context.Context) (events.Keys, error) {
	all, err := m.keys.Published(ctx)
	if err != nil {
		return nil, err
	}
	document, err := json.Marshal(map[string]any{"keys": all})
	if err != nil {
		return nil, err
	}
	return events.ParseKeys(document)
}
