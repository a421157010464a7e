package flymachines

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
)

type createInput struct {
	Name       string          `json:"name"`
	Region     string          `json:"region"`
	SkipLaunch bool            `json:"skip_launch"`
	Config     json.RawMessage `json:"config"`
}

// create creates a machine: it writes the record, answers, then starts the
// program.
func (s *Server) create(w http.ResponseWriter, r *http.Request) error {
	var in createInput
	if err := readBody(r, &in); err != nil {
		return err
	}
	subject := faults.Subject{App: r.PathValue("app"), Name: in.Name, Region: in.Region}
	m, err := parseManifest(in.Config)
	if err == nil {
		subject.Metadata, subject.Env = m.Metadata, m.Env
	}
	if subject.Region == "" {
		subject.Region = s.cfg.Regions[0]
	}
	return s.inject(w, r, faults.Create, "", subject, func(w http.ResponseWriter, _ *http.Request) error {
		if err != nil {
			return refuse(http.StatusBadRequest, "invalid_argument: %v", err)
		}
		if err := s.delayCreation(); err != nil {
			return err
		}
		rec, err := s.make(in, m, subject)
		if err != nil {
			return err
		}
		s.answer(w, http.StatusOK, rec.wire(m, s.cfg))
		return nil
	})
}

// make creates a machine and returns its initial state. The machine may have left that state
// when make returns.
func (s *Server) make(in createInput, m *manifest, subject faults.Subject) (*record, error) {
	argv, err := m.argv(s.cfg)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "invalid_argument: %v", err)
	}
	if !slices.Contains(s.cfg.Regions, subject.Region) {
		return nil, refuse(http.StatusBadRequest, "invalid_argument: region %q not found", subject.Region)
	}
	id, err := s.newID()
	if err != nil {
		return nil, err
	}
	now := s.cfg.Clock.Now()
	rec := record{
		ID: id, App: subject.App, Name: in.Name, Region: subject.Region, State: stateCreated,
		Config: in.Config, Argv: argv, Digest: s.digests.of(m.program(s.cfg)), Version: s.newULID(now), Starts: 1, CreatedAt: now, UpdatedAt: now,
		Defects: s.chooseDefects(subject),
	}
	if rec.Name == "" {
		rec.Name = "m-" + id
	}
	if !validName(rec.Name) {
		return nil, refuse(http.StatusBadRequest, "invalid_argument: name %q is not 1 to 63 of a-z, 0-9 and -", rec.Name)
	}
	rec.add(s.event("launch", "pending", "flyd", now))
	rec.add(s.event("launch", stateCreated, "user", now))
	if in.SkipLaunch {
		rec.State, rec.Starts = stateStopped, 0
	}
	made := newMachine(filepath.Join(s.cfg.Dir, "machines", id), rec, m)
	if err := s.commitNew(made, rec); err != nil {
		return nil, err
	}
	if in.SkipLaunch {
		return &rec, nil
	}
	return &rec, s.live(made)
}

// commitNew writes the record of a new machine. Readers that find the machine before that wait
// for the write.
func (s *Server) commitNew(m *machine, rec record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := s.enter(m, rec)
	if taken, ok := errors.AsType[nameTaken](err); ok {
		return refuse(http.StatusConflict, "%s", taken.Error())
	}
	if err != nil {
		return err
	}
	err = os.Mkdir(m.dir, 0o700)
	if err == nil {
		err = m.commitLocked(rec.CreatedAt, func(*record) error { return nil })
	}
	if err != nil {
		m.absent = true
		s.takeBack(&rec)
		return fmt.Errorf("cannot store the new machine: %w", errors.Join(err, os.RemoveAll(m.dir)))
	}
	return nil
}
