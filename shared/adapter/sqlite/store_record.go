package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// record is a write as it is stored. It is encoded before the writer runs it.
type record struct {
	*port.Write
	// Run is that of the write, with the version that it gets. It is not changed any more.
	Run    *run.Run
	doc    []byte
	events [][]byte
	// history is the part of its history that the row of the run gets; nil without an event.
	history []byte
	// change is the record of the change in the outbox; nil without an event.
	change []byte
	columns
}

// columns are the indexed values of a record; nil is NULL.
type columns struct {
	actBy, expiresAt, purgeAt, outputDue, attempt, machine, pool, place, job any
	// side are the columns of the rows in side_slots.
	side map[string]sideSlot
}

// sideSlot is a slot of a job or of a key.
type sideSlot struct{ pool, place any }

// The kinds of rows in side_slots.
const (
	sideJob = "job"
	sideKey = "key"
)

// recordOf encodes the write with the version that it gets, and counts it.
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
	for i, e := range w.Events {
		if rec.events[i], err = encode(e); err != nil {
			return record{}, fmt.Errorf("cannot encode event %d of run %s: %w", e.Seq, r.ID, err)
		}
	}
	if len(rec.events) > 0 {
		rec.change, rec.history = s.changeOf(rec), historyOf(rec)
	}
	s.decoded.Put(doc, r) // while its commit is under way, each reader reads the file
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
		c.job = r.JobID
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

// slotColumns are the columns of a slot that its pool counts so.
func slotColumns(s run.Slot, counted run.SlotState) (pool, place any) {
	switch counted {
	case run.SlotHeld:
		return s.Pool, nil
	case run.SlotQueued:
		return s.Pool, s.Order()
	}
	return nil, nil
}

// machineColumn is the column of a machine: its JSON.
func machineColumn(m run.Machine) string {
	text, _ := json.Marshal(m) //nolint:errchkjson // strings always have a JSON form
	return string(text)
}

// moment is the column of a time, NULL for the zero time.
func moment(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return nanos(t)
}

// nanos is the time in Unix nanoseconds, limited to those of 64 bits (1678 to
// 2262).
func nanos(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// encode is json.Marshal without HTML escapes.
func encode(v any) ([]byte, error) {
	var to bytes.Buffer
	encoder := json.NewEncoder(&to)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(to.Bytes(), []byte("\n")), nil
}

// decodeRun decodes a record that is not one of the last commits, and counts it.
func (s *Store) decodeRun(doc []byte) (run.Run, error) {
	if r, ok := s.decoded.Get(doc); ok {
		return r, nil
	}
	s.db.decoded.Add(1)
	return decodeRun(doc)
}

func decodeRun(doc []byte) (run.Run, error) {
	var r run.Run
	// json.Unmarshal would read the document twice more before it calls this method.
	if err := r.UnmarshalJSON(doc); err != nil {
		return run.Run{}, fmt.Errorf("cannot decode a run: %w", err)
	}
	fixOptions(&r)
	return r, nil
}

// fixOptions restores options of nil, for which JSON has no other word.
func fixOptions(r *run.Run) {
	if string(r.Work.Options) == "null" {
		r.Work.Options = nil
	}
}

func (s *Store) decodeRuns(docs [][]byte) ([]run.Run, error) {
	runs := make([]run.Run, len(docs))
	for i, doc := range docs {
		var err error
		if runs[i], err = s.decodeRun(doc); err != nil {
			return nil, err
		}
	}
	return runs, nil
}
