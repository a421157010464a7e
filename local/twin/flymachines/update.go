package flymachines

import (
	"encoding/json"
	"net/http"
)

type updateInput struct {
	SkipLaunch bool            `json:"skip_launch"`
	Config     json.RawMessage `json:"config"`
	// CurrentVersion is the version that is changed; empty is any.
	CurrentVersion string `json:"current_version"`
}

// update replaces the config of a stopped machine, which gets another version, and starts
// it unless skip_launch is set.
func (s *Server) update(w http.ResponseWriter, r *http.Request, m *machine) error {
	var in updateInput
	if err := readBody(r, &in); err != nil {
		return err
	}
	manifest, err := parseManifest(in.Config)
	if err != nil {
		return refuse(http.StatusBadRequest, "invalid_argument: %v", err)
	}
	argv, err := manifest.argv(s.cfg)
	if err != nil {
		return refuse(http.StatusBadRequest, "invalid_argument: %v", err)
	}
	digest := s.digests.of(manifest.program(s.cfg))
	now := s.cfg.Clock.Now()
	version := s.newULID(now)
	m.mu.Lock()
	err = m.commitLocked(now, func(r *record) error {
		switch {
		case in.CurrentVersion != "" && in.CurrentVersion != r.Version:
			return refuse(http.StatusConflict, "aborted: machine ID %s has version %s, not %s", r.ID, r.Version, in.CurrentVersion)
		case r.State != stateStopped || r.pending(m.manifest):
			return wrongState("update", r.State)
		}
		r.Config, r.Argv, r.Version, r.Digest = in.Config, argv, version, digest
		r.add(s.event("update", stateStopped, "user", now))
		if !in.SkipLaunch {
			r.State = stateStarting
			r.Starts++
			r.Restarts = 0
			r.add(s.event("start", stateStarting, "user", now))
		}
		return nil
	})
	if err == nil {
		m.manifest = manifest
		m.inherited = false // its program comes from this request
	}
	rec := m.rec
	m.mu.Unlock()
	if err != nil {
		return err
	}
	if !in.SkipLaunch {
		if err := s.live(m); err != nil {
			return err
		}
	}
	s.answer(w, http.StatusOK, rec.wire(manifest))
	return nil
}
