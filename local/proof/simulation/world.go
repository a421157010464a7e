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

// plan says how mean the world is: each is a chance from 0 to 1.
type plan struct {
	lostCalls, lostCommits, crashes                   float64
	throttles, noCapacity, invisible, stuck           float64
	neverStart, quick, lost, late, lostExits, cancels float64
	// slowCommits take a while, in which others commit. zombies are calls of
	// functions that are given up and come to life later. unforeseen are
	// failures of functions that nobody has a name for. aborts are executions
	// that somebody stops by hand.
	slowCommits, zombies, unforeseen, aborts float64
	// modern workers know the worker contract. clones are two processes of one
	// envelope; frozen ones are silent for a while, and deaf ones end for nobody.
	modern, clones, freezes, deaf float64
	// outages are of ours, long ones: the network, the process, the clock.
	outages float64
	// again is how often a client retries what has ended.
	again float64
}

// kind says whether nothing of ours fails, so that everything has to be prompt.
func (p plan) kind() bool {
	return p.lostCalls+p.lostCommits+p.crashes+p.zombies+p.unforeseen+p.aborts+p.outages == 0
}

// world is everything in one simulation.
type world struct {
	seed   uint64
	dir    string
	random *rand.Rand
	plan   plan
	time   *timeline
	log    *slog.Logger
	story  *bytes.Buffer

	machines *machines
	buckets  *buckets
	signer   port.Signer
	config   orchestrator.Config

	process *process
	system  *orchestrator.System
	engine  *engine.Engine
	// lives are those of the process; steps are counted by Run.
	lives, steps int
	// strays counts the machines that nobody was told of.
	strays int
	early  bool

	requests  int
	accepts   []string
	known     map[attemptOf]*facts
	cancelled map[string]run.State // how it stood when the cancel was acknowledged
	meddling  bool
	endedAt   map[string]time.Time
	last      map[string]*run.Run
	rows      rows
	// No call comes through until cutUntil, and no process begins until
	// deadUntil; upSince is the end of the last outage of any kind, and heardSince of
	// one that was long enough to be noticed.
	cutUntil, deadUntil, upSince, heardSince time.Time
	// blocked is how long the engine was kept waiting in its steps.
	blocked time.Duration
	// retried counts the runs that clients have made of ended ones.
	calls, renewals, retried int
	// idleSince is when a slot was free while somebody waited for one.
	idleSince time.Time
	problems  []string
}

// start is when every simulation begins.
var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func newWorld(seed uint64, dir string) *world {
	w := &world{
		seed: seed, dir: dir, random: rand.New(rand.NewPCG(seed, 0x736f72746965)), //nolint:gosec // it has to be had again
		time: &timeline{now: start}, story: &bytes.Buffer{},
		known: map[attemptOf]*facts{}, cancelled: map[string]run.State{}, endedAt: map[string]time.Time{}, last: map[string]*run.Run{}, rows: rows{docs: map[string]doc{}},
	}
	w.log = slog.New(slog.NewTextHandler(w.story, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case "stack": // it has addresses, which no seed decides
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

// drawPlan draws how mean the world is. Some worlds are kind in most ways.
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
		neverStart: some(0.3), quick: some(0.6), lost: some(0.3), late: some(0.2), lostExits: some(0.5), cancels: some(0.4),
		slowCommits: some(0.5), zombies: some(0.1), unforeseen: some(0.05) * float64(w.random.IntN(2)),
		aborts: some(0.3) * float64(w.random.IntN(2)),
		modern: []float64{0, 0.5, 1, 1}[w.random.IntN(4)], clones: some(0.3), freezes: some(0.5), deaf: some(0.5),
		outages: some(1) * float64(w.random.IntN(2)), again: some(0.2),
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
		SweepInterval: sweepEvery,
		Policy:        policy, Pool: "default", MaxMachines: w.random.IntN(4), Image: "worker", CPUs: 1, MemoryMB: 256,
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

// broken notes that a promise was broken.
func (w *world) broken(format string, args ...any) {
	problem := fmt.Sprintf(format, args...)
	if !slices.Contains(w.problems, problem) {
		w.problems = append(w.problems, problem)
		w.log.Error("broken: " + problem)
	}
}
