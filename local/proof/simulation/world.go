package simulation

import (
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/capacity"
	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/local/proof/simulation/machines"
	"github.com/sortie-dev/sortie/local/proof/simulation/streams"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// world is the state of one simulation.
type world struct {
	*harness.Base

	*machines.Machines
	*streams.Streams
	*capacity.Capacity
	// jobIDs are the jobs of the world. horizon is how long their schedules fire. schedules are
	// the times of the schedules that clients sent.
	jobIDs    []string
	horizon   time.Duration
	schedules map[scheduleKey]nominal
	// jobs are the observed jobs. touchedJobs may have changed. abandoned are times that a
	// change may have dropped. ownersDone counts the owners that have ended.
	jobs        map[string]*jobModel
	touchedJobs map[string]bool
	abandoned   []abandonedTime
	ownersDone  int
	// graph is the drawn graph of the jobs; nil in a world without one.
	graph *graph
	// fan is the drawn job whose runs have children; nil in a world without one.
	fan *fanOut
	// dates is the drawn job of a world of several days; nil in other worlds.
	dates *dates
	// sensed are the items of the jobs' sensors; nil in a world without sensors.
	sensed *sensed
	// steps counts the events.
	steps int

	acceptedTasks []string
	cancelled     map[string]run.State // the state when the cancel request was acknowledged
	inMaybeCancel bool
	// retried counts the runs created by retries of clients.
	retried int
	// idleSince is the time since which a slot is free although a run is queued.
	idleSince time.Time
	// leasesDifferSince is the time since which the leases differ from the records.
	leasesDifferSince time.Time
	// checkedAt is the time of the last check.
	checkedAt time.Time
}

func newWorld(seed uint64, dir string) *world {
	w := &world{
		Base: harness.NewBase(seed, dir), cancelled: map[string]run.State{},
		schedules: map[scheduleKey]nominal{},
		jobs:      map[string]*jobModel{}, touchedJobs: map[string]bool{},
	}
	w.Watch = w
	w.Machines = machines.New(w.Base, w)
	w.Streams = streams.New(w.Base)
	w.Capacity = capacity.New(w.Base, w.Machines, w)
	w.Plan = w.DrawPlan()
	w.Config = w.DrawConfig()
	w.drawDeadline()
	if w.Contended() {
		w.drawContention()
	}
	if w.Admitting() {
		w.drawAdmitting()
	}
	w.DrawPools()
	if w.Warmed() {
		w.DrawWarm()
	}
	if w.Serves() {
		w.DrawFleet()
	}
	w.Runner, w.Broken = w.NewRunner()
	w.drawJobs()
	w.DrawSubscribers()
	return w
}
