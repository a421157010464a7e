package harness

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/twin/virtual"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/app/sensors"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Base is what all parts of a world share: its random numbers, its time, its faults, and the
// processes of Sortie.
type Base struct {
	Seed   uint64
	dir    string
	Random *rand.Rand
	Plan   plan
	Time   *timeline
	Log    *slog.Logger
	Trace  *bytes.Buffer
	// Watch receives what happens in the processes.
	Watch Watch

	// Runner creates the machines.
	Runner  port.Runner
	Buckets *buckets
	signer  port.Signer
	wakeUps *schedules
	Hooks   *hooks
	// Items are those of the sensors; nil in a world without sensors.
	Items  *Items
	polls  *sensors.Polls
	Config runs.Config
	// Longest limits the durations in the world's policies. requests is the number of runs that
	// clients submit.
	Longest  time.Duration
	Requests int

	Home    home
	Process *process
	System  *app.System
	// Starts counts the starts of the process.
	Starts int
	// Injected counts the faults by kind.
	Injected map[string]int
	// Healed means that all faults have ended. settling means that faults have ended and the
	// remaining events are delivered.
	Healed, Settling bool

	Records   records
	Positions map[string]*Position
	// Tokens has the generations of the executions' tokens.
	Tokens map[string]int
	// Tasks have slots of replicas. They are not in the store.
	Tasks []*ReplicaTask
	// Outages has the end of each kind of outage. upSince is the end of the last outage of any
	// kind. outageTime is their total length.
	Outages    [OutageKinds]time.Time
	UpSince    time.Time
	OutageTime time.Duration
	// OutagesFor is how long outages may begin; 0 is twice Longest.
	OutagesFor time.Duration
	// NoticedUpSince is the end of the last outage during which no heartbeat was received and
	// that sweeps could notice.
	NoticedUpSince time.Time
	// Lag limits the age of a read that may be stale.
	Lag      time.Duration
	Problems []string
	// Broken is an error of the simulation itself.
	Broken error
}

// Watch receives what happens in the processes of Sortie. All methods are called in the task
// that causes it.
type Watch interface {
	// Started follows each start of a process.
	Started()
	// Written follows a write of the store, which may have failed, with its notes.
	Written(err error, notes ...port.Note)
	// TouchJob and TouchWarm report records that may have changed. SetsWritten reports a write
	// of resources.
	TouchJob(id string)
	TouchWarm(m platform.WarmMachine)
	SetsWritten(err error, saved, removed []port.Resource)
	// DuringCall is called during a call for a task. A client may act at that moment.
	DuringCall(task string)
	// HeartbeatTimeout reports that an execution stops waiting for heartbeats.
	HeartbeatTimeout(ref run.Ref)
	// EngineOutage reports that an outage of the container engine begins.
	EngineOutage()
}

// Start is the virtual time at which every simulation starts.
var Start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// NewBase returns a base without drawn settings. Files are in dir.
func NewBase(seed uint64, dir string) *Base {
	w := &Base{
		Seed: seed, dir: dir, Random: rand.New(rand.NewPCG(seed, 0x736f72746965)), //nolint:gosec // the seed must determine everything
		Time: virtual.New[*invocation](Start, ProcessCrash{}), Trace: &bytes.Buffer{},
		Records:   records{touched: map[run.Ref]bool{}, ByID: map[string]*run.Run{}},
		Positions: map[string]*Position{}, Tokens: map[string]int{}, Injected: map[string]int{}, signer: fake.NewSigner(nil, "simulation"),
	}
	w.Log = slog.New(slog.NewTextHandler(w.Trace, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case "stack": // stacks contain addresses, which the seed does not determine
			return slog.Attr{}
		case slog.TimeKey:
			return slog.Duration("at", w.Time.Now.Sub(Start))
		}
		return a
	}}))
	w.Buckets = newBuckets(w)
	w.wakeUps = &schedules{W: w, wakeUps: map[job.Ref]int{}}
	w.Hooks = newHooks(w)
	return w
}

// Chance draws whether something of probability p happens. It is false once all faults have
// ended.
func (w *Base) Chance(p float64) bool { return p > 0 && !w.IsHealed() && w.Random.Float64() < p }

// Injects is Chance for a fault, and counts it.
func (w *Base) Injects(fault string, p float64) bool {
	if !w.Chance(p) {
		return false
	}
	w.Injected[fault]++
	return true
}

// UpTo draws a duration up to most, at least 1 ms.
func (w *Base) UpTo(most time.Duration) time.Duration {
	return time.Duration(w.Random.Int64N(int64(most))) + time.Millisecond
}

// Hex draws n bytes in hexadecimal digits.
func (w *Base) Hex(n int) string {
	var text strings.Builder
	for text.Len() < 2*n {
		fmt.Fprintf(&text, "%016x", w.Random.Uint64())
	}
	return text.String()[:2*n]
}

// Note adds a line to the trace.
func (w *Base) Note(format string, args ...any) {
	w.Log.Info("world: " + fmt.Sprintf(format, args...))
}

// maxProblems limits the problems of one simulation.
const maxProblems = 3

// Fail records a violated invariant.
func (w *Base) Fail(format string, args ...any) {
	problem := fmt.Sprintf(format, args...)
	if !slices.Contains(w.Problems, problem) && len(w.Problems) < maxProblems {
		w.Problems = append(w.Problems, problem)
		w.Log.Error("failed: " + problem)
	}
}
