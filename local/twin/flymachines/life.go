package flymachines

import (
	"os"
	"syscall"
	"time"
)

// live starts the machine's goroutine unless it is running. It returns an error if the server
// is closing.
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
	s.changing.Go(func() { s.life(m) })
	return nil
}

// life advances a machine until nothing is pending: it is stopped or destroyed, or the server
// closes. Each machine has at most one such goroutine.
func (s *Server) life(m *machine) {
	for !m.idle() {
		proc, ok := s.begin(m)
		if !ok {
			return
		}
		if proc != nil {
			exit, oom := s.superviseProcess(m, proc)
			s.ended(m, exit, oom)
		}
		if !s.afterEnd(m) {
			return
		}
	}
}

// idle reports whether nothing is pending, so that the machine's goroutine ends.
func (m *machine) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.living = m.rec.pending(m.manifest)
	return !m.living
}

// begin starts the machine's program, or finds the running one. It returns nil if there is no
// program to wait for. It returns false if the server closes first.
func (s *Server) begin(m *machine) (Process, bool) {
	rec, _ := m.snapshot()
	if rec.Ended == rec.Starts || rec.State == stateLaunchFailed {
		return nil, true
	}
	var proc Process
	var err error
	if m.inherited {
		proc, err = s.cfg.Starter.Find(s.program(m))
	}
	if proc == nil && err == nil && rec.starting() {
		if !s.linger(m, &rec) || !s.boot(m) {
			return nil, false
		}
		if rec, _ = m.snapshot(); !rec.starting() || rec.Action != actionNone {
			s.cancelStart(m)
			return nil, true
		}
		if m.inherited {
			s.cancelInherited(m)
			return nil, true
		}
		if rec.Starts > 1 {
			err = m.resetDisk()
		}
		if err == nil {
			proc, err = s.cfg.Starter.Start(s.program(m))
		}
	}
	switch {
	case err != nil:
		s.log.Error("cannot start a machine", "machine", rec.ID, "error", err)
		s.note(m, func(r *record) {
			r.State, r.Action, r.Ended = stateLaunchFailed, actionDestroy, r.Starts
			r.add(s.event("launch", stateLaunchFailed, "flyd", s.cfg.Clock.Now()))
		})
		return nil, true
	case proc == nil && rec.State == stateDestroying:
		s.cancelStart(m)
		return nil, true
	case proc == nil: // the program ran when the server was killed, and its result is lost
		s.ended(m, killed(s.cfg.Clock.Now(), "the program was lost with the server"), false)
		return nil, true
	}
	s.started(m, proc)
	return proc, true
}

// cancelInherited cancels the start of a machine that an earlier server created, like a
// requested stop. Another user could have placed the folder there, so only a new machine starts
// a program.
func (s *Server) cancelInherited(m *machine) {
	rec, _ := m.snapshot()
	s.log.Warn("a machine of an earlier server is not started", "machine", rec.ID)
	s.note(m, func(r *record) { r.Action = actionStop })
	s.cancelStart(m)
}

// linger delays a machine in created and starting as long as its faults require. It returns
// false if the server closes first.
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

// cancelStart ends a start that was cancelled before the program ran. It records an exit event,
// because a stop without one looks like a failed start.
func (s *Server) cancelStart(m *machine) {
	now := s.cfg.Clock.Now()
	s.note(m, func(r *record) {
		r.Ended = r.Starts
		if r.starting() {
			r.State = stateStopped
			r.add(s.event("stop", stateStopped, "flyd", now))
		}
		if r.Action == actionStop {
			e := s.event("exit", stateStopped, "flyd", now)
			e.Request = &eventRequest{ExitEvent: newExitEvent(Exit{At: now}, true, false, false), RestartCount: r.Restarts}
			r.add(e)
			r.Action = actionNone
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
			return // found, and running
		}
		r.add(s.event("start", stateStarted, "flyd", at))
		r.State = stateStarted
		if r.Action != actionNone {
			r.State = stateStopping
		}
	})
}

// killAgain is the delay before a failed kill is retried.
const killAgain = time.Second

