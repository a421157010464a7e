package flymachines

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// nameTaken is the error for creating a machine with the name of a live machine.
type nameTaken struct{ id, name string }

// Error returns Fly's text, from which clients parse the id of the other machine.
func (e nameTaken) Error() string {
	return fmt.Sprintf("already_exists: unique machine name violation, machine ID %s already exists with name %q", e.id, e.name)
}

// enter adds a new machine by id and name. It returns nameTaken if a live machine has the name,
// and errClosing after Stop.
func (s *Server) enter(m *machine, rec record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosing
	}
	key := rec.App + "/" + rec.Name
	if id, taken := s.names[key]; taken {
		return nameTaken{id, rec.Name}
	}
	s.names[key] = rec.ID
	s.machines[rec.ID] = m
	return nil
}

// retire frees the name of a destroyed machine. The machine stays readable for a while. retire
// returns the folders of the machines that are no longer readable.
func (s *Server) retire(m *machine, rec *record) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeLocked(rec)
	s.gone = append(s.gone, goneMachine{id: rec.ID, dir: m.dir, at: rec.GoneAt})
	return s.forgetLocked()
}

// takeBack removes a machine whose creation failed.
func (s *Server) takeBack(rec *record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeLocked(rec)
	delete(s.machines, rec.ID)
}

func (s *Server) freeLocked(rec *record) {
	if key := rec.App + "/" + rec.Name; s.names[key] == rec.ID {
		delete(s.names, key)
	}
}

// goneMachine is a destroyed machine that is still readable.
type goneMachine struct {
	id, dir string
	at      time.Time
}

// forgetLocked drops the destroyed machines that are too old or too many, and
// returns their folders.
func (s *Server) forgetLocked() []string {
	now := s.cfg.Clock.Now()
	count := max(0, len(s.gone)-s.cfg.KeepMost)
	for count < len(s.gone) && now.Sub(s.gone[count].at) >= s.cfg.KeepFor {
		count++
	}
	dirs := make([]string, 0, count)
	for _, gone := range s.gone[:count] {
		delete(s.machines, gone.id)
		dirs = append(dirs, gone.dir)
	}
	s.gone = slices.Clone(s.gone[count:])
	return dirs
}

// find returns a machine of an app, or nil.
func (s *Server) find(app, id string) *machine {
	s.mu.Lock()
	m := s.machines[id]
	s.mu.Unlock()
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.absent || m.rec.App != app {
		return nil
	}
	return m
}

// all returns the machines of an app, the oldest first.
func (s *Server) all(app string) []*machine {
	s.mu.Lock()
	machines := make([]*machine, 0, len(s.machines))
	for _, m := range s.machines {
		machines = append(machines, m)
	}
	s.mu.Unlock()
	type dated struct {
		m   *machine
		rec record
	}
	var found []dated
	for _, m := range machines {
		m.mu.Lock()
		if !m.absent && m.rec.App == app {
			found = append(found, dated{m, m.rec})
		}
		m.mu.Unlock()
	}
	slices.SortFunc(found, func(a, b dated) int {
		return cmp.Or(a.rec.CreatedAt.Compare(b.rec.CreatedAt), strings.Compare(a.rec.ID, b.rec.ID))
	})
	sorted := make([]*machine, len(found))
	for i, d := range found {
		sorted[i] = d.m
	}
	return sorted
}
