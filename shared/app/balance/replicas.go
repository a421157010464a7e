package balance

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

// Engines returns the engine of a replica. It may return the same one for each call.
type Engines func(tenant string, place platform.EnginePlace, replica platform.EngineReplica) (port.Engine, error)

// Replicas has the replicas of engine pools with their state in this process. It is safe for
// concurrent use.
type Replicas struct {
	engines Engines
	clock   clock.Clock
	log     *slog.Logger
	record  series.Recorder

	mu      sync.Mutex
	known   map[replicaKey]*replica
	others  map[string]int // tasks of other dispatchers by replica id, in the pool that the process serves
	changed chan struct{}  // closed and replaced when a slot becomes free
	waiting int            // tasks that wait for a slot
	// blocked has, by pool, the id of the task that waits longest for context; see full.
	blocked map[platform.PoolRef]string
	// shadows are the slots of shadow traffic.
	shadows map[*Lease]shadow
}

type replicaKey struct {
	tenant, pool, id, url, run, secret string
	loads                              int
}

// replica is a server of an engine pool with its state in this process.
type replica struct {
	key    replicaKey
	engine port.Engine

	// held counts the slots that tasks have taken, asking their requests at the engine.
	held, asking int
	// tokens is the context that the tasks with a slot need; see tokensOf.
	tokens int
	// failures counts consecutive failed requests. Because of them, the replica gets no request
	// before restUntil.
	failures  int
	restUntil time.Time
	// coolUntil is the end of a pause that the engine has requested. The replica is full until then.
	coolUntil time.Time
	// failed are the ids of the tasks that failures counts.
	failed []string
	// served reports that it has answered a request.
	served bool
	// readyAt is the time at which it was last ready; zero after a failure.
	readyAt time.Time
	// reportedCapabilities are the capabilities that the engine last reported, at askedAt.
	reportedCapabilities port.EngineCapabilities
	askedAt              time.Time
	describing           bool // a background request is under way
}

// NewReplicas returns replicas with the engines that engines returns. record gets the samples of
// slots that an engine does not free.
func NewReplicas(engines Engines, c clock.Clock, log *slog.Logger, record series.Recorder) *Replicas {
	return &Replicas{engines: engines, clock: c, log: log, record: record, known: map[replicaKey]*replica{}, changed: make(chan struct{}), blocked: map[platform.PoolRef]string{}, shadows: map[*Lease]shadow{}}
}

// breakAfter is the number of failures after which a replica rests. The first rest takes
// restFor. Each further failure doubles it, up to restMost.
const (
	breakAfter = 3
	restFor    = 5 * time.Second
	restMost   = time.Minute
	// loadingInterval is the interval between health checks of a replica that Sortie runs and
	// that has not answered a request yet.
	loadingInterval = 500 * time.Millisecond
	// spare is the number of additional tasks, compared with the least used replica, from which
	// a replica no longer gets the tasks of its sessions and prompts.
	spare = 2
)

// Take takes a slot of a ready replica of the run's pool. It waits for one until the start
// limit of the attempt, or until the deadline of the task while a replica works but is full.
// Faults: PoolUnavailable, DeadlineUnmet.
func (s *Replicas) Take(ctx context.Context, r run.Run, lookup func(context.Context) (platform.Pool, error)) (*Lease, error) {
	why := "no replica has a free slot"
	defer s.unblock(r)
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		pool, err := lookup(ctx)
		if err != nil {
			return nil, err
		}
		if err := serves(pool, r); err != nil {
			return nil, err
		}
		lease, outdated, reason, err := s.takeAny(ctx, r, pool, lookup)
		if lease != nil || err != nil {
			return lease, err
		}
		why = cmp.Or(reason, why)
		if outdated {
			continue
		}
		left := r.Attempt.StartBy.Sub(s.clock.Now())
		if s.awaitsRoom(r, pool) {
			s.yieldShadows(pool)
			if left = r.AnswerBy().Sub(s.clock.Now()); left <= 0 {
				return nil, fault.New(fault.DeadlineUnmet, "the deadline of %s was over before a replica had room", r.Work.Inference.Within)
			}
		}
		if left <= 0 {
			return nil, fault.New(fault.PoolUnavailable, "%s", why)
		}
		if err := s.await(ctx, changed, min(left, time.Second)); err != nil {
			return nil, err
		}
	}
}

