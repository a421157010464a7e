package flymachines

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/output"
)

type updateInput struct {
	SkipLaunch bool            `json:"skip_launch"`
	Config     json.RawMessage `json:"config"`
	// CurrentVersion is the version that the client expects; empty means any.
	CurrentVersion string `json:"current_version"`
}

// update replaces the config of a stopped machine and gives it a new version. It starts the
// machine unless skip_launch is set.
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
		if err := m.setOutputAside(r.Version); err != nil {
			return err
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
	s.answer(w, http.StatusOK, rec.wire(manifest, s.cfg))
	return nil
}

// earlierDir is the folder for the output of the last version that wrote any. The subfolder is
// named after that version.
const earlierDir = "earlier"

// setOutputAside moves the output of a version into earlierDir, apart from the next version's.
func (m *machine) setOutputAside(version string) error {
	before := filepath.Join(m.dir, earlierDir)
	written, err := output.Read(m.dir)
	if err == nil && len(written) > 0 {
		if err = os.RemoveAll(before); err == nil {
			err = output.Move(m.dir, filepath.Join(before, version))
		}
	}
	if err != nil {
		return fmt.Errorf("cannot set the output of version %s aside: %w", version, err)
	}
	return nil
}

// outputOf returns the folder with the output of a version; empty means the current one.
func (m *machine) outputOf(version string) string {
	if rec, _ := m.snapshot(); version == "" || version == rec.Version {
		return m.dir
	}
	return filepath.Join(m.dir, earlierDir, filepath.Base(version))
}

// resetDisk removes the files of an earlier start. Fly also creates the root filesystem from
// the image at each start.
func (m *machine) resetDisk() error {
	for _, name := range []string{"root", "tmp"} {
		if err := os.RemoveAll(filepath.Join(m.dir, name)); err != nil {
			return fmt.Errorf("cannot reset the disk of machine %s: %w", filepath.Base(m.dir), err)
		}
	}
	return nil
}
