package orchestrator

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

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
	"github.com/sortie-dev/sortie/shared/series"
)

// replicas are the replicas of engine pools as this process uses them. It is safe for
// concurrent use.
type replicas struct {
	engines Engines
	clock   clock.Clock
	log     *slog.Logger
	record  series.Recorder

	mu      sync.Mutex
	known   map[replicaKey]*replica
	others  map[string]int // tasks of other dispatchers by replica; of the pool of a shift
	changed chan struct{}  // closed and replaced when a slot becomes free
}

type replicaKey struct {
	tenant, pool, id, url, run string
	loads                      int
}

// replica is a server and what this process knows of it.
type replica struct {
	key    replicaKey
	engine port.Engine

	// held counts the tasks that have a slot, asking those of them with a request at the engine.
	held, asking int
	// failures counts the requests that failed one after the other, and restUntil is until
	// when the replica gets no request because of them.
	failures  int
	restUntil time.Time
	// failed are the tasks whose requests are among the failures.
	failed []string
	// served: it has answered a request.
	served bool
	// readyAt is when it was ready last; zero after a failure.
	readyAt time.Time
	// can is what the engine said last, at askedAt.
	can     port.EngineCapabilities
	askedAt time.Time
	asked   bool // in the background, now
}

func newReplicas(engines Engines, c clock.Clock, log *slog.Logger, record series.Recorder) *replicas {
	return &replicas{engines: engines, clock: c, log: log, record: record, known: map[replicaKey]*replica{}, changed: make(chan struct{})}
}

// breakAfter is after how many failures a replica rests, restFor for how long the first
// time; the time doubles with each further failure up to restMost.
const (
	breakAfter = 3
	restFor    = 5 * time.Second
	restMost   = time.Minute
	// loadLook is the time between two looks at a replica that Sortie runs and that has not
	// answered yet.
	loadLook = 500 * time.Millisecond
	// spare is how many more tasks a replica may have than the least used one, so that it
	// serves the tasks that share a session or a prompt.
	spare = 2
)

// take takes a slot of a replica of the run's pool that is ready, and waits for one until
// the start limit of the attempt. Fault: PoolUnavailable.
func (s *replicas) take(ctx context.Context, r run.Run, lookup func(context.Context) (run.Pool, error)) (*lease, error) {
	why := "no replica has a free slot"
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		pool, err := lookup(ctx)
		if err != nil {
			return nil, err
		}
		if pool.Engine == nil {
			return nil, fault.New(fault.PoolUnavailable, "the pool %s has no engine any more", pool.ID)
		}
		if model := r.Work.Inference.Model; model != pool.Engine.Model {
			return nil, fault.New(fault.PoolUnavailable, "the pool %s serves %s, and not %s any more; submit the task again", pool.ID, pool.Engine.Model, model)
		}
		outdated := false
		for i, candidate := range s.candidates(r, pool) {
			health, err := s.health(ctx, candidate)
			if err == nil && health.Ready {
				if got := s.hold(r, pool, candidate, i == 0); got != nil {
					if !stillServes(ctx, candidate, lookup) {
						got.release()
						continue
					}
					got.ask(ctx)
					return got, nil
				}
				if outdated = i == 0; outdated {
					break
				}
				continue
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			why = "replica " + candidate.key.id + " is not ready: " + health.Reason
			if err != nil {
				why = "replica " + candidate.key.id + " does not answer: " + err.Error()
			}
			s.rest(candidate)
		}
		if outdated {
			continue
		}
		left := r.Attempt.StartBy.Sub(s.clock.Now())
		if left <= 0 {
			return nil, fault.New(fault.PoolUnavailable, "%s", why)
		}
		timer, stop := s.clock.NewTimer(min(left, time.Second))
		select {
		case <-changed:
		case <-timer:
		case <-ctx.Done():
			stop()
			return nil, ctx.Err()
		}
		stop()
	}
}

// candidates returns the replicas of a pool with a free slot that do not rest, in the order
// in which a run tries them: those at which a request of the run has failed come last.
func (s *replicas) candidates(r run.Run, pool run.Pool) []*replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.choose(r, pool)
}