// serves checks that the pool still serves the model of the run.
func serves(pool platform.Pool, r run.Run) error {
	if pool.Engine == nil {
		return fault.New(fault.PoolUnavailable, "the pool %s has no engine any more", pool.ID)
	}
	if model := r.Work.Inference.ServedModel(); model != pool.Engine.Model {
		return fault.New(fault.PoolUnavailable, "the pool %s serves %s, and not %s any more; submit the task again", pool.ID, pool.Engine.Model, model)
	}
	return nil
}

// takeAny takes a slot of the first candidate that is ready and has one. outdated reports that
// the best candidate has lost its slot since, so the candidates are to be read again. why says
// why the last candidate that failed is not used; it is empty if none failed.
func (s *Replicas) takeAny(ctx context.Context, r run.Run, pool platform.Pool, lookup func(context.Context) (platform.Pool, error)) (lease *Lease, outdated bool, why string, err error) {
	for i, candidate := range s.candidates(r, pool) {
		health, err := s.health(ctx, candidate)
		if err == nil && health.Ready {
			got := s.takeSlot(r, pool, candidate, i == 0)
			if got == nil && i == 0 {
				return nil, true, why, nil
			}
			if got == nil {
				continue
			}
			if !got.StillServed(ctx, lookup) {
				got.Release()
				continue
			}
			got.ask(ctx)
			return got, false, why, nil
		}
		if ctx.Err() != nil {
			return nil, false, why, ctx.Err()
		}
		why = candidate.notReady(pool, health.Reason, err)
		s.rest(candidate)
	}
	return nil, false, why, nil
}

