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
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// base is what all parts of a world share: its random numbers, its time, its faults, and the
// processes of Sortie.
type base struct {
	seed   uint64
	dir    string
	random *rand.Rand
	plan   plan
	time   *timeline
	log    *slog.Logger
	trace  *bytes.Buffer
	// watch receives what happens in the processes.
	watch watch

	// runner creates the machines.
	runner  port.Runner
	buckets *buckets
	signer  port.Signer
	wakeUps *schedules
	hooks   *hooks
	config  runs.Config
	// longest limits the durations in the world's policies. requests is the number of runs that
	// clients submit.
	longest  time.Duration
	requests int

	home    home
	process *process
	system  *app.System
	// starts counts the starts of the process.
	starts int
	// healed means that all faults have ended. settling means that faults have ended and the
	// remaining events are delivered.
	healed, settling bool

	records   records
	positions map[string]*position
	// tokens has the generations of the executions' tokens.
	tokens map[string]int
	// tasks have slots of replicas. They are not in the store.
	tasks []*replicaTask
	// outages has the end of each kind of outage. upSince is the end of the last outage of any
	// kind. outageTime is their total length.
	outages    [outageKinds]time.Time
	upSince    time.Time
	outageTime time.Duration
	// noticedUpSince is the end of the last outage during which no heartbeat was received and
	// that sweeps could notice.
	noticedUpSince time.Time
	// lag limits the age of a read that may be stale.
	lag      time.Duration
	problems []string
	// broken is an error of the simulation itself.
	broken error
}

// watch receives what happens in the processes of Sortie. All methods are called in the task
// that causes it.
type watch interface {
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

// start is the virtual time at which every simulation starts.
var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// newBase returns a base without drawn settings. Files are in dir.
func newBase(seed uint64, dir string) *base {
	w := &base{
		seed: seed, dir: dir, random: rand.New(rand.NewPCG(seed, 0x736f72746965)), //nolint:gosec // the seed must determine everything
		time: &timeline{now: start, parked: map[*task]bool{}}, trace: &bytes.Buffer{},
		records:   records{touched: map[run.Ref]bool{}, byID: map[string]*run.Run{}},
		positions: map[string]*position{}, tokens: map[string]int{}, signer: fake.NewSigner(nil, "simulation"),
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
	w.buckets = newBuckets(w)
	w.wakeUps = &schedules{w: w, wakeUps: map[job.Ref]int{}}
	w.hooks = newHooks(w)
	return w
}

// chance draws whether something of probability p happens. It is false once all faults have
// ended.
func (w *base) chance(p float64) bool { return p > 0 && !w.isHealed() && w.random.Float64() < p }

// upTo draws a duration up to most, at least 1 ms.
func (w *base) upTo(most time.Duration) time.Duration {
	return time.Duration(w.random.Int64N(int64(most))) + time.Millisecond
}

// hex draws n bytes in hexadecimal digits.
func (w *base) hex(n int) string {
	var text strings.Builder
	for text.Len() < 2*n {
		fmt.Fprintf(&text, "%016x", w.random.Uint64())
	}
	return text.String()[:2*n]
}

// note adds a line to the trace.
func (w *base) note(format string, args ...any) {
	w.log.Info("world: " + fmt.Sprintf(format, args...))
}

// maxProblems limits the problems of one simulation.
const maxProblems = 3

// fail records a violated invariant.
func (w *base) fail(format string, args ...any) {
	problem := fmt.Sprintf(format, args...)
	if !slices.Contains(w.problems, problem) && len(w.problems) < maxProblems {
		w.problems = append(w.problems, problem)
		w.log.Error("failed: " + problem)
	}
}
