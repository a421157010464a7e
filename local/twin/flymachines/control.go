package flymachines

import (
	"net/http"
	"syscall"
	"time"
)

func wrongState(verb, state string) error {
	return refuse(http.StatusPreconditionFailed, "failed_precondition: unable to %s machine from current state: '%s'", verb, state)
}

// start starts a stopped machine again.
func (s *Server) start(w http.ResponseWriter, _ *http.Request, m *machine) error {
	var before string
	now := s.cfg.Clock.Now()
	err := m.commit(now, func(r *record) error {
		before = r.State
		switch {
		case r.State == stateStarted:
			return nil
		case r.State == stateStopped && r.pending(m.manifest):
			return refuse(http.StatusPreconditionFailed, "failed_precondition: machine still active, refusing to start")
		case r.State != stateStopped:
			return wrongState("start", r.State)
		}
		r.State = stateStarting
		r.Starts++
		r.Restarts = 0
		r.add(s.event("start", stateStarting, "user", now))
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.live(m); err != nil {
		return err
	}
	s.answer(w, http.StatusOK, map[string]any{"previous_state": before, "migrated": false, "new_host": ""})
	return nil
}

type stopInput struct {
	Signal  signalValue `json:"signal"`
	Timeout duration    `json:"timeout"`
}

// stop requests the end of the program by a signal, and by SIGKILL after the grace period.
func (s *Server) stop(w http.ResponseWriter, r *http.Request, m *machine) error {
	var in stopInput
	if err := readBody(r, &in); err != nil {
		return err
	}
	if err := s.request(m, actionStop, in.Signal.Signal, in.Timeout.Duration); err != nil {
		return err
	}
	return s.ok(w)
}

// restart ends the program and starts it again.
func (s *Server) restart(w http.ResponseWriter, r *http.Request, m *machine) error {
	query := r.URL.Query()
	signal, err := parseSignal(query.Get("signal"))
	if err != nil {
		return refuse(http.StatusBadRequest, "invalid_argument: %v", err)
	}
	var grace time.Duration
	if text := query.Get("timeout"); text != "" {
		if grace, err = time.ParseDuration(text); err != nil {
			return refuse(http.StatusBadRequest, "invalid_argument: timeout %q", text)
		}
	}
	if query.Get("force_stop") == "true" {
		signal = syscall.SIGKILL
	}
	rec, _ := m.snapshot()
	if rec.State == stateStopped {
		return s.start(w, r, m)
	}
	if rec.State != stateStarted {
		return wrongState("restart", rec.State)
	}
	if err := s.request(m, actionRestart, signal, grace); err != nil {
		return err
	}
	return s.ok(w)
}

// request records the requested action and wakes the machine's goroutine, which
// carries it out. A zero signal or grace means the configured one.
func (s *Server) request(m *machine, what action, signal syscall.Signal, grace time.Duration) error {
	now := s.cfg.Clock.Now()
	err := m.commit(now, func(r *record) error {
		switch r.State {
		case stateDestroyed, stateLaunchFailed:
			return wrongState(string(what), r.State)
		case stateStopped, stateDestroying:
			if r.Action == actionRestart {
				r.Action = actionNone
			}
			return nil
		case stateStarted:
			r.State = stateStopping
			r.add(s.event("stop", stateStopping, "user", now))
		}
		r.Action, r.Signal = what, signal
		if signal == 0 {
			r.Signal = m.manifest.stopSignal
		}
		if grace <= 0 {
			grace = m.manifest.grace()
		}
		if at := now.Add(grace); r.KillAt.IsZero() || at.Before(r.KillAt) {
			r.KillAt = at
		}
		return nil
	})
	m.wake()
	return err
}

// stopForShutdown requests the end of a machine because the server closes.
func (s *Server) stopForShutdown(m *machine) error {
	rec, _ := m.snapshot()
	if rec.State == stateDestroyed || rec.State == stateLaunchFailed {
		return nil
	}
	return s.request(m, actionStop, syscall.SIGTERM, 0)
}

type signalInput struct {
	Signal signalValue `json:"signal"`
}

// postSignal sends a signal and changes nothing else.
func (s *Server) postSignal(w http.ResponseWriter, r *http.Request, m *machine) error {
	var in signalInput
	if err := readBody(r, &in); err != nil {
		return err
	}
	if in.Signal.Signal == 0 {
		return refuse(http.StatusBadRequest, "invalid_argument: signal is required")
	}
	rec, _ := m.snapshot()
	if rec.State != stateStarted && rec.State != stateStopping {
		return wrongState("signal", rec.State)
	}
	if err := m.signal(in.Signal.Signal); err != nil {
		return err
	}
	return s.ok(w)
}

// remove destroys the machine. A running machine needs force (fly-go: kill).
func (s *Server) remove(w http.ResponseWriter, r *http.Request, m *machine) error {
	query := r.URL.Query()
	kill := query.Get("kill") == "true" || query.Get("force") == "true"
	now := s.cfg.Clock.Now()
	err := m.commit(now, func(r *record) error {
		switch {
		case r.State == stateDestroyed, r.State == stateDestroying:
			return nil
		case r.State != stateStopped && r.State != stateLaunchFailed && !kill:
			return wrongState("destroy", r.State)
		}
		r.State, r.Action = stateDestroying, actionDestroy
		r.add(s.event("destroy", stateDestroying, "user", now))
		return nil
	})
	if err != nil {
		return err
	}
	rec, _ := m.snapshot()
	if rec.alive() {
		if err := s.live(m); err != nil {
			return err
		}
	}
	return s.ok(w)
}
