package flymachines

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/durable"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/output"
)

// Server implements the Machines API and runs the machines. It is an
// http.Handler and safe for concurrent use.
type Server struct {
	cfg    Config
	log    *slog.Logger
	lock   *durable.Lock
	routes http.Handler
	limits *limits
	// digests caches the digests of the machines' programs.
	digests digests

	changing sync.WaitGroup // one per machine with a pending change
	closing  chan struct{}  // closed when Stop begins
	stopNow  chan struct{}  // closed when Stop no longer waits

	mu       sync.Mutex
	closed   bool
	apps     map[string]bool
	machines map[string]*machine // by id
	names    map[string]string   // app/name of the live machines: id
	gone     []goneMachine       // in the order of their end
	faults   *faults.Injector
	entropy  io.Reader
}

// errClosing is the answer to a request that comes after Stop.
var errClosing = errors.New("the server is shutting down")

// Open locks the folder, restores the machines that an earlier server left
// there, and resumes them. The caller ends the server with Stop.
func Open(cfg Config) (*Server, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	injector, err := faults.New(cfg.Faults)
	if err != nil {
		return nil, fmt.Errorf("cannot serve machines: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(cfg.Dir, "machines"), 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the machines' folder: %w", err)
	}
	lock, err := cfg.takeFolder()
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, log: cfg.Log, lock: lock, limits: newLimits(),
		closing: make(chan struct{}), stopNow: make(chan struct{}),
		apps: map[string]bool{}, machines: map[string]*machine{}, names: map[string]string{},
		faults: injector, entropy: ulid.Monotonic(cfg.Random, 0),
	}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	s.routes = s.newRoutes()
	return s, nil
}

// takeFolder locks the folder. It retries for a second, because a supervisor that was forked
// while its server was killed may hold the lock for a moment.
func (c Config) takeFolder() (*durable.Lock, error) {
	const tries, pause = 20, 50 * time.Millisecond
	for try := 1; ; try++ {
		lock, err := durable.TryLock(filepath.Join(c.Dir, "server.lock"))
		if err == nil || !errors.Is(err, durable.ErrLocked) {
			return lock, err
		}
		if try == tries {
			return nil, fmt.Errorf("another server owns the machines' folder %s: %w", c.Dir, err)
		}
		again, stop := c.Clock.NewTimer(pause)
		<-again
		stop()
	}
}

// Stop ends all machines and returns when no program runs. Each gets SIGTERM, and SIGKILL after
// its grace period or when ctx ends. Exit events say that the stop was requested. Creations are
// refused; reads are answered until the caller stops serving. A second Stop only waits.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	all := make([]*machine, 0, len(s.machines))
	for _, m := range s.machines {
		all = append(all, m)
	}
	s.mu.Unlock()
	if !first {
		s.changing.Wait()
		return nil
	}
	var failed []error
	for _, m := range all {
		if err := s.stopForShutdown(m); err != nil {
			failed = append(failed, err)
		}
	}
	close(s.closing)
	ended := make(chan struct{})
	go func() { s.changing.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		close(s.stopNow)
		<-ended
	}
	return errors.Join(append(failed, s.lock.Unlock())...)
}

// SetFaults replaces the fault plan. Machines keep the faults with which they
// were created.
func (s *Server) SetFaults(plan faults.Plan) error {
	injector, err := faults.New(plan)
	if err != nil {
		return fmt.Errorf("cannot use the faults: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = injector
	return nil
}

// Faults returns the current fault plan.
func (s *Server) Faults() faults.Plan { return s.injector().Plan() }

func (s *Server) injector() *faults.Injector {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

// ErrUnknown is returned for a machine that never existed or is no longer readable.
var ErrUnknown = errors.New("unknown machine")

// Logs returns a machine's stored standard output and error, interleaved as
// they were written; see package output. It returns ErrUnknown for an unknown
// id.
func (s *Server) Logs(id string) ([]byte, error) { return s.logsOf(id, "") }

// DropOutput deletes the output of a destroyed machine. It does nothing for any other machine.
func (s *Server) DropOutput(id string) error {
	s.mu.Lock()
	m := s.machines[id]
	s.mu.Unlock()
	if m == nil {
		return nil
	}
	if rec, _ := m.snapshot(); rec.alive() {
		return nil
	}
	return errors.Join(output.Remove(m.dir), os.RemoveAll(filepath.Join(m.dir, earlierDir)))
}

// logsOf is Logs for a version of the machine; empty means the current one.
func (s *Server) logsOf(id, version string) ([]byte, error) {
	s.mu.Lock()
	m := s.machines[id]
	s.mu.Unlock()
	if m == nil {
		return nil, ErrUnknown
	}
	return output.Read(m.outputOf(version))
}

// newID returns a machine id: 14 hex digits, as Fly's.
func (s *Server) newID() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var bytes [7]byte
	if _, err := io.ReadFull(s.cfg.Random, bytes[:]); err != nil {
		return "", fmt.Errorf("cannot generate an id: %w", err)
	}
	return hex.EncodeToString(bytes[:]), nil
}

// newULID returns the id of an event, a version or a request.
func (s *Server) newULID(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, err := ulid.New(ulid.Timestamp(now), s.entropy)
	if err != nil { // the entropy of this millisecond is used up, or Random fails
		return ulid.ULID{}.String()
	}
	return id.String()
}

// event returns an event at a time.
func (s *Server) event(kind, status, source string, at time.Time) event {
	return event{ID: s.newULID(at), Type: kind, Status: status, Source: source, Timestamp: at.UnixMilli()}
}
