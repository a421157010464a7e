package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/app/sensors"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// sensed has the items of the jobs of a world with sensors.
type sensed struct {
	jobs   map[string]*sensorJob
	counts ItemCounts
}

// ItemCounts counts the items with a run, the items that were delivered again, and the polls whose
// process was killed.
type ItemCounts struct{ Items, Repeated, Killed int }

// sensorJob is a job with a sensor: exactly one of takesEvents, bucket and queue.
type sensorJob struct {
	takesEvents bool
	bucket      string
	queue       sensor.Queue
	// existing: objects that are older than the job start runs. limited: the queue of its key has a
	// limit.
	existing, limited bool
	// items are those by identity, and order as they appeared.
	items map[string]*item
	order []*item
	// freeSince is the time since which neither a pause nor a full queue delays items.
	freeSince time.Time
}

const (
	prefix    = "in/"
	takenType = "order.*"
)

// drawSensors draws up to three jobs, each with a sensor.
func (w *world) drawSensors() {
	w.DrawItems()
	w.Requests, w.horizon = 0, w.Between(2*time.Minute, min(2*w.Longest, 30*time.Minute))
	w.Config.Policy.QueueTimeout = max(w.Config.Policy.QueueTimeout, time.Hour)
	w.sensed = &sensed{jobs: map[string]*sensorJob{}}
	for i := range 1 + w.Random.IntN(maxJobs) {
		id := fmt.Sprintf("job-%d", i+1)
		s := &sensorJob{items: map[string]*item{}, limited: w.Chance(0.3), existing: w.Chance(0.3)}
		switch w.Random.IntN(3) {
		case 0:
			s.takesEvents = true
		case 1:
			s.bucket = "bucket-" + id
		default:
			s.queue.URL = "https://sqs.eu-central-1.amazonaws.com/1/" + id
		}
		w.jobIDs, w.sensed.jobs[id] = append(w.jobIDs, id), s
	}
}

// drawSensor adds the sensor to the definition of a job.
func (w *world) drawSensor(id string, d map[string]any) {
	s := w.sensed.jobs[id]
	polled := map[string]any{"secretRef": harness.SensorSecret, "every": w.Between(10*time.Second, time.Minute).String()}
	switch {
	case s.takesEvents:
		d["sensor"] = map[string]any{"cloudEvent": map[string]any{"types": []string{takenType}}}
	case s.bucket != "":
		polled["name"], polled["prefix"], polled["existing"] = s.bucket, prefix, s.existing
		d["sensor"] = map[string]any{"bucket": polled}
	default:
		polled["url"] = s.queue.URL
		d["sensor"] = map[string]any{"queue": polled}
	}
	if s.limited {
		d["concurrencyKey"] = "items-of-" + id
		d["concurrency"] = map[string]any{"limit": 1 + w.Random.IntN(2), "queueLimit": 1 + w.Random.IntN(3), "overflow": spec.OverflowReject}
	}
	d["retryConfig"] = map[string]any{"maxRetries": w.Random.IntN(2), "initialDelay": "5s"}
}

// ownSensor simulates the owner of a job with a sensor, who changes and pauses it, and those whose
// items appear meanwhile.
func (w *world) ownSensor(id string) {
	s := w.sensed.jobs[id]
	if s.bucket != "" {
		for range w.Random.IntN(4) {
			w.putObject(s, prefix+w.Hex(2), "old")
		}
		w.Time.Sleep(w.storePrecision())
		for _, old := range s.order {
			if old.may, old.old = s.existing, !s.existing; old.old {
				old.due = time.Time{}
			}
		}
	}
	w.putJob(id)
	w.Time.Sleep(w.storePrecision())
	for range 3 + w.Random.IntN(12) {
		w.Time.Sleep(w.UpTo(w.horizon / 8))
		switch w.Random.IntN(10) {
		case 0:
			w.putJob(id)
		case 1:
			w.Persist("pause "+id, func(ctx context.Context) error { return w.pauseJob(ctx, id, true) })
			w.Time.Sleep(w.UpTo(5 * time.Minute))
			w.Persist("resume "+id, func(ctx context.Context) error { return w.pauseJob(ctx, id, false) })
		case 2, 3:
			w.repeatItem(id)
		default:
			w.newItem(id)
		}
	}
	for again := range 2 {
		for !w.itemsTaken(s) {
			w.Time.Sleep(w.UpTo(30 * time.Second))
		}
		if again == 0 {
			w.repeatAll(id)
			w.Time.Sleep(3 * (w.Items.Every + time.Minute))
		}
	}
	w.ownersDone++
}

// storePrecision is the time between two changes whose order the clocks of hosts and of the store
// show.
func (w *world) storePrecision() time.Duration { return 10*time.Second + 2*w.Plan.Skew }

