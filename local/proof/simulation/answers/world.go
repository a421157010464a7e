package answers

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/routing"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// The names of the only tenant, pool and model.
const (
	tenant  = "local"
	poolID  = "pool0"
	modelID = "mock"
)

// bubble is the clock of a synctest bubble.
var bubble clock.System

// maxProblems limits the problems of one world.
const maxProblems = 3

// world is the state of one simulation. It is safe for concurrent use.
type world struct {
	seed uint64
	plan plan
	home home
	raw  raw
	// start is the begin of the world. faultsEnd is the end of faults. bound limits the
	// duration of a task after that.
	start, faultsEnd time.Time
	bound            time.Duration
	// arrivals is the time within which clients start.
	arrivals time.Duration
	settle   func()
	ctx      context.Context
	stop     context.CancelFunc

	price catalog.Price
	place platform.EnginePlace
	// offer is that of the pool by another tenant; nil without one.
	offer *platform.Offer
	// spare is the fallback of the pool; nil without one.
	spare *spare
	// objects is the number of objects in the bucket before the first task.
	objects int
	// days is how long answers are stored; 0 is as long as their records.
	days int
	// routes are the other ways of tasks.
	routes   routes
	replicas map[string]*replica
	outputs  *fake.Outputs
	// image is the id of an artifact; empty without one.
	image  string
	hosts  []*host
	limits map[string]limits
	// grants are the limits of the keys of clients, by project.
	grants map[string]access.Grant
	// holders are the runs with a slot of the pool at the last check.
	holders []run.Run
	clients sync.WaitGroup
	rest    sync.WaitGroup

	mu    sync.Mutex
	rolls map[string]uint64
	tasks map[string]*task // by idempotency key
	// generating is the total time of the requests to engines, by idempotency key.
	generating map[string]time.Duration
	asking     map[asking]int
	problems   []string
	trace      bytes.Buffer
	log        *slog.Logger
	outcome    Outcome
	changed    bool
}

// Outcome is the result of a simulation.
type Outcome struct {
	// Problems are the violated invariants. Trace is the log.
	Problems []string
	Trace    string
	// Tasks counts the accepted tasks, Refused the refused ones, Attempts the attempts of all
	// tasks, and Events the events received on Connections.
	Tasks, Refused, Attempts, Events, Connections int
	// Tokens is the number of tokens that the accounts have spent. Cancels counts the
	// acknowledged cancels, Kills the killed processes, Requests the requests to engines, and
	// Kept those that an engine kept after they were closed.
	Tokens                         int64
	Cancels, Kills, Requests, Kept int
	// Fallbacks counts the tasks that have used the fallback of their pool.
	Fallbacks int
	// Splits counts the tasks that the model of the fallback serves by a split, Long those whose prompt
	// is too long for their model, and Copies the ends of copies.
	Splits, Long int
	Copies       map[routing.ShadowOutcome]int
	// Expired counts the tasks whose answers were deleted after the days of the tenant.
	Expired int
	// Calls counts the tasks whose answer is a whole call of a tool, and Reasoned those that have
	// ended with reasoning.
	Calls, Reasoned int
	// Several counts the answers beside the first one of complete tasks, Large the complete tasks with a
	// large request, and Deleted those whose answer was deleted.
	Several, Large, Deleted int
	// Took is simulated time.
	Took time.Duration
	// Ends counts the tasks by final state.
	Ends map[run.State]int
}

// Run runs the simulation of a seed in a bubble of testing/synctest. settle is the bubble's
// synctest.Wait. It returns an error if the simulation itself fails; Outcome.Problems has its
// findings.
func Run(ctx context.Context, seed uint64, settle func()) (o Outcome, err error) {
	w := &world{
		seed: seed, settle: settle, rolls: map[string]uint64{}, tasks: map[string]*task{}, replicas: map[string]*replica{}, limits: map[string]limits{}, generating: map[string]time.Duration{}, asking: map[asking]int{},
		start: bubble.Now(), outcome: Outcome{Ends: map[run.State]int{}, Copies: map[routing.ShadowOutcome]int{}},
	}
	w.log = slog.New(slog.NewTextHandler(lockedTrace{w}, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Duration("at", bubble.Now().Sub(w.start))
		}
		return a
	}}))
	w.ctx, w.stop = context.WithCancel(ctx)
	defer w.stop()
	w.outputs = fake.NewOutputs(bubble, w.outputFates)
	w.draw()
	if w.home, err = w.newHome(ctx); err != nil {
		return Outcome{}, err
	}
	defer func() {
		if closed := w.home.close(); err == nil {
			err = closed
		}
	}()
	if err := w.begin(ctx); err != nil {
		return Outcome{}, err
	}
	w.play()
	return w.result(), nil
}

// lockedTrace is the writer of the trace for a logger.
type lockedTrace struct{ w *world }

// Write implements io.Writer.
func (t lockedTrace) Write(p []byte) (int, error) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	return t.w.trace.Write(p)
}

// roll returns random numbers. They depend on the seed, the key and the number of earlier calls
// with this key, but not on concurrent events.
func (w *world) roll(key string) *rand.Rand {
	w.mu.Lock()
	n := w.rolls[key]
	w.rolls[key]++
	w.mu.Unlock()
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%d %s %d", w.seed, key, n)
	return rand.New(rand.NewPCG(hash.Sum64(), w.seed)) //nolint:gosec // the seed must determine everything
}

func chance(r *rand.Rand, p float64) bool { return p > 0 && r.Float64() < p }

func upTo(r *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(most))) + time.Microsecond
}

// faulty reports whether faults have not ended yet.
func (w *world) faulty() bool { return bubble.Now().Before(w.faultsEnd) }

func (w *world) note(format string, args ...any) {
	w.log.Info("world: " + fmt.Sprintf(format, args...))
}

// fail records a violated invariant.
func (w *world) fail(format string, args ...any) {
	problem := fmt.Sprintf(format, args...)
	w.log.Error("failed: " + problem)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.problems, problem) && len(w.problems) < maxProblems {
		w.problems = append(w.problems, problem)
	}
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.problems) > 0
}

// count changes the outcome.
func (w *world) count(change func(*Outcome)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.outcome)
}

// sleep waits for d. It returns false if the world ends first.
func (w *world) sleep(d time.Duration) bool {
	return clock.Sleep(w.ctx, bubble, d) == nil
}

func (w *world) result() Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcome.Problems, w.outcome.Trace, w.outcome.Took = w.problems, w.trace.String(), bubble.Now().Sub(w.start)
	return w.outcome
}

func (w *world) deployed() bool { return w.seed%2 == 0 }

// keyed returns the identity of a client with a token in a project.
func (w *world) keyed(project string) port.Identity {
	who := identity(project)
	who.Key, who.Grant = "key-"+project, w.grants[project]
	return who
}

// identity returns the identity of a client in a project.
func identity(project string) port.Identity {
	return port.Identity{Tenant: tenant, Workspace: project, Subject: "client"}
}