// superviseProcess waits for the end of the program and sends it the requested signals.
func (s *Server) superviseProcess(m *machine, proc Process) (exit Exit, oom bool) {
	ended := make(chan Exit, 1)
	go func() {
		exit, err := proc.Wait()
		if err != nil {
			s.log.Error("cannot determine how a program ended", "error", err)
			exit = killed(s.cfg.Clock.Now(), err.Error())
		}
		ended <- exit
	}()
	send := func(signal syscall.Signal) (sent bool) {
		err := proc.Signal(signal)
		if err != nil {
			s.log.Error("cannot signal a program", "signal", signal, "error", err)
		}
		return err == nil
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
	rec, _ := m.snapshot()
	if rec.Defects.OOM {
		memory = after(rec.Defects.OOMAfter)
	}
	rush := s.stopNow
	var sent record
	for {
		rec, _ := m.snapshot()
		if rec.Action != sent.Action || rec.Signal != sent.Signal || !rec.KillAt.Equal(sent.KillAt) {
			sent = rec
			grace = nil
			switch {
			case rec.Action == actionDestroy && !send(syscall.SIGKILL):
				grace = after(killAgain)
			case rec.Action == actionDestroy:
			case rec.Action != actionNone:
				send(rec.Signal)
				grace = after(rec.KillAt.Sub(s.cfg.Clock.Now()))
			}
		}
		select {
		case exit = <-ended:
			return exit, oom
		case <-m.wakeUp:
		case <-grace:
			if grace = nil; !send(syscall.SIGKILL) {
				grace = after(killAgain)
			}
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
		requested := r.Action != actionNone && !oom
		again := r.Action == actionRestart || (r.Action == actionNone && m.manifest.again(exit, r.Restarts))
		if !r.Defects.LostExit {
			source := "flyd"
			if requested && s.shuttingDown() {
				source = "host"
			}
			e := s.event("exit", stateStopped, source, exit.At)
			e.Request = &eventRequest{ExitEvent: newExitEvent(exit, requested, again, oom), RestartCount: r.Restarts}
			r.add(e)
		}
		if r.State != stateDestroying {
			r.State = stateStopped
		}
		switch {
		case again && r.Action == actionNone:
			r.Action, r.Restarts = actionRestart, r.Restarts+1
		case r.Action == actionStop:
			r.Action = actionNone
		}
		r.Signal, r.KillAt, r.Ended = 0, time.Time{}, r.Starts
	})
}

// shuttingDown reports whether Stop was called.
func (s *Server) shuttingDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// restartPause is the delay before the restart of a program that failed at
// once.
const restartPause = time.Second

// afterEnd handles the end of a machine's program: it restarts, destroys or keeps the machine.
// It returns false if the server closes first.
func (s *Server) afterEnd(m *machine) bool {
	rec, _ := m.snapshot()
	if rec.State == stateStopped && rec.Action == actionRestart {
		if rec.Restarts > 0 && !s.stay(m, &stuck{For: restartPause}, rec.UpdatedAt) {
			return false
		}
		s.note(m, func(r *record) {
			if r.Action == actionRestart {
				r.State, r.Action, r.Starts = stateStarting, actionNone, r.Starts+1
			}
		})
		return true
	}
	if !rec.ending(m.manifestNow()) {
		return true
	}
	return s.destroy(m, rec.Defects.StuckDestroying)
}

// destroy removes the machine and keeps its record readable. It returns false if the server
// closes first.
func (s *Server) destroy(m *machine, fault *stuck) bool {
	if fault != nil {
		at := s.cfg.Clock.Now()
		s.note(m, func(r *record) { r.State, r.Action = stateDestroying, actionDestroy })
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
		r.State, r.Action, r.GoneAt = stateDestroyed, actionNone, now
		r.Config = withoutSecrets(r.Config)
		r.add(s.event("destroy", stateDestroyed, "flyd", now))
		forgotten = s.retire(m, r) // before a client can see that the name is free
	})
	for _, dir := range forgotten {
		if err := os.RemoveAll(dir); err != nil {
			s.log.Error("cannot remove the folder of a destroyed machine", "error", err)
		}
	}
	return true
}

// stay keeps a machine in its state for the time of the fault, or until an action is requested.
// It returns false if the server closes first and no action was requested.
func (s *Server) stay(m *machine, fault *stuck, since time.Time) bool {
	if fault == nil {
		return true
	}
	over, stop := s.until(since, fault.For)
	defer stop()
	for {
		rec, changed := m.snapshot()
		if rec.Action == actionStop || rec.Action == actionDestroy {
			return true
		}
		select {
		case <-over:
			return true
		case <-changed:
		case <-s.closing:
			rec, _ := m.snapshot()
			return rec.Action == actionStop || rec.Action == actionDestroy
		}
	}
}

// until returns a channel that fires d after since; it never fires if d is 0.
func (s *Server) until(since time.Time, d time.Duration) (<-chan time.Time, func()) {
	if d == 0 {
		return nil, func() {}
	}
	return s.cfg.Clock.NewTimer(since.Add(d).Sub(s.cfg.Clock.Now()))
}

// note commits a change that has already happened. It logs a failed write.
func (s *Server) note(m *machine, change func(*record)) {
	if err := m.note(s.cfg.Clock.Now(), change); err != nil {
		s.log.Error("cannot store a machine's record", "error", err)
	}
}
