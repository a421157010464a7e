package flymachines

import (
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/local/twin/flymachines/environment"
	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/durable"
)

const recordFile = "machine.json"

// machine is a machine of this server. Its record changes only through commit.
type machine struct {
	dir string
	// wakeUp wakes the machine's goroutine.
	wakeUp chan struct{}
	// inherited means that the record was found in the folder. An earlier server may have
	// started the machine; this one does not.
	inherited bool

	mu       sync.Mutex
	rec      record
	manifest *manifest
	proc     Process       // nil while no program runs
	changed  chan struct{} // closed and replaced with every change
	absent   bool          // its creation failed
	living   bool          // the machine's goroutine runs
}

func newMachine(dir string, rec record, m *manifest) *machine {
	return &machine{
		dir: dir, rec: rec, manifest: m,
		wakeUp: make(chan struct{}, 1), changed: make(chan struct{}),
	}
}

// snapshot returns the record, and a channel that is closed when it changes.
func (m *machine) snapshot() (record, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rec, m.changed
}

// manifestNow returns the current config.
func (m *machine) manifestNow() *manifest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.manifest
}

// commit changes the record on disk and then in memory. If change returns an
// error, nothing changes.
func (m *machine) commit(now time.Time, change func(*record) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.commitLocked(now, change)
}

func (m *machine) commitLocked(now time.Time, change func(*record) error) error {
	next := m.rec
	if err := change(&next); err != nil {
		return err
	}
	next.UpdatedAt = now
	if err := durable.Append(filepath.Join(m.dir, recordFile), next); err != nil {
		return fmt.Errorf("cannot store the machine's record: %w", err)
	}
	m.show(next)
	return nil
}

// note commits a change that has already happened, even if the record cannot be written. A
// record that was not written, or lost with the power, is restored from the supervisor's
// records. A loss of power also ends the program. The record of a destroyed machine replaces the
// earlier ones, which have secrets.
func (m *machine) note(now time.Time, change func(*record)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.rec
	change(&next)
	next.UpdatedAt = now
	store := durable.Append
	if !next.alive() {
		store = durable.Compact
	}
	err := store(filepath.Join(m.dir, recordFile), next)
	m.show(next)
	if err != nil {
		return fmt.Errorf("cannot record what happened to machine %s: %w", next.ID, err)
	}
	return nil
}

// show replaces the record in memory and notifies all that wait for a change.
func (m *machine) show(rec record) {
	m.rec = rec
	close(m.changed)
	m.changed = make(chan struct{})
}

// wake wakes the machine's goroutine, which then reads the requested action.
func (m *machine) wake() {
	select {
	case m.wakeUp <- struct{}{}:
	default: // already notified
	}
}

// signal sends a signal to the program if one runs.
func (m *machine) signal(s syscall.Signal) error {
	m.mu.Lock()
	proc := m.proc
	m.mu.Unlock()
	if proc == nil {
		return nil
	}
	return proc.Signal(s)
}

// subject returns the machine as a subject of faults.
func (m *machine) subject() faults.Subject {
	m.mu.Lock()
	defer m.mu.Unlock()
	return faults.Subject{
		App: m.rec.App, Name: m.rec.Name, Region: m.rec.Region, Metadata: m.manifest.Metadata, Env: m.manifest.Env,
	}
}

// program returns the program of the machine's current start.
func (s *Server) program(m *machine) Program {
	rec, _ := m.snapshot()
	manifest := m.manifestNow()
	p := Program{
		MachineID: rec.ID, Image: manifest.Image, Start: rec.Starts, Argv: rec.Argv, Dir: m.dir,
		Root: filepath.Join(m.dir, "root"), Tmp: filepath.Join(m.dir, "tmp"),
		Files: manifest.files, OutputLimit: s.cfg.OutputLimit,
	}
	where := environment.Placement{
		App: rec.App, MachineID: rec.ID, PrivateIP: s.cfg.privateIP(rec.ID), Region: rec.Region, Image: manifest.Image, Version: rec.Version,
		ProcessGroup: manifest.processGroup(), MemoryMB: manifest.memoryMB(), Path: s.cfg.Path, Root: p.Root, Tmp: p.Tmp,
	}
	p.Env = where.Environment(manifest.Env)
	if manifest.wrapped(s.cfg) {
		p.Wrapper = &Wrapper{Flags: s.cfg.WrapperFlags, Env: where.Own()}
	}
	return p
}
