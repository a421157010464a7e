package flymachines

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// visible reports whether reads show the machine yet.
func (s *Server) visible(rec *record) bool {
	return rec.Defects.InvisibleUntil.IsZero() || !s.cfg.Clock.Now().Before(rec.Defects.InvisibleUntil)
}

func (s *Server) get(w http.ResponseWriter, _ *http.Request, m *machine) error {
	rec, _ := m.snapshot()
	if !s.visible(&rec) {
		return refuse(http.StatusNotFound, "machine not found")
	}
	s.answer(w, http.StatusOK, rec.wire(m.manifestNow(), s.cfg))
	return nil
}

func (s *Server) getEvents(w http.ResponseWriter, _ *http.Request, m *machine) error {
	rec, _ := m.snapshot()
	if !s.visible(&rec) {
		return refuse(http.StatusNotFound, "machine not found")
	}
	s.answer(w, http.StatusOK, rec.Events)
	return nil
}

// getLogs returns the output of the machine's version instance_id, by default the current one.
// Fly serves logs by another API.
func (s *Server) getLogs(w http.ResponseWriter, r *http.Request, _ *machine) error {
	text, err := s.logsOf(r.PathValue("id"), r.URL.Query().Get("instance_id"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if _, err := w.Write(text); err != nil { //nolint:gosec // G705: it is plain text
		s.log.Debug("a client left before its answer", "error", err)
	}
	return nil
}

// list returns the machines that match every filter: metadata.KEY, region,
// state. Destroyed machines are included on request.
func (s *Server) list(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	deleted := query.Get("include_deleted")
	withGone, err := strconv.ParseBool(deleted)
	if err != nil && deleted != "" {
		return refuse(http.StatusBadRequest, "invalid_argument: include_deleted %q", deleted)
	}
	found := []machineJSON{}
	for _, m := range s.all(r.PathValue("app")) {
		rec, _ := m.snapshot()
		manifest := m.manifestNow()
		if (!rec.alive() && !withGone) || !s.visible(&rec) {
			continue
		}
		if fits(query, &rec, manifest) {
			found = append(found, rec.wire(manifest, s.cfg))
		}
	}
	s.answer(w, http.StatusOK, found)
	return nil
}

func fits(query map[string][]string, rec *record, m *manifest) bool {
	for name, values := range query {
		key, isMetadata := strings.CutPrefix(name, "metadata.")
		for _, value := range values {
			switch {
			case isMetadata:
				if have, ok := m.Metadata[key]; !ok || have != value {
					return false
				}
			case name == "region":
				if !slices.Contains(strings.Split(value, ","), rec.Region) {
					return false
				}
			case name == "state":
				if !slices.Contains(strings.Split(value, ","), rec.State) {
					return false
				}
			}
		}
	}
	return true
}

// wait answers when the machine is in one of the requested states.
func (s *Server) wait(w http.ResponseWriter, r *http.Request, m *machine) error {
	query := r.URL.Query()
	var states []string
	for _, name := range []string{"state", "states"} {
		for _, value := range query[name] {
			states = append(states, strings.Split(value, ",")...)
		}
	}
	if len(states) == 0 {
		states = []string{stateStarted}
	}
	for _, state := range states {
		switch state {
		case stateStarted, stateStopped, "suspended", stateDestroyed, "settled":
		default:
			return refuse(http.StatusBadRequest, "invalid_argument: invalid WaitMachineRequest.State: %q", state)
		}
	}
	seconds := 60
	if text := query.Get("timeout"); text != "" {
		var err error
		if seconds, err = strconv.Atoi(text); err != nil || seconds < 1 || seconds > 60 {
			return refuse(http.StatusBadRequest,
				"invalid_argument: invalid WaitMachineRequest.Timeout: value must be inside range [1s, 1m0s]")
		}
	}
	version := query.Get("version")
	if version == "" {
		version = query.Get("instance_id")
	}
	return s.waitFor(w, r, m, states, version, time.Duration(seconds)*time.Second)
}

func (s *Server) waitFor(w http.ResponseWriter, r *http.Request, m *machine, states []string, version string, limit time.Duration) error {
	over, stop := s.cfg.Clock.NewTimer(limit)
	defer stop()
	from := r.URL.Query().Get("from_event_id")
	settled := slices.Contains(states, "settled")
	for {
		rec, changed := m.snapshot()
		isSettled := rec.State == stateStarted || rec.State == stateStopped || rec.State == stateDestroyed
		switch reached := slices.Contains(states, rec.State) || (settled && isSettled); {
		case !s.visible(&rec):
			return refuse(http.StatusNotFound, "machine not found")
		case version != "" && version != rec.Version:
			return refuse(http.StatusPreconditionFailed,
				"failed_precondition: machine failed to reach desired state, %s, currently replaced", strings.Join(states, ","))
		case reached && (from == "" || from != rec.newest()):
			s.answer(w, http.StatusOK, map[string]any{
				"ok": true, "state": rec.State, "version": rec.Version, "event_id": rec.newest(),
			})
			return nil
		case rec.State == stateDestroyed:
			return refuse(http.StatusNotFound, "machine not found")
		}
		select {
		case <-changed:
		case <-over:
			return refuse(http.StatusRequestTimeout,
				"deadline_exceeded: machine failed to reach desired state, %s, currently %s", strings.Join(states, ","), rec.State)
		case <-r.Context().Done():
			return refuse(http.StatusRequestTimeout, "canceled: the client has left")
		}
	}
}
