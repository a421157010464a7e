package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// poolQueue is the queue of a pool in memory.
type poolQueue struct {
	now    time.Time
	next   int
	queued []run.Run
	last   map[string]int64
}

// line returns the state of the queue for the slot.
func (q *poolQueue) line(s platform.Slot) (l platform.QueueState) {
	for _, r := range q.queued {
		if r.Slot.Rank() != s.Rank() {
			continue
		}
		if l.Head == 0 {
			l.Head = r.Slot.Round
		}
		l.Tail = r.Slot.Round
		if s.Key != "" && r.Slot.Key == s.Key {
			l.Queued++
		}
	}
	l.Last = q.last[s.Turn()]
	return l
}

func (q *poolQueue) join(t fataler, key string, priority spec.Priority) run.Run {
	q.now, q.next = q.now.Add(time.Millisecond), q.next+1
	r := fresh()
	r.ID, r.Priority = fmt.Sprintf("run-%06d", q.next), priority
	if key != "" {
		r.Concurrency = &spec.Concurrency{Key: key, Limit: 1 << 20}
	}
	r = run.New(r, q.now).Run
	d, err := run.Decide(r, run.Enqueued{Pool: "p", Limit: 1, Queue: q.line(r.SlotOf("p", 1))}, q.now)
	if err != nil || d.Lease != run.LeaseEnqueue {
		t.Fatalf("got lease %q, %v, want %s", d.Lease, err, run.LeaseEnqueue)
	}
	q.last[d.Run.Slot.Turn()] = d.Run.Slot.Round
	at, _ := slices.BinarySearchFunc(q.queued, d.Run, func(a, b run.Run) int {
		return strings.Compare(a.Slot.Order()+a.ID, b.Slot.Order()+b.ID)
	})
	q.queued = slices.Insert(q.queued, at, d.Run)
	return d.Run
}

// start removes and returns the first queued run.
func (q *poolQueue) start() run.Run {
	first := q.queued[0]
	q.queued = q.queued[1:]
	return first
}

// backlog returns the number of queued runs of each key.
func (q *poolQueue) backlog() map[string]int {
	found := map[string]int{}
	for _, r := range q.queued {
		found[r.Slot.Key]++
	}
	return found
}

type fataler interface{ Fatalf(string, ...any) }

// spread returns the difference between the largest and the smallest number of starts of the
// keys in the backlog.
func spread(starts map[string]int, backlog map[string]int) int {
	least, most := 1<<30, 0
	for key := range backlog {
		least, most = min(least, starts[key]), max(most, starts[key])
	}
	return max(most-least, 0)
}

func newPoolQueue() *poolQueue { return &poolQueue{now: epoch, last: map[string]int64{}} }

// TestKeysWithBacklogStartEquallyOften draws the number of keys, the number of their runs, and
// the order in which they join.
func TestKeysWithBacklogStartEquallyOften(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := newPoolQueue()
		var joins []string
		for i := range rapid.IntRange(1, 60).Draw(t, "keys") {
			joins = append(joins, slices.Repeat([]string{fmt.Sprint("key-", i)}, rapid.IntRange(1, 8).Draw(t, "runs"))...)
		}
		for _, key := range rapid.Permutation(joins).Draw(t, "order") {
			q.join(t, key, "")
		}
		starts := map[string]int{}
		for len(q.queued) > 0 {
			starts[q.start().Slot.Key]++
			if got := spread(starts, q.backlog()); got > 1 {
				t.Fatalf("got a difference of %d starts in %v, want at most 1", got, starts)
			}
		}
	})
}

func TestThousandKeysStartEquallyOften(t *testing.T) {
	t.Parallel()
	const keys, runs = 1000, 3
	q := newPoolQueue()
	for i := range keys * runs {
		q.join(t, fmt.Sprint("key-", i/runs), "") // the keys join one after another
	}
	starts, waiting, least, most := make([]int, keys), keys, 0, 0
	atLeast := map[int]int{0: keys}
	for waiting > 0 && len(q.queued) > 0 {
		var i int
		if _, err := fmt.Sscanf(q.start().Slot.Key, "key-%d", &i); err != nil {
			t.Fatal(err)
		}
		atLeast[starts[i]]--
		starts[i]++
		atLeast[starts[i]]++
		most = max(most, starts[i])
		for atLeast[least] == 0 {
			least++
		}
		if most-least > 1 {
			t.Fatalf("got a difference of %d starts, want at most 1", most-least)
		}
	}
}

// TestTurnsOfKeysThatJoinAndLeave lets keys join, empty their queues and join again. A key must
// have at most one start in a round, and must miss no round while it has a backlog. No run may
// start before one of a higher priority.
func TestTurnsOfKeysThatJoinAndLeave(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := newPoolQueue()
		lastStart := map[string]int64{} // the round of a turn's last start since the queue was last empty
		waits := map[string]bool{}      // whether the turn had a backlog at its last start
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if len(q.queued) == 0 || rapid.Bool().Draw(t, "join") {
				key := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e"}).Draw(t, "key")
				priority := rapid.SampledFrom([]spec.Priority{"", spec.PriorityBatch, spec.PriorityInteractive}).Draw(t, "priority")
				q.join(t, key, priority)
				continue
			}
			r := q.start()
			for _, other := range q.queued {
				if other.Slot.Rank() < r.Slot.Rank() {
					t.Fatalf("got %s started before %s of a higher priority", r.ID, other.ID)
				}
			}
			l := q.line(r.Slot)
			turn := r.Slot.Turn()
			if turn != "" {
				if was, ok := lastStart[turn]; ok && waits[turn] && r.Slot.Round != was+1 {
					t.Fatalf("got a start of %s in round %d after round %d, want the next", turn, r.Slot.Round, was)
				}
				lastStart[turn], waits[turn] = r.Slot.Round, l.Queued > 0
			}
			// The next turn of every remaining key must be in this round or the next.
			next := map[string]int64{}
			for _, other := range q.queued {
				if turn := other.Slot.Turn(); turn != "" && next[turn] == 0 && other.Slot.Rank() == r.Slot.Rank() {
					next[turn] = other.Slot.Round
				}
			}
			for turn, round := range next {
				if round < r.Slot.Round || round > r.Slot.Round+1 {
					t.Fatalf("got the next turn of %s in round %d after a start in round %d, want it or the next", turn, round, r.Slot.Round)
				}
			}
		}
	})
}
