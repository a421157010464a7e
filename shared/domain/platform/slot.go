package platform

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Slot is the run's slot of its pool, or its place in the queue.
type Slot struct {
	Pool string `json:"pool"`
	// Limit is the pool's limit when the slot was requested or granted; 0 means no limit, and
	// no lease is stored.
	Limit int       `json:"limit"`
	State SlotState `json:"state,omitempty"`
	// Since orders the queue. It is the creation time for the first attempt, and the time of
	// the request for later ones.
	Since time.Time `json:"since,omitzero"`
	// RequestedAt is when the attempt first requested the slot. After a throttled start the run
	// rejoins the queue at this place.
	RequestedAt time.Time `json:"asked,omitzero"`
	// Priority, Key and Round order the queue before Since; see Order. Runs with the same Key
	// share turns in the queue; a run without a key has a turn of its own. Round is 0 in a
	// queue without rounds.
	Priority spec.Priority `json:"priority,omitempty"`
	Key      string        `json:"key,omitempty"`
	Round    int64         `json:"round,omitempty"`
	// Behind is the QueueState.Last from which Round was computed. A commit that enqueues the run
	// is conditional on it.
	Behind int64 `json:"behind,omitempty"`
	// QueueLimit is the maximum number of queued runs; 0 means no limit. A commit that enqueues
	// the run is conditional on it.
	QueueLimit int `json:"queueLimit,omitempty"`
}

// SlotState is the state of a slot.
type SlotState string

// The states of a slot. The zero value means that the run has no slot.
const (
	SlotQueued SlotState = "queued"
	SlotHeld   SlotState = "held"
)

// Counted returns the slot's state as the pool counts it. A held slot without a limit is not
// counted; a queued one always is.
func (s Slot) Counted() SlotState {
	if s.Limit == 0 && s.State != SlotQueued {
		return ""
	}
	return s.State
}

// JobPool returns the name of the pool whose slots limit the concurrent runs of a job. The
// names of other pools contain no slash.
func JobPool(jobID string) string { return "job/" + jobID }

// PoolJob returns the job of a pool that JobPool has named; of is false for other pools.
func PoolJob(pool string) (jobID string, of bool) { return strings.CutPrefix(pool, JobPool("")) }

// KeyPool returns the name of the pool whose slots limit the concurrent runs of a key. The
// names of other pools contain no slash.
func KeyPool(key string) string { return "key/" + key }

// QueueState describes the queue of a pool for a run that joins it. Runs of one priority are served
// in rounds. Each key has one turn in a round.
type QueueState struct {
	// Head and Tail are the rounds of the first and the last queued run of the priority; 0 if
	// the queue has no such run.
	Head, Tail int64
	// Last is the round of the key's run that joined last, even if it has left the queue.
	// Queued is the number of queued runs of the key. Both are 0 for a run without a key.
	Last   int64
	Queued int
}

// round returns the round of a run that joins the queue. A key has one turn in each round: its
// next run joins the round after its last. A key without queued runs joins the current round,
// unless it has used its turn there. A run without a key joins the current round if no later
// one has begun, and otherwise the next. So runs without a key cannot delay the turns of a key
// without limit.
func (l QueueState) round(key string) int64 {
	switch {
	case l.Head == 0:
		return 1
	case key == "":
		return min(l.Head+1, l.Tail)
	case l.Queued > 0:
		return max(l.Head, min(l.Last, l.Tail)+1)
	case l.Last == l.Head:
		return l.Head + 1
	}
	return l.Head
}

// Joining returns the slot with the time and the round at which it joins the queue.
func (s Slot) Joining(l QueueState, since time.Time) Slot {
	s.Since, s.Round = since, l.round(s.Key)
	if s.Key != "" {
		s.Behind = l.Last
	}
	return s
}

// Turn returns the name of the counter that has the last round of the slot's key in the queue of
// its pool; empty for a slot without a key.
func (s Slot) Turn() string {
	if s.Key == "" {
		return ""
	}
	return strconv.Itoa(s.Priority.Rank()) + "#" + s.Key
}

const (
	// firstOrder is the first character of an Order with a round. It sorts after the
	// hexadecimal digits of an Order without one.
	firstOrder = "p"
	roundSize  = 16
)

// Order returns the sort key of a queued slot: priority, round and age. Queues are ordered by
// this text and then by run id. A slot without a round has only its age and comes first. It is
// in the queue of a job, which has no rounds, or was stored by a version without rounds.
func (s Slot) Order() string {
	age := fmt.Sprintf("%016x", orderedNanos(s.Since))
	if s.Round == 0 {
		return age
	}
	return s.Rank() + fmt.Sprintf("%0*x", roundSize, s.Round) + age
}

// Rank returns the common prefix of all Orders with a round and the priority of the slot.
func (s Slot) Rank() string { return firstOrder + strconv.Itoa(s.Priority.Rank()) }

// RoundOf returns the round in an Order; 0 for an Order without one.
func RoundOf(order string) int64 {
	if !strings.HasPrefix(order, firstOrder) || len(order) < len(firstOrder)+1+roundSize {
		return 0
	}
	round, err := strconv.ParseInt(order[len(firstOrder)+1:][:roundSize], 16, 64)
	if err != nil {
		return 0
	}
	return round
}

// orderedNanos returns t in Unix nanoseconds, offset so that the smallest 64-bit value is 0.
// Times outside of the range (the years 1678 to 2262) become its first or last value.
func orderedNanos(t time.Time) uint64 {
	const earliest, latest = -1 << 63, 1<<63 - 1
	n := t.UnixNano()
	switch {
	case t.Before(time.Unix(0, earliest)):
		n = earliest
	case t.After(time.Unix(0, latest)):
		n = latest
	}
	return uint64(n) ^ 1<<63 //nolint:gosec // G115: keeps the bits
}