// choose is candidates. s.mu is locked.
func (s *replicas) choose(r run.Run, pool run.Pool) []*replica {
	now := s.clock.Now()
	var found, failed []*replica
	for _, each := range pool.Engine.Replicas {
		known, err := s.know(pool, each)
		if err != nil {
			s.log.Warn("cannot use a replica", "pool", pool.ID, "replica", each.ID, "error", err.Error())
			continue
		}
		switch {
		case s.load(known) >= pool.Engine.Slots || now.Before(known.restUntil):
		case slices.Contains(r.FailedReplicas, each.ID):
			failed = append(failed, known)
		default:
			found = append(found, known)
		}
	}
	return append(s.order(r, found), s.order(r, failed)...)
}

// order sorts replicas: the run's own by session or prompt is the first one, unless it then had
// more than spare tasks more than the least used one; the others follow by their load. s.mu is
// locked.
func (s *replicas) order(r run.Run, of []*replica) []*replica {
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

// load is how many tasks a replica has. s.mu is locked.
func (s *replicas) load(r *replica) int { return r.held + s.others[r.key.id] }

// have sets how many tasks the replicas have of other dispatchers.
func (s *replicas) have(others map[string]int) {
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

// notify wakes those that wait for a slot. s.mu is locked.
func (s *replicas) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// knownReplica is a replica of a pool as this process knows it.
type knownReplica struct {
	id      string
	held    int
	engine  port.Engine
	can     port.EngineCapabilities
	resting bool
}

// of returns the replicas of a pool for which this process has an engine.
func (s *replicas) of(pool run.Pool) (found []knownReplica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for _, each := range pool.Engine.Replicas {
		if r, err := s.know(pool, each); err == nil {
			found = append(found, knownReplica{each.ID, r.held, r.engine, r.can, now.Before(r.restUntil)})
		}
	}
	return found
}

// know returns what this process knows of a replica. s.mu is locked.
func (s *replicas) know(pool run.Pool, of run.EngineReplica) (*replica, error) {
	key := replicaKey{pool.Tenant, pool.ID, of.ID, of.URL, of.Run, pool.Engine.Loads}
	if known := s.known[key]; known != nil {
		return known, nil
	}
	engine, err := s.engines(*pool.Engine, of)
	if err != nil {
		return nil, err
	}
	known := &replica{key: key, engine: probed{engine, s.clock}}
	maps.DeleteFunc(s.known, func(other replicaKey, r *replica) bool { // the server is another one now
		return other.tenant == key.tenant && other.pool == key.pool && other.id == key.id && r.held == 0
	})
	s.known[key] = known
	return known, nil
}

// prefixBytes is the size of the first part of a request, by which tasks share a replica.
const prefixBytes = 1024

// ownReplica returns the replica that tasks of the run's session, or with the same
// beginning of the prompt, go to: that with the highest hash, so that another number of
// replicas moves few of them.
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

// hold takes a slot of a candidate. It returns nil if other tasks have taken slots meanwhile, so
// that this one has none left, or was the first one and is not any more.
func (s *replicas) hold(r run.Run, pool run.Pool, of *replica, first bool) *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first {
		if now := s.choose(r, pool); len(now) == 0 || now[0] != of {
			return nil
		}
	}
	if s.load(of) >= pool.Engine.Slots {
		return nil
	}
	of.held++
	l := &lease{replica: of, of: s, id: of.key.id, task: r.TaskID, deterministic: pool.Engine.Deterministic}
	for _, each := range pool.Engine.Replicas {
		if other, err := s.know(pool, each); err == nil && other != of {
			l.others = append(l.others, other)
		}
	}
	return l
}

// failed lets the replica of a request that failed rest. A task counts once, and its pool's
// last replica continues if it has answered: to a client the error of an engine says more than a
// pool without a replica.
func (s *replicas) failed(l *lease, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := l.replica
	if slices.Contains(r.failed, l.task) {
		return
	}
	if len(r.failed) < breakAfter { // later ones let it rest each
		r.failed = append(r.failed, l.task)
	}
	s.restNow(r, !answered || !l.last())
}

// rest lets a replica that is not ready rest.
func (s *replicas) rest(r *replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restNow(r, true)
}

// restNow counts a failure, and lets the replica rest after breakAfter if it may. s.mu is locked.
func (s *replicas) restNow(r *replica, may bool) {
	r.readyAt, r.askedAt = time.Time{}, time.Time{} // the server may be another one when it answers again
	if r.key.run != "" && !r.served {               // it loads its model
		r.restUntil = s.clock.Now().Add(loadLook)
		return
	}
	r.failures++
	if may && r.failures >= breakAfter {
		r.restUntil = s.clock.Now().Add(min(restFor<<min(r.failures-breakAfter, 8), restMost))
	}
}
