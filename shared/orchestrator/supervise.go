package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Supervise handles the state Running: it stores the token, which whoever ends
// the attempt completes.
func (s *Service) Supervise(ctx context.Context, in StepInput) error {
	_, _, err := s.enterWait(ctx, in)
	return err
}

// StopWorker handles the state Cancelling: it stores the token, and sends
// SIGTERM when that is due. It needs Runner and Executions beside Store.
func (s *Service) StopWorker(ctx context.Context, in StepInput) error {
	r, waiting, err := s.enterWait(ctx, in)
	if err != nil || !waiting || r.Attempt.MachineID == "" || r.Attempt.SigtermAt.IsZero() {
		return err
	}
	grace := max(r.Attempt.GraceUntil.Sub(s.now()), time.Second)
	if err := s.ports.Runner.Stop(ctx, r.Attempt.MachineID, grace); err != nil {
		return fmt.Errorf("cannot stop the machine: %w", err)
	}
	return nil
}

// Judge handles the state Reconciling: it reads the record, and the machine where
// that proves something, and sends the execution where the record then stands.
// It needs Runner and Executions beside Store.
func (s *Service) Reconcile(ctx context.Context, in StepInput) (run.Route, error) {
	r, stale, err := s.load(ctx, in)
	if err != nil {
		return run.Route{}, err
	}
	if stale {
		return ended(r), nil
	}
	f := run.Evaluated{Generation: in.Carried.Generation, Failed: in.Carried.failed()}
	if f.Failed {
		s.warn(ctx, r, "a step failed", errors.New(in.Carried.Error.Error+": "+in.Carried.Error.Cause))
	}
	starting := r.State == run.ContainerCreating
	if (starting || r.State == run.Running && r.Cancel != nil) && r.Attempt.MachineID != "" {
		f.Phase, f.Exit = s.look(ctx, r)
	}
	evaluated := func(now run.Run) run.Fact {
		// Looked at anew by each try: the last one may have lost to a heartbeat.
		s.readContact(ctx, now, &f)
		return f
	}
	if r, err = s.applyTo(ctx, r, evaluated); err != nil {
		return run.Route{}, again(fmt.Errorf("cannot judge the run: %w", err))
	}
	route := run.RouteOf(r, s.now())
	if pause := r.FailurePause(); f.Failed && pause > 0 && waits(route.Next) {
		route.Next, route.Seconds = run.StepBackingOff, int(pause/time.Second)
	}
	return route, nil
}

// listen puts into the judgement when the worker was heard last, and since when
// it can be heard. What cannot be read now proves nothing.
func (s *Service) readContact(ctx context.Context, r run.Run, f *run.Evaluated) {
	if r.State != run.Running || r.Attempt.WorkerID == "" {
		return
	}
	heartbeat, err := s.ports.Store.LastHeartbeat(ctx, r.Ref())
	f.LastContactAt = heartbeat.At
	if err == nil || errors.Is(err, port.ErrNotFound) {
		f.ReceptionSince, f.ReceptionUnknown, err = s.reception(ctx)
	}
	if err != nil {
		s.warn(ctx, r, "cannot read when the worker was heard", err)
		f.ReceptionUnknown = true
	}
}

// waits says whether a step is one whose call may fail over and over.
func waits(step run.Step) bool {
	return step == run.StepQueued || step == run.StepRunning || step == run.StepCancelling
}

// failed says whether Reconciling was entered because a call of ours failed: not
// because time was up, and not because the record had moved on.
func (c Carried) failed() bool {
	if c.Error == nil {
		return false
	}
	switch c.Error.Error {
	case "States.Timeout", "States.HeartbeatTimeout", movedOn:
		return false
	}
	return true
}

// look asks the runner about the machine. Only what it shows counts: an error,
// or a machine that it does not know, proves nothing.
func (s *Service) look(ctx context.Context, r run.Run) (phase string, exit *run.Exit) {
	machine, err := s.ports.Runner.Inspect(ctx, r.Attempt.MachineID)
	switch {
	case err != nil:
		s.warn(ctx, r, "cannot look at the machine", err)
	case machine.Phase == port.MachineRunning:
		return run.PhaseRunning, nil
	case machine.Phase == port.MachineGone:
		return run.PhaseGone, exitOf(machine)
	}
	return "", nil
}