// newItem lets an item appear. A sender of events may send earlier ones with it, and a second sender
// the same.
func (w *world) newItem(id string) {
	s := w.sensed.jobs[id]
	switch {
	case s.bucket != "":
		key := prefix + w.Hex(2)
		if n := len(s.order); n > 0 && w.Chance(0.3) {
			key = s.order[w.Random.IntN(n)].key // overwritten with another content
		}
		w.putObject(s, key, w.Hex(4))
	case !s.takesEvents:
		of := s.add(s.queue.URL + " m-" + w.Hex(4))
		of.may, of.due = true, w.Time.Now
		w.Items.Send(s.queue.URL, of.name[len(s.queue.URL)+1:], `{"total": 12}`)
	default:
		w.newEvent(id)
	}
}

func (w *world) newEvent(id string) {
	s := w.sensed.jobs[id]
	kind := "order.paid"
	if w.Chance(0.2) {
		kind = "invoice"
	}
	source, number := []string{"/shop", "/stall"}[w.Random.IntN(2)], fmt.Sprintf("e-%d", w.Random.IntN(20))
	if s.items[source+" "+number] != nil {
		w.repeatItem(id)
		return
	}
	of := s.add(source + " " + number)
	of.may = kind != "invoice"
	of.event, w.Broken = sensor.New(map[string]string{"specversion": sensor.SpecVersion, "id": number, "source": source, "type": kind}, nil)
	for range 1 + w.Random.IntN(2) {
		sent := []*item{of}
		for range w.Random.IntN(3) {
			sent = append(sent, s.order[w.Random.IntN(len(s.order))])
		}
		w.Random.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
		w.Time.After(w.UpTo(10*time.Second), func() { w.sendEvents(id, sent) })
	}
}

// putObject writes an object, and one outside of the prefix. The earlier content of its key need not
// get a run any more.
func (w *world) putObject(s *sensorJob, key, content string) {
	for _, before := range s.order {
		if before.key == key && before.run == nil {
			before.due = time.Time{}
		}
	}
	w.Items.Put(s.bucket, key, content)
	of := s.add(s.bucket + " " + key + " " + content)
	of.key, of.content, of.may = key, content, true
	if of.run == nil && !of.old { // the sensor remembers old ones, which may be written again
		of.due = w.Time.Now
	}
	w.Items.Put(s.bucket, "out/"+key, content)
}

// repeatItem delivers an item again, or removes an object.
func (w *world) repeatItem(id string) {
	s := w.sensed.jobs[id]
	if len(s.order) == 0 {
		return
	}
	of := s.order[w.Random.IntN(len(s.order))]
	switch {
	case s.takesEvents:
		w.sendEvents(id, []*item{of, of})
	case s.bucket == "": // the queue repeats its messages itself
		return
	case w.Chance(0.3):
		for _, other := range s.order {
			if other.key == of.key {
				other.due = time.Time{}
			}
		}
		w.Items.Remove(s.bucket, of.key)
		return
	default:
		w.putObject(s, of.key, of.content)
	}
	w.sensed.counts.Repeated++
}

// repeatAll delivers each event and each object that has a run again.
func (w *world) repeatAll(id string) {
	s := w.sensed.jobs[id]
	if s.takesEvents && len(s.order) > 0 {
		w.sendEvents(id, s.order)
		w.sensed.counts.Repeated += len(s.order)
	}
	for _, of := range s.order {
		if s.bucket != "" && of.run != nil {
			w.putObject(s, of.key, of.content)
			w.sensed.counts.Repeated++
		}
	}
}

// sendEvents sends events until they are acknowledged.
func (w *world) sendEvents(id string, sent []*item) {
	var events []sensor.Event
	for _, of := range sent {
		events = append(events, of.event)
	}
	var receipts []sensors.Receipt
	w.Persist(fmt.Sprintf("%d events to %s", len(sent), id), func(ctx context.Context) (err error) {
		receipts, err = sensors.NewEvents(w.System.Jobs).Receive(ctx, id, events, sensors.Request{Identity: harness.Client, CorrelationID: "events"})
		return err
	})
	for i, r := range receipts {
		of := sent[i]
		if r.Ignored == of.may || of.runID != "" && of.runID != r.Run.ID {
			w.Fail("event %s of %s is acknowledged: ignored %t, run %q, after %q", of.name, id, r.Ignored, r.Run.ID, of.runID)
		}
		if !r.Ignored && of.runID == "" {
			of.runID = r.Run.ID
			w.accepted("event "+of.name, r.Run)
		}
	}
}

// objectData is the data of the event of an object.
type objectData struct {
	Data struct{ Bucket, Key, ETag string } `json:"data"`
}

// identity identifies the item of an event.
func identity(e *sensor.Event) string {
	if e.Type != sensor.TypeObject {
		return e.Source + " " + e.ID
	}
	var of objectData
	if err := json.Unmarshal(e.Document, &of); err != nil {
		return "malformed object"
	}
	return of.Data.Bucket + " " + of.Data.Key + " " + of.Data.ETag
}
