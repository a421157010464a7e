package simulation

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/engine"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/orchestrator"
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
}

// kind says whether nothing of ours fails, so that everything has to be prompt.
func (p plan) kind() bool {
	return p.lostCalls+p.lostCommits+p.crashes+p.zombies+p.unforeseen+p.aborts == 0
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
	signer   orchestrator.Signer
	config   orchestrator.Config

	process *process
	service *orchestrator.Service
	engine  *engine.Engine
	lives   int
	// strays counts the machines that nobody was told of.
	strays int
	early  bool

	requests     int
	accepts      []string
	acknowledged map[string][]int
	endedAt      map[string]time.Time
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
		acknowledged: map[string][]int{}, endedAt: map[string]time.Time{},
	}
	w.log = slog.New(slog.NewTextHandler(w.story, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Duration("at", w.time.now.Sub(start))
		}
		return a
	}}))
	w.machines = &machines{w: w, byID: map[string]*machine{}}
	w.buckets = newBuckets(w)
	w.signer = newSigner()
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
		Policy: policy, Pool: "default", MaxMachines: w.random.IntN(4), Image: "worker", CPUs: 1, MemoryMB: 256,
		PublicURL: "http://sortie", SourceURL: "http://source", DownloadRetention: time.Hour,
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

var client = orchestrator.Identity{Tenant: "local", Workspace: "local", Subject: "localhost"}

// arrive makes a client ask for a run, as often as it takes to be answered.
func (w *world) arrive(key string) {
	var accepted run.Run
	err := fault.New(fault.Unavailable, "the process is dead")
	w.attempted(func() {
		var failed error
		accepted, _, failed = w.service.Export(context.Background(), orchestrator.ExportCall{
			Identity: client, Format: "mods", Request: contract.ExportRequest{PI: "01K9XVBAQZF9EHDRXGBEADTZYY"},
			IdempotencyKey: key, CorrelationID: key,
		})
		err = fault.Of(failed)
	}, func() {})
	if err != nil || w.chance(w.plan.lostCalls) {
		w.time.after(w.upTo(5*time.Second), func() { w.arrive(key) })
		return
	}
	w.note("%s is accepted as %s", key, accepted.TaskID)
	w.accepts = append(w.accepts, accepted.TaskID)
	if w.chance(w.plan.cancels) {
		w.time.after(w.upTo(4*time.Minute), func() { w.cancel(accepted.TaskID) })
	}
	if w.chance(w.plan.aborts) {
		w.time.after(w.upTo(4*time.Minute), func() { w.abort(accepted.Ref()) })
	}
}

// abort stops a run's execution behind our back.
func (w *world) abort(ref run.Ref) {
	w.attempted(func() {
		err := w.engine.Stop(context.Background(), run.ExecutionName(ref, 1), "by hand")
		w.note("the execution of %s is stopped by hand: %v", ref.ID, err)
	}, func() {})
}

func (w *world) cancel(task string) {
	err := error(fault.New(fault.Unavailable, "the process is dead"))
	w.attempted(func() { _, err = w.service.Cancel(context.Background(), client, task, "user_requested") }, func() {})
	w.note("cancel of %s: %v", task, err)
	if err != nil {
		w.time.after(w.upTo(5*time.Second), func() { w.cancel(task) })
		return
	}
	if r, ok := w.record(task); ok && r.Cancel == nil && !r.State.Terminal() {
		w.broken("the cancel of %s was acknowledged and is lost", task)
	}
}

// signer signs with one key that every simulation has.
type signer struct{ key *ecdsa.PrivateKey }

func newSigner() signer {
	seed := sha256.Sum256([]byte("the simulation's key"))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	if err != nil {
		panic(err) // the seed is a constant
	}
	return signer{key}
}

// Current is orchestrator.Signer.
func (signer) Current(context.Context) (string, error) { return "sim", nil }

// Sign is orchestrator.Signer.
func (s signer) Sign(_ context.Context, _ string, message []byte) ([]byte, error) {
	sum := sha256.Sum256(message)
	r, v, err := ecdsa.Sign(noise{}, s.key, sum[:])
	if err != nil {
		return nil, err
	}
	return append(r.FillBytes(make([]byte, 32)), v.FillBytes(make([]byte, 32))...), nil
}

// Keys is orchestrator.Signer.
func (s signer) Keys(context.Context) ([]orchestrator.VerificationKey, error) {
	return []orchestrator.VerificationKey{{ID: "sim", Public: &s.key.PublicKey}}, nil
}

// noise is no secret, so that signatures can be had again.
type noise struct{}

// Read is io.Reader.
func (noise) Read(p []byte) (int, error) {
	sum := sha256.Sum256([]byte(hex.EncodeToString(p)))
	return copy(p, bytes.Repeat(sum[:], len(p)/len(sum)+1)), nil
}
