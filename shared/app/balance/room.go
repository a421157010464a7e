package balance

import (
	"maps"
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// openTokens is the number of answer tokens that a task without a limit of its own is expected
// to generate.
const openTokens = 1024

// tokensOf returns the context that a task needs, in tokens: its prompt and its largest answer.
func tokensOf(r run.Run) int {
	work := r.Work.Inference
	if work.OpenEnd {
		return work.PromptTokens + min(work.MaxTokens, openTokens)
	}
	return work.PromptTokens + work.MaxTokens
}

// full reports whether a replica has no room for a task: its slots are taken, its engine has requested
// a pause, or its memory has too little context left. A replica without tasks has room for every context, because only the
// engine knows whether the task fits. While another task of the pool waits for context, the
// replica is full, so that small tasks cannot delay a large one forever. s.mu is locked.
func (s *Replicas) full(r *replica, pool platform.Pool, task run.Run) bool {
	can := r.reportedCapabilities
	if s.load(r) >= pool.Engine.SlotsOf(can.Slots) || s.cools(r) {
		return true
	}
	if can.KVTokens <= 0 || r.held == 0 {
		return false
	}
	if first := s.blocked[pool.Home()]; first != "" && first != task.TaskID {
		return true
	}
	return r.tokens+tokensOf(task) > can.KVTokens
}

// cools reports whether the engine of a replica has requested a pause that is not over. s.mu is
// locked.
func (s *Replicas) cools(r *replica) bool { return s.clock.Now().Before(r.coolUntil) }

// awaitsRoom reports whether a replica of the pool is full and does not rest, so that the task
// can wait for it. It records a task that waits for context only.
func (s *Replicas) awaitsRoom(task run.Run, pool platform.Pool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	working := slices.DeleteFunc(s.ofPoolLocked(pool), func(r *replica) bool { return now.Before(r.restUntil) || !s.full(r, pool, task) })
	if s.blocked[pool.Home()] == "" && slices.ContainsFunc(working, func(r *replica) bool {
		return s.load(r) < pool.Engine.SlotsOf(r.reportedCapabilities.Slots) && !s.cools(r)
	}) {
		s.blocked[pool.Home()] = task.TaskID
	}
	return len(working) > 0
}

// unblock removes the record of a task that no longer waits for context, and wakes the others.
func (s *Replicas) unblock(task run.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.blocked)
	maps.DeleteFunc(s.blocked, func(_ platform.PoolRef, waits string) bool { return waits == task.TaskID })
	if len(s.blocked) < before {
		s.notify()
	}
}
