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

	"github.com/sortie-dev/sortie/local/twin/stacktest"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/contract"
)

// Config says what to play.
type Config struct {
	// Seed decides the blows and what is ordered.
	Seed uint64
	// Kills is how many blows there are.
	Kills int
	// Folder is an empty one, for the data.
	Folder string
	Clock  clock.Clock
	// Foreign is the command of a worker that is written from the worker
	// contract's text alone, in absolute paths. Without one nobody orders it.
	Foreign []string
	// Peace is what Peaceful gave.
	Baseline Baseline
	// Patience is how long the end of everything is awaited after the last
	// blow; it is only there to tell a hang from a slow machine.
	Patience time.Duration
}

// Outcome tells what happened.
type Outcome struct {
	// Problems are broken promises.
	Problems []string
	// Blows, Runs and Attempts count what was struck, accepted and tried.
	// Repeats counts POSTs that had to be made again.
	Injections, Runs, Attempts, Repeats int
	// Story is the log of blows, Log that of the stack.
	Story, Log string
}

// world is one data folder, its stack, and everybody around it.
type world struct {
	config     Config
	folder     string
	orders     []order
	source     *httptest.Server
	http       *http.Client
	begun      time.Time
	injections []injection
	log        stacktest.Log
	injected   chan struct{} // closed after the last blow
	server     *server
	clients    sync.WaitGroup

	mu       sync.Mutex
	outcome  Outcome
	story    strings.Builder
	accepted map[string]order // by task
	hits     map[string]int   // a task's machines that were struck
	cloned   map[string]bool  // tasks that had a worker too many
	// cancelled are the tasks whose cancel was answered, and how.
	cancelled map[string]contract.CancelAnswer
	stops     int
}

// clients are at work at the same time, and so are fewer machines.
const (
	clients  = 8
	machines = 4
)

// Run plays one world to its end.
func Run(ctx context.Context, c Config) (Outcome, error) {
	w, err := newWorld(c)
	if err != nil {
		return Outcome{}, err
	}
	defer w.close()
	if err := w.play(ctx); err != nil {
		w.broken("%v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcome.Story, w.outcome.Log = w.story.String(), w.log.String()
	return w.outcome, nil
}

func newWorld(c Config) (*world, error) {
	folder, err := filepath.EvalSymlinks(c.Folder)
	if err != nil {
		return nil, fmt.Errorf("cannot find the folder: %w", err)
	}
	offers, err := newMarket(c.Clock, len(c.Foreign) > 0)
	if err != nil {
		return nil, err
	}
	w := &world{
		config: c, folder: folder, orders: offers.orders, begun: c.Clock.Now(), http: &http.Client{Transport: &http.Transport{}},
		injected: make(chan struct{}), accepted: map[string]order{}, hits: map[string]int{},
		cloned: map[string]bool{}, cancelled: map[string]contract.CancelAnswer{},
	}
	w.injections = plan(w.random(0), c.Kills)
	if c.Seed%2 == 0 {
		w.source = httptest.NewServer(offers.source)
	} else {
		w.orders = offers.local() // the source dies with the stack
	}
	w.server = newServer(w)
	return w, nil
}

// random gives a source of chance for one of those who act at the same time.
func (w *world) random(who uint64) *rand.Rand { return rand.New(rand.NewPCG(w.config.Seed, who)) } //nolint:gosec // a seed is wanted

func (w *world) close() {
	w.server.kill()
	if w.source != nil {
		w.source.Close()
	}
	w.http.CloseIdleConnections()
}

// play strikes while clients are at work, then lets everything end and looks at
// what is left.
func (w *world) play(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := w.birth(ctx); err != nil {
		return err
	}
	for i := range uint64(clients) {
		w.clients.Go(func() { w.client(ctx, i) })
	}
	injected := w.strikeAll(ctx)
	close(w.injected)
	if injected == nil {
		injected = w.server.up(ctx)
	}
	over, stop := w.config.Clock.NewTimer(w.config.Patience)
	defer stop()
	ended := make(chan struct{})
	go func() { w.clients.Wait(); close(ended) }()
	if injected != nil {
		cancel()
	}
	select {
	case <-ended:
	case <-over:
		cancel()
		<-ended
		return fmt.Errorf("some runs have not ended %s after the last blow", w.config.Patience)
	}
	if injected != nil {
		return injected
	}
	return w.inspect(ctx)
}

// wait lets time pass; false where the context ends first.
func (w *world) wait(ctx context.Context, d time.Duration) bool {
	return clock.Sleep(ctx, w.config.Clock, d) == nil
}

// broken notes a promise that was not kept, note what happened.
func (w *world) broken(format string, args ...any) {
	w.note("BROKEN: "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcome.Problems = append(w.outcome.Problems, fmt.Sprintf(format, args...))
}

func (w *world) note(format string, args ...any) {
	now := w.config.Clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(&w.story, "%s %8.3fs %s\n", now.Format("15:04:05.000"), now.Sub(w.begun).Seconds(), fmt.Sprintf(format, args...))
}
