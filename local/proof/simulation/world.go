package simulation

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// world is the state of one simulation.
type world struct {
	seed   uint64
	dir    string
	random *rand.Rand
	plan   plan
	time   *timeline
	log    *slog.Logger
	trace  *bytes.Buffer

	machines *machines
	// runner creates the machines. engine is one of its platforms in a mixed world.
	runner port.Runner
	engine *containers
	ways   ways
	// warm is the observed state of warm machines; nil in a world without them.
	warm *warmth
	// fleet is the observed state of engine replicas; nil in a world without them.
	fleet *replicaFleet
	// pools are the pools of the operator, the default one first.
	pools   []*pool
	buckets *buckets
	signer  port.Signer
	wakeUps *schedules
	hooks   *hooks
	config  runs.Config
	// longest limits the durations in the world's policies. requests is the number of runs that
	// clients submit.
	longest  time.Duration
	requests int
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
	// turns are the turns of the keys in the queues of pools.
	turns map[turn]*turnFacts
	// drains is the last drain of the pool, as seen by its operator.
	drains drains
	// resizes are the pool's limits, the initial ones first.
	resizes []resize
	// events is the observed event stream. subscribers are the clients with webhooks.
	events      *streamModel
	subscribers []*subscriber
	// settling means that faults have ended and the remaining events are delivered.
	settling bool

	home    home
	process *process
	system  *app.System
	// starts counts the starts of the process. steps counts the events.
	starts, steps int
	// unknownMachines counts the machines whose creation was not reported.
	unknownMachines int

	acceptedTasks []string
	attempts      map[attemptKey]*attemptFacts
	cancelled     map[string]run.State // the state when the cancel request was acknowledged
	inMaybeCancel bool
	records       records
	runs          map[string]*runFacts
	positions     map[string]*position
	// outages has the end of each kind of outage. upSince is the end of the last outage of any
	// kind. outageTime is their total length.
	outages [outageKinds]time.Time
	upSince time.Time
	// throttled means that some start was throttled, by the platform or in an outage.
	throttled bool
	// lag limits the age of a read that may be stale.
	lag time.Duration
	// noticedUpSince is the end of the last outage during which no heartbeat was received and
	// that sweeps could notice.
	noticedUpSince time.Time
	outageTime     time.Duration
	// retried counts the runs created by retries of clients.
	calls, renewals, retried int
	// idleSince is the time since which a slot is free although a run is queued.
	idleSince time.Time
	// leasesDifferSince is the time since which the leases differ from the records.
	leasesDifferSince time.Time
	// last has the records at the time of the last check, checkedAt. tokens has the generations
	// of the executions' tokens.
	last      map[string]*run.Run
	checkedAt time.Time
	tokens    map[string]int
	problems  []string
	// broken is an error of the simulation itself.
	broken error
}

// start is the virtual time at which every simulation starts.
var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func newWorld(seed uint64, dir string) *world {
	w := &world{
		seed: seed, dir: dir, random: rand.New(rand.NewPCG(seed, 0x736f72746965)), //nolint:gosec // the seed must determine everything
		time: &timeline{now: start, parked: map[*task]bool{}}, trace: &bytes.Buffer{},
		attempts: map[attemptKey]*attemptFacts{}, cancelled: map[string]run.State{},
		records: records{touched: map[run.Ref]bool{}, byID: map[string]*run.Run{}}, runs: map[string]*runFacts{}, positions: map[string]*position{},
		last: map[string]*run.Run{}, tokens: map[string]int{}, schedules: map[scheduleKey]nominal{},
		turns: map[turn]*turnFacts{}, jobs: map[string]*jobModel{}, touchedJobs: map[string]bool{},
	}
	w.log = slog.New(slog.NewTextHandler(w.trace, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case "stack": // stacks contain addresses, which the seed does not determine
			return slog.Attr{}
		case slog.TimeKey:
			return slog.Duration("at", w.time.now.Sub(start))
		}
		return a
	}}))
	w.machines = &machines{w: w, byID: map[string]*machine{}}
	w.buckets = newBuckets(w)
	w.wakeUps = &schedules{w: w, wakeUps: map[job.Ref]int{}}
	w.hooks = newHooks(w)
	w.signer = fake.NewSigner(nil, "simulation")
	w.plan = w.drawPlan()
	w.config = w.drawConfig()
	w.drawDeadline()
	if w.contended() {
		w.drawContention()
	}
	if w.admitting() {
		w.drawAdmitting()
	}
	w.drawPools()
	if w.warmed() {
		w.drawWarm()
	}
	if w.serves() {
		w.drawFleet()
	}
	w.runner, w.broken = w.newRunner()
	w.drawJobs()
	w.events = newStreamModel(w)
	w.drawSubscribers()
	return w
}

func (w *world) chance(p float64) bool { return p > 0 && !w.isHealed() && w.random.Float64() < p }

func (w *world) upTo(most time.Duration) time.Duration {
	return time.Duration(w.random.Int64N(int64(most))) + time.Millisecond
}

func (w *world) hex(n int) string {
	var text strings.Builder
	for text.Len() < 2*n {
		fmt.Fprintf(&text, "%016x", w.random.Uint64())
	}
	return text.String()[:2*n]
}

func (w *world) note(format string, args ...any) {
	w.log.Info("world: " + fmt.Sprintf(format, args...))
}

// maxProblems limits the problems of one simulation.
const maxProblems = 3

// fail records a violated invariant.
func (w *world) fail(format string, args ...any) {
	problem := fmt.Sprintf(format, args...)
	if !slices.Contains(w.problems, problem) && len(w.problems) < maxProblems {
		w.problems = append(w.problems, problem)
		w.log.Error("failed: " + problem)
	}
}
