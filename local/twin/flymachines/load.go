package flymachines

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/durable"
)

const appsFile = "apps.json"

// load restores the machines of an earlier server and continues them.
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
		if !entry.IsDir() {
			return fmt.Errorf("cannot use %s: it is not a folder", filepath.Join(folder, entry.Name()))
		}
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
	for i := range s.gone { // time without a server does not count
		s.gone[i].at = s.cfg.Clock.Now()
	}
	for _, dir := range s.forgetLocked() {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("cannot remove the folder of a destroyed machine: %w", err)
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

// loadMachine reads one machine. It removes a folder without a record, because that creation
// was never answered. It also removes one with a damaged record: only a loss of power damages a
// record, and that also ended the program.
func (s *Server) loadMachine(dir string) (*machine, error) {
	var stored struct {
		record
		// Version 0.0 wrote action and defects under these names.
		EarlierAction  action  `json:"wish"`
		EarlierDefects defects `json:"lies"`
	}
	err := durable.Last(filepath.Join(dir, recordFile), &stored)
	if errors.Is(err, durable.ErrDamaged) {
		s.log.Error("a machine's record is damaged; the machine is removed", "folder", filepath.Base(dir), "error", err)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrDamaged) {
		if err := os.RemoveAll(dir); err != nil {
			return nil, fmt.Errorf("cannot remove an incomplete machine: %w", err)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the machine in %s: %w", dir, err)
	}
	rec := stored.record
	rec.Action = cmp.Or(rec.Action, stored.EarlierAction)
	rec.Defects = cmp.Or(rec.Defects, stored.EarlierDefects)
	if !rec.alive() { // an earlier version stored the whole config; an earlier record may have it
		rec.Config = withoutSecrets(rec.Config)
		if err := durable.Compact(filepath.Join(dir, recordFile), rec); err != nil {
			return nil, fmt.Errorf("cannot store the machine's record: %w", err)
		}
	}
	manifest, err := parseManifest(rec.Config)
	if err != nil {
		return nil, fmt.Errorf("cannot read the machine in %s: %w", dir, err)
	}
	// Keep the half-written files of other records: they may belong to a running supervisor.
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

// clear removes the files that only a running program needs.
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
