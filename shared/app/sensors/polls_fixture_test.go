package sensors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/sensors"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/port"
)

var began = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// errKilled is the error of each call after a kill.
var errKilled = errors.New("the process was killed")

// world is a job with a sensor, its bucket, its queue and its runs. Every call of a port is counted:
// a kill at a call lets it take effect, or not, and fails all calls until the next poll.
type world struct {
	t     *testing.T
	clock *clock.Virtual
	polls *sensors.Polls

	mu        sync.Mutex
	job       *job.Job
	resources map[port.ResourceRef]port.Resource
	// objects are those of the bucket, by key. ahead is how much the clock of the store is ahead.
	objects map[string]sensor.Object
	ahead   time.Duration
	// keys are the sorted keys when a poll began to list.
	keys []string
	// down is the failure of the bucket and the queue.
	down error
	// messages are those of the queue, and hidden the times until which they are hidden.
	messages []sensor.Message
	hidden   map[string]time.Time
	// made counts the creations of each run, and asked the calls about it. room is the number of runs
	// that the queue of the pool takes.
	made, asked map[string]int
	events      map[string]sensor.Event
	room        int
	secret      string

	calls, killAt int
	lost, dead    bool
}

func newWorld(t *testing.T, settings sensor.Settings) *world {
	t.Helper()
	w := &world{
		t: t, clock: clock.NewVirtual(began), resources: map[port.ResourceRef]port.Resource{}, objects: map[string]sensor.Object{},
		hidden: map[string]time.Time{}, made: map[string]int{}, asked: map[string]int{}, events: map[string]sensor.Event{},
		room: 1 << 30, secret: "key:secret",
	}
	w.polls = sensors.NewPolls(w, w, w, w, w, w.clock, slog.New(slog.DiscardHandler), 16)
	w.define(settings)
	return w
}

// define stores the job, and the record of its sensor before it.
func (w *world) define(settings sensor.Settings) {
	d := job.Definition{ID: "ingest", Sensor: &settings}
	j := job.Create("acme", d, "me", w.clock.Now())
	if w.job != nil {
		j = w.job.Apply(d, "me", w.clock.Now())
	}
	w.job = &j
	place, _, _ := settings.Polled()
	ref := port.ResourceRef{Tenant: "acme", Kind: sensor.Kind, ID: "ingest"}
	r, ok := w.resources[ref]
	if !ok {
		r = port.Resource{ResourceRef: ref, CreatedAt: w.clock.Now(), Document: json.RawMessage(`{}`)}
	}
	var state sensor.State
	if err := json.Unmarshal(r.Document, &state); err != nil {
		w.t.Fatal(err)
	}
	r.DueAt, r.Version = w.clock.Now(), r.Version+1
	r.Document, _ = json.Marshal(state.Stored(place, w.clock.Now()))
	w.resources[ref] = r
}

// call counts a call, and carries it out unless the process is killed before it.
func (w *world) call(do func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	if w.dead {
		return errKilled
	}
	if w.calls == w.killAt {
		w.dead = true
		if !w.lost {
			_ = do()
		}
		return errKilled
	}
	return do()
}

// put writes an object now, by the clock of the store.
func (w *world) put(key, etag string) {
	w.objects[key] = sensor.Object{Key: key, ETag: etag, ModifiedAt: w.clock.Now().Add(w.ahead)}
}

// poll polls after a time, like a new process.
func (w *world) poll(after time.Duration) {
	w.t.Helper()
	w.clock.Advance(after)
	w.dead = false
	if err := w.polls.PollDue(w.t.Context()); err != nil && !errors.Is(err, errKilled) {
		w.t.Fatal(err)
	}
}

