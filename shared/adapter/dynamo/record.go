package dynamo

import (
	stdbytes "bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/format"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Attributes of a run's item other than those of the indexes.
const (
	attrVersion = "v"
	attrDoc     = "doc"     // the record, packed or plain
	attrEvents  = "ev"      // its newest events, each packed or plain, in order
	attrBytes   = "eb"      // their size
	attrFresh   = "fresh"   // how many came with the last commit; 1 for a note
	attrNonce   = "nonce"   // of the last commit
	attrSlot    = "slot"    // the number of the slot of its pool that it holds
	attrJobSlot = "jslot"   // the number of the slot of its job
	attrKeySlot = "kslot"   // the number of the slot of its key
	attrSpilled = "spilled" // older events are in items of their own
	attrRun     = "run"     // the run of a slot, key or task
	attrDigest  = "digest"  // of the request that bound the idempotency key
)

// Attributes of the indexes; see package schema.
const (
	attrList    = "list"
	attrBorn    = "born"
	attrEnd     = "end" // the state of a run that has ended; of a living one its slots and their pools
	attrJob     = "job"
	attrDue     = "due"
	attrAt      = "at"
	attrMachine = "mach"
)

// The halves of the list index.
const (
	living = "living"
	ended  = "ended"
)

// eventRoom is the largest size of the events in a run's item, in bytes. Older events move to
// an item of their own. All events of a plain run fit.
const eventRoom = 2048

// Kinds of due work.
const (
	dueAct    = "act"    // the execution of a run should have acted
	dueSettle = "settle" // the same for an ended run
	dueOutput = "output" // an output expires
	duePurge  = "purge"  // a record is to be deleted
	duePool   = "pool"   // no time: the register of pools
	// dueHeartbeat has the heartbeat items whose limit sweeps check.
	dueHeartbeat = "beat"
	dueJob       = "job"   // a job fires
	dueDrain     = "drain" // the remaining runs of a draining pool are cancelled
)

// Times in the due index are lower bounds. A commit that leaves the bound unchanged
// leaves the index unchanged, which saves two to four write units; but each sweep
// reads the records whose bound has passed and whose time has not.
//
// The time of a living run changes with nearly every commit. While it is at most
// longWait ahead, the bound is its hour: the run is about to change again. Further
// ahead, as in Running or in a queue, the bound is its minute, so that sweeps do not
// read the run before. Outputs and records of ended runs are many and change rarely.
const (
	coarse   = time.Hour
	fine     = time.Minute
	longWait = 15 * time.Minute
)

// indexed returns the index attributes of the record. ttl reports that the table's
// TTL deletes the item, which Purge awaits for Config.TTLGrace.
func (s *Store) indexed(r run.Run, ttl bool) item {
	half := living
	at := item{}
	due := func(kind string, when time.Time, grain time.Duration) {
		at[attrDue] = text(dueKey(kind, shard(r.Ref(), dueShards)))
		at[attrAt] = number(when.Truncate(grain).Unix())
	}
	if r.State.Terminal() {
		half = ended
		at[attrEnd] = text(string(r.State))
	} else if marks := slotMarks(r); marks != "" {
		at[attrEnd] = text(marks)
	}
	if r.JobID != "" {
		at[attrJob] = text(pkJob(r.Tenant, run.Listed(r.JobID, r.HasParent())))
	}
	at[attrList] = text(listKey(r.Tenant, half, shard(r.Ref(), listShards)))
	actBy, purgeAt := r.Execution.ActBy, r.PurgeAt()
	switch {
	case !actBy.IsZero() && r.State.Terminal():
		due(dueSettle, actBy, fine)
	case actBy.Sub(s.now()) > longWait:
		due(dueAct, actBy, fine)
	case !actBy.IsZero():
		due(dueAct, actBy, coarse)
	case r.BytesLeft():
		due(dueOutput, r.BytesDue(), fine)
	case !purgeAt.IsZero() && ttl:
		due(duePurge, purgeAt.Add(s.config.TTLGrace), fine)
	case !purgeAt.IsZero():
		due(duePurge, purgeAt, fine)
	}
	if r.Placed() {
		at[attrMachine] = text(shard(r.Ref(), dueShards))
	}
	return at
}

// slotMarks is the attribute attrEnd of a living run: a line for each of its slots
// that a pool counts. No name of a pool has a line break.
func slotMarks(r run.Run) string {
	var marks []string
	if state := r.PoolState(); state != "" {
		marks = append(marks, slotMark(state, r.Slot.Pool))
	}
	if state := r.JobPoolState(); state != "" {
		marks = append(marks, slotMark(state, r.JobSlot.Pool))
	}
	if state := r.KeyPoolState(); state != "" {
		marks = append(marks, slotMark(state, r.KeySlot.Pool))
	}
	return strings.Join(marks, "\n")
}

// slotAttributes are the attributes with numbers of slots.
var slotAttributes = []string{attrSlot, attrJobSlot, attrKeySlot}

func slotMark(slot platform.SlotState, pool string) string { return string(slot) + "#" + pool }

func listKey(tenant, half, shard string) string { return within(tenant, half, shard) }

// forgetting returns when the table's TTL deletes the item of a record. ok is false if it must
// not, as while an output exists.
func forgetting(r run.Run) (seconds int64, ok bool) {
	if r.PurgeAt().IsZero() {
		return 0, false
	}
	return r.ExpiresAt.Unix() + 1, true
}

// record is a run's item as it was read.
type record struct {
	run.Run
	is item
	// damaged is the reason if the record cannot be decoded. The run then has only its tenant
	// and id.
	damaged error
}

// recordOf returns the record in an item. It caches decoded records.
func (s *Store) recordOf(is item) (*record, error) {
	doc := documentOf(is[attrDoc])
	if known, ok := s.decoded.runs.Get(doc); ok {
		return &record{Run: known, is: is}, nil
	}
	r, err := recordOf(is)
	if err == nil {
		decoded := r.Run // a copy, because the caller may change its run
		s.decoded.runs.Put(doc, &decoded)
	}
	return r, err
}

func recordOf(is item) (*record, error) {
	r := &record{is: is}
	if err := format.Unpack(documentOf(is[attrDoc]), &r.Run); err != nil {
		tenant, id := named(textOf(is[schema.Partition.Name]))
		return nil, fmt.Errorf("run %s of %s: %w", id, tenant, fault.Wrap(err, fault.Internal, "unreadable stored record"))
	}
	if string(r.Work.Options) == "null" {
		r.Work.Options = nil // JSON encodes nil as null
	}
	return r, nil
}

// slot returns the number of the run's slot in the attribute. ok is false without a slot.
func (r *record) slot(attribute string) (n int, ok bool) {
	v, ok := r.is[attribute]
	return int(numberOf(v)), ok
}

// change is one write, encoded once for all tries.
type change struct {
	port.Write
	doc    []byte
	events [][]byte
	size   int
	nonce  []byte
	// resultDoc is the result of the run's job, if the write has one.
	resultDoc []byte
	// indexed returns the index attributes. ttl means that the TTL deletes the item.
	indexed func(ttl bool) item
	// before is the record as it was read, or nil if it was not read yet.
	before *record
	// heartbeatless means that there is no heartbeat item to change. resultless means that the
	// job was deleted, or has a later result.
	heartbeatless, resultless bool
}

func (s *Store) changeOf(w port.Write, version int64) (*change, error) {
	packEvent := format.PackEvent
	if s.config.PlainItems {
		packEvent = func(e run.Event) ([]byte, error) { return format.Encode(e) }
	}

	w.Run.Version = version
	c := &change{
		Write: w, nonce: binary.BigEndian.AppendUint64(nil, s.config.Random()), events: make([][]byte, len(w.Events)),
		indexed: func(ttl bool) item { return s.indexed(w.Run, ttl) },
	}
	var err error
	if c.doc, err = s.pack(w.Run); err != nil {
		return nil, fmt.Errorf("cannot encode the record: %w", err)
	}
	if result, ok := w.Result(); ok {
		if c.resultDoc, err = s.pack(result); err != nil {
			return nil, fmt.Errorf("cannot encode the result: %w", err)
		}
	}
	for i, e := range w.Events {
		if c.events[i], err = packEvent(e); err != nil {
			return nil, fmt.Errorf("cannot encode event %d: %w", e.Seq, err)
		}
		c.size += len(c.events[i])
	}
	return c, nil
}

// attributes returns the attributes that each commit replaces. ttl means that the TTL deletes
// the item.
func (c *change) attributes(ttl bool) item {
	all := c.indexed(ttl)
	all[attrVersion], all[attrDoc], all[attrNonce] = number(c.Run.Version), document(c.doc), bytes(c.nonce)
	if len(c.events) > 0 {
		all[attrFresh] = number(int64(len(c.events)))
	}
	return all
}

// creates returns the part that stores a new run. It may replace an expired run.
func (c *change) creates(s *Store) *part {
	seconds, ttl := forgetting(c.Run)
	put := c.attributes(ttl)
	maps.Copy(put, runKey(c.Run.Ref()))
	put[attrBorn] = bytes(born(c.Run))
	if ttl {
		put[schema.TTL] = number(seconds)
	}
	if len(c.events) > 0 {
		put[attrEvents], put[attrBytes] = list(c.events), number(int64(c.size))
	}
	p := &part{put: put}
	if c.before == nil {
		p.absent(schema.Partition.Name)
	} else {
		p.where(attrNonce, "=", c.before.is[attrNonce])
	}
	p.refused = func(_ context.Context, is item) error {
		if stdbytes.Equal(bytesOf(is[attrNonce]), c.nonce) {
			return errApplied
		}
		if is == nil {
			c.before = nil
			return errAgain
		}
		before, err := recordOf(is)
		if err != nil {
			return err
		}
		if s.needed(before.Run) {
			return &port.Conflict{Ref: c.Run.Ref()}
		}
		c.before = before
		return errAgain
	}
	return p
}

// optional are the attributes that not every record has.
var optional = []string{attrEnd, attrDue, attrAt, attrMachine, attrFresh}

// updates returns the parts that write the record if its version is the one that the decision
// was based on. One part is the record. Another has the events that do not fit the item.
func (c *change) updates() []*part {
	p := &part{key: runKey(c.Run.Ref())}
	p.where(attrVersion, "=", number(c.Run.Version-1))
	p.refused = c.refused
	older := c.older()
	if len(c.events) == 0 {
		older = nil
	}
	spilled := older != nil || c.before != nil && c.before.is[attrSpilled] != nil
	seconds, ttl := forgetting(c.Run)
	ttl = ttl && !spilled // the TTL would leave the older events behind
	all := c.attributes(ttl)
	for name, v := range all {
		p.set(name, v)
	}
	for _, name := range optional {
		if all[name] == nil {
			p.drop(name)
		}
	}
	parts := []*part{p}
	switch {
	case len(c.events) == 0:
	case older != nil:
		parts = append(parts, older)
		p.set(attrEvents, list(c.events))
		p.set(attrBytes, number(int64(c.size)))
		p.set(attrSpilled, number(1))
	default:
		p.sets = append(p.sets,
			fmt.Sprintf("%s = list_append(if_not_exists(%s, %s), %s)", p.name(attrEvents), p.name(attrEvents), p.value(list(nil)), p.value(list(c.events))),
			fmt.Sprintf("%s = if_not_exists(%s, %s) + %s", p.name(attrBytes), p.name(attrBytes), p.value(number(0)), p.value(number(int64(c.size)))))
		if c.before == nil {
			p.where(attrBytes, "<=", number(int64(eventRoom-c.size)))
		}
	}
	switch {
	case !ttl:
		p.drop(schema.TTL)
	case c.before == nil:
		p.absent(attrSpilled)
		fallthrough
	default:
		p.set(schema.TTL, number(seconds))
	}
	return parts
}

// older returns the part that moves older events to an item of their own, or nil if all events
// fit.
func (c *change) older() *part {
	if c.before == nil || numberOf(c.before.is[attrBytes]) <= max(int64(eventRoom-c.size), 0) {
		return nil
	}
	key := keyOf(pkRun(c.Run.Ref()), eventsSort(eventsPrefix(c.Run.CreatedAt), c.before.EventCount))
	key[attrEvents] = c.before.is[attrEvents]
	return &part{put: key}
}

// refused returns whether the update was applied, lost a race, or must be planned again because
// the item had no room.
func (c *change) refused(_ context.Context, is item) error {
	if is != nil && numberOf(is[attrVersion]) == c.Run.Version && stdbytes.Equal(bytesOf(is[attrNonce]), c.nonce) {
		return errApplied
	}
	if is == nil || numberOf(is[attrVersion]) != c.Run.Version-1 {
		return &port.Conflict{Ref: c.Run.Ref()}
	}
	before, err := recordOf(is)
	if err != nil {
		return err
	}
	c.before = before
	return errAgain
}
