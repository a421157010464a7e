package simulation

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/porttest/fake"
	"github.com/sortie-dev/sortie/shared/run"
)

// plan holds the probabilities of faults, each from 0 to 1.
type plan struct {
	lostCalls, lostCommits, crashes                       float64
	throttles, noCapacity, invisible, stuck               float64
	neverStart, immediate, lost, late, lostExits, cancels float64
	// slowCommits last long enough for other commits. delayedCalls are function
	// calls that fail for the caller and run later. unforeseen are function
	// errors without a code. aborts stop an execution from outside.
	slowCommits, delayedCalls, unforeseen, aborts float64
	// workerContract is the share of workers that use it, the others only call
	// back. clones are two processes with one envelope. freezes stop a process
	// for a while.
	workerContract, clones, freezes, ignoreSignals float64
	// outages are long failures of Sortie's own network, process or clock.
	outages float64
	// retries is the share of ended runs that a client retries.
	retries float64
}

// reliable reports whether Sortie itself has no faults, so that everything must
// be prompt.
func (p plan) reliable() bool {
	return p.lostCalls+p.lostCommits+p.crashes+p.delayedCalls+p.unforeseen+p.aborts+p.outages == 0
}

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
	buckets  *buckets
	signer   port.Signer
	config   orchestrator.Config

	process *process
	system  *orchestrator.System
	engine  *engine.Engine
	// starts counts the starts of the process, steps those of the main loop.
	starts, steps int
	// unknownMachines counts the machines whose creation was not reported.
	unknownMachines int
	early           bool

	requested     int
	acceptedTasks []string
	attempts      map[attemptKey]*attemptFacts
	cancelled     map[string]run.State // state when the cancel request was acknowledged
	inMaybeCancel bool
	endedAt       map[string]time.Time
	last          map[string]*run.Run
	rows          rows
	// The network is down until cutUntil, the process until deadUntil. upSince
	// is the end of the last outage of any kind, and noticedUpSince of one that
	// was long enough to be noticed.
	cutUntil, deadUntil, upSince, noticedUpSince time.Time
	// blocked is the total time that steps of the engine have taken.
	blocked time.Duration
	// retried counts the runs created by retries of clients.
	calls, renewals, retried int
	// idleSince is the time since which a slot is free although a run is
	// queued.
	idleSince time.Time
	problems  []string
}

// start is the virtual time at which every simulation starts.
var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func newWorld(seed uint64, dir string) *world {
	w := &world{
		seed: seed, dir: dir, random: rand.New(rand.NewPCG(seed, 0x736f72746965)), //nolint:gosec // the seed must determine everything
		time: &timeline{now: start}, trace: &bytes.Buffer{},
		attempts: map[attemptKey]*attemptFacts{}, cancelled: map[string]run.State{}, endedAt: map[string]time.Time{}, last: map[string]*run.Run{}, rows: rows{docs: map[string]doc{}},
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
	w.signer = fake.NewSigner(nil, "simulation")
	w.plan = w.drawPlan()
	w.config = w.drawConfig()
	return w
}

// drawPlan draws the probabilities of faults. About half of them are zero.
func (w *world) drawPlan() plan {
	some := func(most float64) float64 {
		if w.random.IntN(2) == 0 {
			return 0
		}
		return w.random.Float64() * most
	}
	return plan{
		lostCalls: some(0.1), lostCommits: some(0.1), crashes: some(0.02),
		throttles: some(0.3), noCapacity: some(0.2), invisible: some(0.5), stuck: some(0.2),
		neverStart: some(0.3), immediate: some(0.6), lost: some(0.3), late: some(0.2), lostExits: some(0.5), cancels: some(0.4),
		slowCommits: some(0.5), delayedCalls: some(0.1), unforeseen: some(0.05) * float64(w.random.IntN(2)),
		aborts:         some(0.3) * float64(w.random.IntN(2)),
		workerContract: []float64{0, 0.5, 1, 1}[w.random.IntN(4)], clones: some(0.3), freezes: some(0.5), ignoreSignals: some(0.5),
		outages: some(1) * float64(w.random.IntN(2)), retries: some(0.2),
	}
}

func (w *world) drawConfig() orchestrator.Config {
	policy := run.Policy{
		StartTimeout: time.Minute, TimeLimit: 5 * time.Minute, HeartbeatInterval: 30 * time.Second,
		HeartbeatTimeout: 90 * time.Second, CancelGrace: 10 * time.Second, QueueTimeout: 40 * time.Minute,
		OutputRetention: 24 * time.Hour, RecordRetention: 48 * time.Hour,
		Retry: run.Retry{MaxAttempts: 3, MaxFurtherStarts: 3, InitialDelay: 2 * time.Second, Multiplier: 2, MaxDelay: time.Minute, Jitter: 0.5},
	}
	return orchestrator.Config{
		SweepInterval: sweepEvery, MaxEvents: 300,
		Policy: policy, Pool: "default", MaxMachines: w.random.IntN(4), Image: "worker", CPUs: 1, MemoryMB: 256,
		TokenTTL: 10 * time.Minute, PublicURL: "http://sortie", SourceURL: "http://source", DownloadRetention: time.Hour,
		LaunchWait: 10 * time.Second, ExitWait: 5 * time.Second, DestroyWait: 10 * time.Second,
	}
}

func (w *world) chance(p float64) bool { return p > 0 && w.random.Float64() < p }

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

// fail records a violated invariant.
func (w *world) fail(format string, args ...any) {
	problem := fmt.Sprintf(format, args...)
	if !slices.Contains(w.problems, problem) {
		w.problems = append(w.problems, problem)
		w.log.Error("failed: " + problem)
	}
}
