package capacity

import (
	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/local/proof/simulation/machines"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Capacity is what runs compete for: pools with their queues, warm machines and replicas.
type Capacity struct {
	*harness.Base
	*machines.Machines
	// jobs are the limits of the world's jobs.
	jobs jobLimits

	// Pools are the pools of the operator, the default one first.
	Pools []*pool
	// drains is the last drain of the pool, as seen by its operator.
	drains drains
	// Resizes are the pool's limits, the initial ones first.
	Resizes []Resize
	// turns are the turns of the keys in the queues of pools.
	turns map[turn]*turnFacts
	// Throttled means that some start was throttled, by the platform or in an outage.
	Throttled bool
	// Warm is the observed state of warm machines; nil in a world without them.
	Warm *warmth
	// Fleet is the observed state of engine replicas; nil in a world without them.
	Fleet *replicaFleet

	// runs are the observations about runs. last has the records at the time of the last check.
	runs map[string]*RunFacts
	Last map[string]*run.Run
}

// jobLimits returns limits of jobs.
type jobLimits interface {
	// KeyLimitOf returns the largest limit at which a run can get a slot of its key now.
	KeyLimitOf(r *run.Run) int
}

// New returns a world's capacity without pools.
func New(w *harness.Base, m *machines.Machines, of jobLimits) *Capacity {
	return &Capacity{
		Base: w, Machines: m, jobs: of, turns: map[turn]*turnFacts{},
		runs: map[string]*RunFacts{}, Last: map[string]*run.Run{},
	}
}
