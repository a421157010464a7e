package flymachines

import (
	"os"
	"syscall"
	"time"
)

// live makes sure that somebody goes on with the machine's life, unless the
// server is closing.
func (s *Server) live(m *machine) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.living {
		m.wake()
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosing
	}
	m.living = true
	s.lives.Go(func() { s.life(m) })
	return nil
}

// life goes on with a machine from its present state until nothing happens to
// it by itself any more: it is stopped, or gone, or the server closes. There
// is one at a time.
func (s *Server) life(m *machine) {
	for !m.idle() {
		proc, ok := s.begin(m)
		if !ok {
			return
		}
		if proc != nil {
			exit, oom := s.attend(m, proc)
			s.ended(m, exit, oom)
		}
		if !s.afterEnd(m) {
			return
		}
	}
}

// idle ends the machine's life where there is nothing left to do.
func (m *machine) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.living = m.rec.pending(m.manifest)
	return !m.living
}

// begin gets the machine's program running, or finds it running. nil where
// there is none to wait for; false where the server closes first.
func (s *Server) begin(m *machine) (Process, bool) {
	rec, _ := m.look()
	if rec.Ended == rec.Starts || rec.State == stateLaunchFailed {
		return nil, true
	}
	var proc Process
	var err error
	if m.inherited {
		m.inherited = false
		proc, err = s.cfg.Starter.Find(s.program(m))
	}
	if proc == nil && err == nil && rec.starting() {
		if !s.linger(m, &rec) {
			return nil, false
		}
		if rec, _ = m.look(); !rec.starting() || rec.Wish != wishNone {
			s.neverRan(m)
			return nil, true
		}
		proc, err = s.cfg.Starter.Start(s.program(m))
	}
	switch {
	case err != nil:
		s.log.Error("cannot start a machine", "machine", rec.ID, "error", err)
		s.note(m, func(r *record) {
			r.State, r.Wish, r.Ended = stateLaunchFailed, wishDestroy, r.Starts
			r.add(s.event("launch", stateLaunchFailed, "flyd", s.cfg.Clock.Now()))
		})
		return nil, true
	case proc == nil && rec.State == stateDestroying:
		s.neverRan(m)
		return nil, true
	case proc == nil: // it ran when the server was killed, and left no trace
		s.ended(m, killed(s.cfg.Clock.Now(), "the program was lost with the server"), false)
		return nil, true
	}
	s.started(m, proc)
	return proc, true
}

// linger keeps a machine in created and starting for as long as its faults
// say; false where the server closes first.
func (s *Server) linger(m *machine, rec *record) bool {
	since := rec.UpdatedAt
	if rec.State == stateCreated {
		if !s.stay(m, rec.Defects.StuckCreated, since) {
			return false
		}
		if rec.Defects.StuckStarting == nil {
			return true
		}
		since = s.cfg.Clock.Now()
		s.note(m, func(r *record) {
			if r.State == stateCreated {
				r.State = stateStarting
				r.add(s.event("start", stateStarting, "flyd", since))
			}
		})
	}
	return s.stay(m, rec.Defects.StuckStarting, since)
}

// neverRan ends a start that somebody took back before it happened. A stop is
// told in an exit event too: without one it looks like a start that failed.
func (s *Server) neverRan(m *machine) {
	now := s.cfg.Clock.Now()
	s.note(m, func(r *record) {
		r.Ended = r.Starts
		if r.starting() {
			r.State = stateStopped
			r.add(s.event("stop", stateStopped, "flyd", now))
		}
		if r.Wish == wishStop {
			e := s.event("exit", stateStopped, "flyd", now)
			e.Request = &eventRequest{ExitEvent: newExitEvent(Exit{At: now}, true, false, false), RestartCount: r.Restarts}
			r.add(e)
			r.Wish = wishNone
		}
		r.Signal, r.KillAt = 0, time.Time{}
	})
}

func (s *Server) started(m *machine, proc Process) {
	at := proc.StartedAt()
	if at.IsZero() {
		at = s.cfg.Clock.Now()
	}
	m.mu.Lock()
	m.proc = proc
	m.mu.Unlock()
	s.note(m, func(r *record) {
		if !r.starting() {
			return // it was found running
		}
		r.add(s.event("start", stateStarted, "flyd", at))
		r.State = stateStarted
		if r.Wish != wishNone {
			r.State = stateStopping
		}
	})
}

