package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Config configures one world.
type Config struct {
	// Seed determines the faults and the workloads.
	Seed uint64
	// Kills is the number of faults.
	Kills int
	// Folder is an empty folder for the data.
	Folder string
	Clock  clock.Clock
	// Foreign is the command of a worker that is written from the text of the worker contract,
	// with absolute paths. It is optional.
	Foreign []string
	// Baseline is the result of NewBaseline.
	Baseline Baseline
	// Timeout limits the time from the last fault to the end of all runs. It only serves to
	// detect hangs.
	Timeout time.Duration
}

// Outcome is the result of one world.
type Outcome struct {
	// Problems are the violated guarantees.
	Problems []string
	// Injections, Runs and Attempts count the faults, the accepted runs and their attempts.
	// Repeats counts the repeated POSTs.
	Injections, Runs, Attempts, Repeats int
	// Trace is the log of the faults. Log is the log of the stack.
	Trace, Log string
}

// world is one data folder with its stack, clients and machines.
type world struct {
	config      Config
	folder      string
	workloads   []workload
	source      *httptest.Server
	http        *http.Client
	started     time.Time
	injections  []injection
	log         stacktest.Log
	allInjected chan struct{} // closed after the last fault
	server      *server
	clients     sync.WaitGroup
	receivers   []*receiver

	mu       sync.Mutex
	outcome  Outcome
	trace    strings.Builder
	accepted map[string]workload // by task
	hits     map[string]int      // injections per task that may cost an attempt
	cloned   map[string]bool     // tasks with a cloned worker
	// cancelled has the answers to cancel requests, by task.
	cancelled map[string]contract.CancelAnswer
	// stops is the number of times that the stack was stopped or killed.
	stops int
}

// clients is the number of concurrent clients. machines is the limit of the pool, which is
// lower so that runs queue.
const (
	clients  = 8
	machines = 4
)

// Run runs one world to its end.
func Run(ctx context.Context, c Config) (Outcome, error) {
	w, err := newWorld(c)
	if err != nil {
		return Outcome{}, err
	}
	defer w.close()
	if err := w.run(ctx); err != nil {
		w.fail("%v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcome.Trace, w.outcome.Log = w.trace.String(), w.log.String()
	return w.outcome, nil
}

func newWorld(c Config) (*world, error) {
	folder, err := filepath.EvalSymlinks(c.Folder)
	if err != nil {
		return nil, fmt.Errorf("cannot find the folder: %w", err)
	}
	catalog, err := newCatalog(c.Clock, len(c.Foreign) > 0)
	if err != nil {
		return nil, err
	}
	w := &world{
		config: c, folder: folder, workloads: catalog.workloads, started: c.Clock.Now(), http: &http.Client{Transport: &http.Transport{}},
		allInjected: make(chan struct{}), accepted: map[string]workload{}, hits: map[string]int{},
		cloned: map[string]bool{}, cancelled: map[string]contract.CancelAnswer{},
	}
	w.injections = plan(w.random(0), c.Kills)
	if c.Seed%2 == 0 {
		w.source = httptest.NewServer(catalog.source)
	} else {
		w.workloads = catalog.local() // the stack's own source restarts with the stack
	}
	w.server = newServer(w)
	return w, nil
}

// random returns the random source of one concurrent actor.
func (w *world) random(who uint64) *rand.Rand { return rand.New(rand.NewPCG(w.config.Seed, who)) } //nolint:gosec // a seed is wanted

func (w *world) close() {
	w.server.kill()
	for _, r := range w.receivers {
		r.server.CloseClientConnections()
		r.server.Close()
	}
	if w.source != nil {
		w.source.Close()
	}
	w.http.CloseIdleConnections()
}

// run injects the faults while clients work. It then waits until all runs end and inspects the
// remains.
func (w *world) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := w.startFirst(ctx); err != nil {
		return err
	}
	w.startReceivers(ctx)
	scheduled := make(chan struct{})
	w.clients.Go(func() { w.startJobs(ctx); close(scheduled) })
	for i := range uint64(clients) {
		w.clients.Go(func() { w.client(ctx, i) })
	}
	injected := w.injectAll(ctx)
	close(w.allInjected)
	if injected == nil {
		injected = w.server.up(ctx)
	}
	over, stop := w.config.Clock.NewTimer(w.config.Timeout)
	defer stop()
	ended := make(chan struct{})
	var delivered []string // the events of all runs
	go func() {
		defer close(ended)
		<-scheduled
		schedules := w.endSchedules(ctx) // while the clients finish, which may take long
		w.clients.Wait()
		if ctx.Err() == nil {
			w.awaitJobs(ctx, schedules)
		}
		if ctx.Err() == nil {
			delivered = w.awaitDeliveries(ctx)
		}
	}()
	if injected != nil {
		cancel()
	}
	select {
	case <-ended:
	case <-over:
		cancel()
		<-ended
		return fmt.Errorf("some runs have not ended %s after the last fault", w.config.Timeout)
	}
	if injected != nil {
		return injected
	}
	return w.inspect(ctx, delivered)
}

// wait waits for d. It returns false if the context ends first.
func (w *world) wait(ctx context.Context, d time.Duration) bool {
	return clock.Sleep(ctx, w.config.Clock, d) == nil
}

// fail records a violated guarantee.
func (w *world) fail(format string, args ...any) {
	w.note("FAIL: "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcome.Problems = append(w.outcome.Problems, fmt.Sprintf(format, args...))
}

func (w *world) note(format string, args ...any) {
	now := w.config.Clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(&w.trace, "%s %8.3fs %s\n", now.Format("15:04:05.000"), now.Sub(w.started).Seconds(), fmt.Sprintf(format, args...))
}