func (w *world) state() (s sensor.State) {
	if err := json.Unmarshal(w.resources[port.ResourceRef{Tenant: "acme", Kind: sensor.Kind, ID: "ingest"}].Document, &s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// want checks that exactly these subjects have one run each; for messages these ids.
func (w *world) want(subjects ...string) {
	w.t.Helper()
	var got []string
	for id, n := range w.made {
		e := w.events[id]
		got = append(got, e.Subject)
		if e.Type == sensor.TypeMessage {
			got[len(got)-1] = e.ID
		}
		if n != 1 {
			w.t.Errorf("got %d creations of the run of %s, want 1", n, id)
		}
	}
	slices.Sort(got)
	slices.Sort(subjects)
	if !slices.Equal(got, subjects) {
		w.t.Errorf("got runs of %.300q, want %.300q", got, subjects)
	}
}

// LoadJob implements sensors.Store.
func (w *world) LoadJob(context.Context, string, string) (j job.Job, err error) {
	err = w.call(func() error {
		if w.job == nil {
			return port.ErrNotFound
		}
		j = *w.job
		return nil
	})
	return j, err
}

// WriteResources implements port.ResourceStore.
func (w *world) WriteResources(_ context.Context, save, remove []port.Resource, _ ...port.Note) error {
	return w.call(func() error {
		for _, r := range slices.Concat(save, remove) {
			if w.resources[r.ResourceRef].Version != r.Version {
				return port.ErrConflict
			}
		}
		for _, r := range save {
			r.Version++
			w.resources[r.ResourceRef] = r
		}
		for _, r := range remove {
			delete(w.resources, r.ResourceRef)
		}
		return nil
	})
}

// LoadResource implements port.ResourceStore.
func (w *world) LoadResource(_ context.Context, ref port.ResourceRef) (r port.Resource, err error) {
	err = w.call(func() error {
		var ok bool
		if r, ok = w.resources[ref]; !ok {
			return port.ErrNotFound
		}
		return nil
	})
	return r, err
}

// Resources implements port.ResourceStore.
func (w *world) Resources(context.Context, string, string, string, port.Page) ([]port.Resource, string, error) {
	return nil, "", errors.New("unexpected list")
}

// ResourcesDue implements port.ResourceStore.
func (w *world) ResourcesDue(_ context.Context, kind string, now time.Time, _ string, _ int) (due []port.ResourceRef, next string, err error) {
	err = w.call(func() error {
		for ref, r := range w.resources {
			if ref.Kind == kind && !r.DueAt.IsZero() && !r.DueAt.After(now) {
				due = append(due, ref)
			}
		}
		return nil
	})
	return due, "", err
}

// RunItem implements sensors.ItemRuns.
func (w *world) RunItem(_ context.Context, j job.Job, e sensor.Event) (existing bool, err error) {
	id := j.ID + ":" + e.Key()
	err = w.call(func() error {
		w.asked[id]++
		if existing = w.made[id] > 0; existing {
			return nil
		}
		if len(w.made) >= w.room {
			return fault.New(fault.AdmissionReject, "the queue is full")
		}
		if strings.Contains(e.Subject, "too-long") {
			return fault.New(fault.InvalidRequest, "too long for a template")
		}
		w.made[id]++
		w.events[id] = e
		return nil
	})
	return existing, err
}

// Secret implements port.Secrets.
func (w *world) Secret(context.Context, string, string) (string, error) {
	if w.secret == "" {
		return "", port.ErrNotFound
	}
	return w.secret, nil
}

// Objects implements port.Buckets.
func (w *world) Objects(_ context.Context, of sensor.Bucket, _ sensor.Credentials, after string) (page port.ObjectPage, err error) {
	err = w.call(func() error {
		if w.down != nil {
			return w.down
		}
		if after == "" || w.keys == nil {
			w.keys = slices.Sorted(maps.Keys(w.objects))
		}
		at, same := slices.BinarySearch(w.keys, after)
		if same {
			at++
		}
		var keys []string
		for _, key := range w.keys[at:] {
			if strings.HasPrefix(key, of.Prefix) && len(keys) <= port.MaxObjects && w.objects[key].Key != "" {
				keys = append(keys, key)
			}
		}
		page.More = len(keys) > port.MaxObjects
		for _, key := range keys[:min(len(keys), port.MaxObjects)] {
			page.Objects = append(page.Objects, w.objects[key])
		}
		page.At = w.clock.Now().Add(w.ahead).Truncate(time.Second)
		return nil
	})
	return page, err
}

// Messages implements port.Queues.
func (w *world) Messages(context.Context, sensor.Queue, sensor.Credentials) (found []sensor.Message, err error) {
	err = w.call(func() error {
		if w.down != nil {
			return w.down
		}
		for _, m := range w.messages {
			if len(found) < port.MaxMessages && !w.hidden[m.ID].After(w.clock.Now()) {
				w.hidden[m.ID] = w.clock.Now().Add(port.VisibleAfter)
				found = append(found, m)
			}
		}
		return nil
	})
	return found, err
}

// DeleteMessages implements port.Queues. A message has its run before it is deleted.
func (w *world) DeleteMessages(_ context.Context, of sensor.Queue, _ sensor.Credentials, messages []sensor.Message) error {
	return w.call(func() error {
		for _, m := range messages {
			e, err := m.Event(of)
			if err != nil || w.made["ingest:"+e.Key()] != 1 {
				return fmt.Errorf("message %s is deleted before its run is stored: %w", m.ID, err)
			}
			w.messages = slices.DeleteFunc(w.messages, func(kept sensor.Message) bool { return kept.ID == m.ID })
		}
		return nil
	})
}