// await waits for a change of the replicas, at most for a time. It returns the error of ctx.
func (s *Replicas) await(ctx context.Context, changed <-chan struct{}, atMost time.Duration) error {
	left := s.countWaiting()
	timer, stop := s.clock.NewTimer(atMost)
	defer func() { stop(); left() }()
	select {
	case <-changed:
	case <-timer:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// countWaiting counts a task that waits for a slot until done is called.
func (s *Replicas) countWaiting() (done func()) {
	change := func(by int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiting += by
	}
	change(1)
	return func() { change(-1) }
}

// candidates returns the replicas of a pool with a free slot that do not rest, in the order
// in which a run tries them: those at which a request of the run has failed come last.
func (s *Replicas) candidates(r run.Run, pool platform.Pool) []*replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.candidatesLocked(r, pool)
}

// candidatesLocked is candidates for a caller that has locked s.mu.
func (s *Replicas) candidatesLocked(r run.Run, pool platform.Pool) []*replica {
	now := s.clock.Now()
	var found, failed []*replica
	for _, each := range pool.Engine.Replicas {
		known, err := s.stateOf(pool, each)
		if err != nil {
			s.log.Warn("cannot use a replica", "pool", pool.ID, "replica", each.ID, "error", err.Error())
			continue
		}
		switch {
		case s.full(known, pool, r) || now.Before(known.restUntil):
		case slices.Contains(r.FailedReplicas, each.ID):
			failed = append(failed, known)
		default:
			found = append(found, known)
		}
	}
	return append(s.order(r, found), s.order(r, failed)...)
}

// order sorts replicas by their load. The replica of the run's session or prompt is first,
// unless it has spare or more tasks more than the least used one. s.mu is locked.
func (s *Replicas) order(r run.Run, of []*replica) []*replica {
	if len(of) < 2 {
		return of
	}
	own := ownReplica(r, of)
	slices.SortStableFunc(of, func(a, b *replica) int { return cmp.Compare(s.load(a), s.load(b)) })
	if s.load(own) < s.load(of[0])+spare {
		i := slices.Index(of, own)
		copy(of[1:], of[:i])
		of[0] = own
	}
	return of
}

// load returns the number of tasks of a replica, those of other dispatchers included. s.mu is
// locked.
func (s *Replicas) load(r *replica) int { return r.held + s.others[r.key.id] }

// SetOtherTasks sets the number of tasks of other dispatchers by replica id. It wakes waiting
// tasks if a number is lower than before.
func (s *Replicas) SetOtherTasks(others map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fewer := false
	for id, n := range s.others {
		fewer = fewer || others[id] < n
	}
	if s.others = others; fewer {
		s.notify()
	}
}

// notify wakes the tasks that wait for a slot. s.mu is locked.
func (s *Replicas) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Known is a copy of the state of a replica.
type Known struct {
	ID string
	// Held is the number of slots of the replica that tasks have taken.
	Held   int
	Engine port.Engine
	// Can has the capabilities that the engine last reported.
	Can port.EngineCapabilities
	// Resting: because of failures, the replica gets no tasks for a while.
	Resting bool
}

// Known returns the replicas of a pool for which this process has an engine.
func (s *Replicas) Known(pool platform.Pool) (found []Known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for _, each := range pool.Engine.Replicas {
		if r, err := s.stateOf(pool, each); err == nil {
			found = append(found, Known{each.ID, r.held, r.engine, r.reportedCapabilities, now.Before(r.restUntil)})
		}
	}
	return found
}

// stateOf returns the state of a replica, and creates it if it is missing. s.mu is locked.
func (s *Replicas) stateOf(pool platform.Pool, of platform.EngineReplica) (*replica, error) {
	home := pool.Home()
	key := replicaKey{home.Tenant, home.ID, of.ID, of.URL, of.Run, pool.Engine.SecretRef, pool.Engine.Loads}
	if known := s.known[key]; known != nil {
		return known, nil
	}
	engine, err := s.engines(home.Tenant, *pool.Engine, of)
	if err != nil {
		return nil, err
	}
	known := &replica{key: key, engine: probed{engine, s.clock}}
	maps.DeleteFunc(s.known, func(other replicaKey, r *replica) bool { // the server was replaced
		return other.tenant == key.tenant && other.pool == key.pool && other.id == key.id && r.held == 0
	})
	s.known[key] = known
	return known, nil
}

// prefixBytes is the length of the start of a request. Tasks with the same start share a
// replica.
const prefixBytes = 1024

// ownReplica returns the replica for the tasks of the run's session, or for tasks with the same
// start of the prompt. It has the highest hash, so that another number of replicas moves few
// tasks.
func ownReplica(r run.Run, of []*replica) *replica {
	key := r.Work.Inference.SessionID
	if key == "" {
		request := r.Work.Inference.Request
		key = string(request[:min(len(request), prefixBytes)])
	}
	// Keys that differ in their last bytes alone need a hash whose first bits differ, too.
	shared := sha256.Sum256([]byte(r.Tenant + "\x00" + key))
	var best [sha256.Size]byte
	own := of[0]
	for _, each := range of {
		if sum := sha256.Sum256(append(shared[:], each.key.id...)); bytes.Compare(sum[:], best[:]) > 0 {
			best, own = sum, each
		}
	}
	return own
}

// takeSlot takes a slot of a candidate. It returns nil if the candidate has no free slot any
// more. With first, it also returns nil if the candidate is no longer the first one.
func (s *Replicas) takeSlot(r run.Run, pool platform.Pool, of *replica, first bool) *Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first {
		if now := s.candidatesLocked(r, pool); len(now) == 0 || now[0] != of {
			return nil
		}
	}
	if s.full(of, pool, r) {
		return nil
	}
	l := &Lease{replica: of, of: s, id: of.key.id, task: r.TaskID, tokens: tokensOf(r), deterministic: pool.Engine.Deterministic, place: pool.Engine}
	of.held, of.tokens = of.held+1, of.tokens+l.tokens
	for _, each := range pool.Engine.Replicas {
		if other, err := s.stateOf(pool, each); err == nil && other != of {
			l.others = append(l.others, other)
		}
	}
	return l
}

// failed counts a failed request of a task, once, and lets the replica rest after breakAfter
// failures. The last active replica of the pool continues if it has answered: the error of an
// engine is more useful to a client than a pool without a replica.
func (s *Replicas) failed(l *Lease, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := l.replica
	if slices.Contains(r.failed, l.task) {
		return
	}
	if len(r.failed) < breakAfter { // later failures all count
		r.failed = append(r.failed, l.task)
	}
	s.restNow(r, !answered || !l.isLastActiveLocked())
}

// rest counts a failed health check of a replica.
func (s *Replicas) rest(r *replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restNow(r, true)
}

// restNow counts a failure. If may is true, the replica rests after breakAfter failures. A new
// replica that Sortie runs rests for loadingInterval instead, while it loads its model. s.mu is
// locked.
func (s *Replicas) restNow(r *replica, may bool) {
	r.readyAt, r.askedAt = time.Time{}, time.Time{} // the server may have been replaced when it answers again
	if r.key.run != "" && !r.served {               // it is loading its model
		r.restUntil = s.clock.Now().Add(loadingInterval)
		return
	}
	r.failures++
	if may && r.failures >= breakAfter {
		r.restUntil = s.clock.Now().Add(min(restFor<<min(r.failures-breakAfter, 8), restMost))
	}
}
