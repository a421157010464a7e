package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/shared/base/encoded"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// record is the stored form of a write. It is encoded before the writer runs it.
type record struct {
	*port.Write
	// Run is the run of the write with its new version. It must not be changed.
	Run    *run.Run
	doc    []byte
	events [][]byte
	// history is the part that the write adds to the run's history, or nil without an event.
	history []byte
	// change is the outbox record of the change, or nil without an event.
	change []byte
	columns
}

// columns are the indexed values of a record; nil is NULL.
type columns struct {
	actBy, expiresAt, purgeAt, outputDue, attempt, machine, pool, place, job any
	// side has the columns of the rows in side_slots, by kind.
	side map[string]sideSlot
}

// sideSlot is a slot of a job or of a key.
type sideSlot struct{ pool, place any }

// The kinds of rows in side_slots.
const (
	sideJob = "job"
	sideKey = "key"
)

// recordOf encodes the write with its new version, and counts it.
func (s *Store) recordOf(w *port.Write, version int64) (record, error) {
	r := new(run.Run)
	*r = w.Run
	r.Version = version
	s.db.encoded.Add(1)
	doc, err := encode(r)
	if err != nil {
		return record{}, fmt.Errorf("cannot encode run %s: %w", r.ID, err)
	}
	rec := record{Write: w, Run: r, doc: doc, columns: columnsOf(r), events: make([][]byte, len(w.Events))}
	for i := range w.Events {
		if rec.events[i], err = encode(&w.Events[i]); err != nil {
			return record{}, fmt.Errorf("cannot encode event %d of run %s: %w", w.Events[i].Seq, r.ID, err)
		}
	}
	if len(rec.events) > 0 {
		rec.change, rec.history = s.changeOf(rec), historyOf(rec)
	}
	s.decoded.Put(doc, r) // readers read the file while the commit is in progress
	return rec, nil
}

func columnsOf(r *run.Run) columns {
	c := columns{actBy: moment(r.Execution.ActBy), expiresAt: moment(r.ExpiresAt)}
	c.purgeAt = moment(r.PurgeAt())
	if r.BytesLeft() {
		c.outputDue = moment(r.BytesDue())
	}
	if r.Placed() {
		c.attempt, c.machine = r.Attempt.Number, machineColumn(r.Attempt.Machine)
	}
	c.pool, c.place = slotColumns(r.Slot, r.PoolState())
	if r.JobID != "" {
		c.job = run.Listed(r.JobID, r.HasParent())
	}
	if r.JobSlot.Pool != "" || r.KeySlot.Pool != "" {
		c.side = map[string]sideSlot{}
	}
	if r.JobSlot.Pool != "" {
		pool, place := slotColumns(r.JobSlot, r.JobPoolState())
		c.side[sideJob] = sideSlot{pool, place}
	}
	if r.KeySlot.Pool != "" {
		pool, place := slotColumns(r.KeySlot, r.KeyPoolState())
		c.side[sideKey] = sideSlot{pool, place}
	}
	return c
}

// slotColumns returns the columns of a slot in the state that its pool counts.
func slotColumns(s platform.Slot, counted platform.SlotState) (pool, place any) {
	switch counted {
	case platform.SlotHeld:
		return s.Pool, nil
	case platform.SlotQueued:
		return s.Pool, s.Order()
	}
	return nil, nil
}

// machineColumn returns the column of a machine: its JSON.
func machineColumn(m platform.Machine) string {
	text, _ := json.Marshal(m) //nolint:errchkjson // strings always have a JSON form
	return string(text)
}

// moment returns the column of a time, NULL for the zero time.
func moment(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return nanos(t)
}

// nanos returns the time in Unix nanoseconds. Times outside the range of 64 bits (1678 to 2262)
// are limited to it.
func nanos(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// encode is like json.Marshal, without HTML escapes.
func encode[T any](v *T) ([]byte, error) {
	scratch := scratches.Get().(*[]byte) //nolint:forcetypeassert // see scratches
	defer scratches.Put(scratch)
	text, err := encoded.Append((*scratch)[:0], v)
	if err != nil {
		return nil, err
	}
	if cap(text) <= scratchMost {
		*scratch = text
	}
	return bytes.Clone(text), nil
}

// scratches are buffers of encode, of at most scratchMost bytes each.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

const scratchMost = 64 << 10

// decodeRun returns the cached run of a document, or decodes and counts it.
func (s *Store) decodeRun(doc []byte) (run.Run, error) {
	if r, ok := s.decoded.Get(doc); ok {
		return r, nil
	}
	s.db.decoded.Add(1)
	return decodeRun(doc)
}

func decodeRun(doc []byte) (run.Run, error) {
	var r run.Run
	if err := encoded.Decode(doc, &r); err != nil {
		return run.Run{}, fmt.Errorf("cannot decode a run: %w", err)
	}
	fixOptions(&r)
	return r, nil
}

// fixOptions restores nil options, which JSON encodes as null.
func fixOptions(r *run.Run) {
	if string(r.Work.Options) == "null" {
		r.Work.Options = nil
	}
}

// decodeRuns decodes the documents of a page, decodedTogether in each goroutine.
func (s *Store) decodeRuns(docs [][]byte) ([]run.Run, error) {
	runs := make([]run.Run, len(docs))
	var group errgroup.Group
	for first := 0; first < len(docs); first += decodedTogether {
		last := min(first+decodedTogether, len(docs))
		group.Go(func() (err error) {
			for i := first; i < last && err == nil; i++ {
				runs[i], err = s.decodeRun(docs[i])
			}
			return err
		})
	}
	return runs, group.Wait()
}

const decodedTogether = 100
