package flymachines

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sortie-dev/sortie/local/twin/flymachines/durable"
)

const appsFile = "apps.json"

// load finds what an earlier server left, and goes on with it.
func (s *Server) load() error {
	if err := s.loadApps(); err != nil {
		return err
	}
	folder := filepath.Join(s.cfg.Dir, "machines")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("cannot read the machines' folder: %w", err)
	}
	var alive []*machine
	for _, entry := range entries {
		m, err := s.loadMachine(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		s.machines[m.rec.ID] = m
		if m.rec.alive() {
			s.names[m.rec.App+"/"+m.rec.Name] = m.rec.ID
			alive = append(alive, m)
		} else {
			s.gone = append(s.gone, goneMachine{id: m.rec.ID, dir: m.dir, at: m.rec.GoneAt})
		}
	}
	slices.SortFunc(s.gone, func(a, b goneMachine) int { return a.at.Compare(b.at) })
	for i := range s.gone { // nobody could read them while no server was there
		s.gone[i].at = s.cfg.Clock.Now()
	}
	for _, dir := range s.forgetLocked() {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("cannot remove the folder of a machine that is gone: %w", err)
		}
	}
	for _, m := range alive {
		if !m.rec.pending(m.manifest) {
			continue
		}
		if err := s.live(m); err != nil {
			return err
		}
	}
	return nil
}

// loadMachine reads one machine. A folder without a record was about to become
// one and was never told of; a damaged record is what a loss of power leaves of
// a machine whose program ended with it. Both are removed.
func (s *Server) loadMachine(dir string) (*machine, error) {
	var rec record
	err := durable.Read(filepath.Join(dir, recordFile), &rec)
	if errors.Is(err, durable.ErrDamaged) {
		s.log.Error("a machine's record is damaged; the machine is forgotten", "folder", filepath.Base(dir), "error", err)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrDamaged) {
		if err := os.RemoveAll(dir); err != nil {
			return nil, fmt.Errorf("cannot remove half a machine: %w", err)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the machine in %s: %w", dir, err)
	}
	manifest, err := parseManifest(rec.Config)
	if err != nil {
		return nil, fmt.Errorf("cannot read the machine in %s: %w", dir, err)
	}
	// The other records' halves may be a living supervisor's.
	if err := os.RemoveAll(filepath.Join(dir, recordFile+durable.Suffix)); err != nil {
		return nil, fmt.Errorf("cannot remove a half-written file: %w", err)
	}
	m := newMachine(dir, rec, manifest)
	m.inherited = true
	if !rec.alive() {
		if err := m.clear(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// clear removes what only a running program needs.
func (m *machine) clear() error {
	var failed []error
	for _, name := range []string{"root", "tmp", "supervisor.err", "lock", "start.json", "exit.json"} {
		failed = append(failed, os.RemoveAll(filepath.Join(m.dir, name)), os.RemoveAll(filepath.Join(m.dir, name+durable.Suffix)))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("cannot clear a machine's folder: %w", err)
	}
	return nil
}

func (s *Server) loadApps() error {
	for _, app := range s.cfg.Apps {
		s.apps[app] = true
	}
	var made []string
	err := durable.Read(filepath.Join(s.cfg.Dir, appsFile), &made)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read the apps: %w", err)
	}
	for _, app := range made {
		s.apps[app] = true
	}
	return nil
}