// attend waits for the program's end and signals it as is wished meanwhile.
func (s *Server) attend(m *machine, proc Process) (exit Exit, oom bool) {
	ended := make(chan Exit, 1)
	go func() {
		exit, err := proc.Wait()
		if err != nil {
			s.log.Error("cannot tell how a program ended", "error", err)
			exit = killed(s.cfg.Clock.Now(), err.Error())
		}
		ended <- exit
	}()
	send := func(signal syscall.Signal) {
		if err := proc.Signal(signal); err != nil {
			s.log.Error("cannot signal a program", "signal", signal, "error", err)
		}
	}
	var memory, grace <-chan time.Time
	var timers []func()
	defer func() {
		for _, stop := range timers {
			stop()
		}
	}()
	after := func(d time.Duration) <-chan time.Time {
		fired, stop := s.cfg.Clock.NewTimer(d)
		timers = append(timers, stop)
		return fired
	}
	rec, _ := m.look()
	if rec.Defects.OOM {
		memory = after(rec.Defects.OOMAfter)
	}
	rush := s.rush
	var sent record
	for {
		rec, _ := m.look()
		if rec.Wish != sent.Wish || rec.Signal != sent.Signal || !rec.KillAt.Equal(sent.KillAt) {
			sent = rec
			grace = nil
			switch {
			case rec.Wish == wishDestroy:
				send(syscall.SIGKILL)
			case rec.Wish != wishNone:
				send(rec.Signal)
				grace = after(rec.KillAt.Sub(s.cfg.Clock.Now()))
			}
		}
		select {
		case exit = <-ended:
			return exit, oom
		case <-m.kick:
		case <-grace:
			grace = nil
			send(syscall.SIGKILL)
		case <-rush:
			rush = nil
			send(syscall.SIGKILL)
		case <-memory:
			memory, oom = nil, true
			send(syscall.SIGKILL)
		}
	}
}

// ended records the program's end.
func (s *Server) ended(m *machine, exit Exit, oom bool) {
	if exit.At.IsZero() {
		exit.At = s.cfg.Clock.Now()
	}
	m.mu.Lock()
	m.proc = nil
	m.mu.Unlock()
	s.note(m, func(r *record) {
		oom := oom && exit.Signal == int(syscall.SIGKILL)
		requested := r.Wish != wishNone && !oom
		again := r.Wish == wishRestart || (r.Wish == wishNone && m.manifest.again(exit, r.Restarts))
		if !r.Defects.LostExit {
			e := s.event("exit", stateStopped, "flyd", exit.At)
			e.Request = &eventRequest{ExitEvent: newExitEvent(exit, requested, again, oom), RestartCount: r.Restarts}
			r.add(e)
		}
		if r.State != stateDestroying {
			r.State = stateStopped
		}
		switch {
		case again && r.Wish == wishNone:
			r.Wish, r.Restarts = wishRestart, r.Restarts+1
		case r.Wish == wishStop:
			r.Wish = wishNone
		}
		r.Signal, r.KillAt, r.Ended = 0, time.Time{}, r.Starts
	})
}

// restartPause keeps a program that fails at once from being restarted without
// end in no time.
const restartPause = time.Second

// afterEnd decides what becomes of a machine without a program; false where
// the server closes first.
func (s *Server) afterEnd(m *machine) bool {
	rec, _ := m.look()
	if rec.State == stateStopped && rec.Wish == wishRestart {
		if rec.Restarts > 0 && !s.stay(m, &stuck{For: restartPause}, rec.UpdatedAt) {
			return false
		}
		s.note(m, func(r *record) {
			if r.Wish == wishRestart {
				r.State, r.Wish, r.Starts = stateStarting, wishNone, r.Starts+1
			}
		})
		return true
	}
	if !rec.ending(m.manifestNow()) {
		return true
	}
	return s.destroy(m, rec.Defects.StuckDestroying)
}

// destroy removes the machine and leaves what can still be read of it; false
// where the server closes first.
func (s *Server) destroy(m *machine, fault *stuck) bool {
	if fault != nil {
		at := s.cfg.Clock.Now()
		s.note(m, func(r *record) { r.State, r.Wish = stateDestroying, wishDestroy })
		over, stop := s.until(at, fault.For)
		defer stop()
		select {
		case <-over:
		case <-s.closing:
			return false
		}
	}
	if err := m.clear(); err != nil {
		s.log.Error("cannot clear a machine", "error", err)
	}
	var forgotten []string
	s.note(m, func(r *record) {
		now := s.cfg.Clock.Now()
		r.State, r.Wish, r.GoneAt = stateDestroyed, wishNone, now
		r.add(s.event("destroy", stateDestroyed, "flyd", now))
		forgotten = s.retire(m, r) // before anyone sees that its name is free
	})
	for _, dir := range forgotten {
		if err := os.RemoveAll(dir); err != nil {
			s.log.Error("cannot remove the folder of a machine that is gone", "error", err)
		}
	}
	return true
}

// stay keeps a machine where it is for as long as a fault says, unless
// something is wished meanwhile. false where the server closes first and
// nothing was wished.
func (s *Server) stay(m *machine, fault *stuck, since time.Time) bool {
	if fault == nil {
		return true
	}
	over, stop := s.until(since, fault.For)
	defer stop()
	for {
		rec, changed := m.look()
		if rec.Wish == wishStop || rec.Wish == wishDestroy {
			return true
		}
		select {
		case <-over:
			return true
		case <-changed:
		case <-s.closing:
			rec, _ := m.look()
			return rec.Wish == wishStop || rec.Wish == wishDestroy
		}
	}
}

// until fires d after since; never, where d is 0.
func (s *Server) until(since time.Time, d time.Duration) (<-chan time.Time, func()) {
	if d == 0 {
		return nil, func() {}
	}
	return s.cfg.Clock.NewTimer(since.Add(d).Sub(s.cfg.Clock.Now()))
}

// note records what has happened to a machine.
func (s *Server) note(m *machine, change func(*record)) {
	if err := m.note(s.cfg.Clock.Now(), change); err != nil {
		s.log.Error("a machine's record is behind", "error", err)
	}
}
