package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// unreachableLimit is how long a machine that cannot be seen gone holds up the
// next attempt.
const unreachableLimit = 10 * time.Minute

// overtakeLimit is how long a worker's report may be ahead of the commit of its
// machine's id.
const overtakeLimit = 2 * time.Second

// Terminate handles the state Terminating: it sees the machine gone, verifies
// and keeps the output, and decides what comes of the run. It needs Runner and
// Outputs beside Store. Each part may be repeated, and TryAgain is its answer
// while the machine is still there. A run that is not in Terminating is given up
// only where the execution carries an error; without one, this is a call that was
// made again while the run went on, and it changes nothing.
func (s *Service) Terminate(ctx context.Context, in StepInput) (run.Route, error) {
	r, stale, err := s.load(ctx, in)
	if err != nil {
		return run.Route{}, err
	}
	if stale {
		return ended(r), nil
	}
	if why := in.Carried.Error; why != nil && r.State != run.Terminating && r.State != run.Retrying && !r.State.Terminal() {
		message := "the run's execution failed in a way that nobody foresaw: " + why.Error
		if r, err = s.applyTo(ctx, r, is(run.Abandoned{Generation: in.Carried.Generation, Message: message})); err != nil {
			return run.Route{}, again(err)
		}
	}
	if r.State == run.Terminating {
		if r, err = s.settle(ctx, r); err != nil {
			return run.Route{}, again(err)
		}
	}
	return run.RouteOf(r, s.now()), nil
}

// settle cleans up after an attempt and commits what comes of the run. A
// record that changed meanwhile, such as by a cancel, is settled as it then is.
func (s *Service) settle(ctx context.Context, r run.Run) (run.Run, error) {
	for range commitTries {
		exit, err := s.seeGone(ctx, r)
		if err != nil {
			return r, err
		}
		output, wrong, err := s.keep(ctx, r)
		if err != nil {
			return r, fmt.Errorf("cannot keep the output: %w", err)
		}
		logged := s.keepLog(ctx, r)
		if err := s.clear(ctx, r, output); err != nil {
			return r, fmt.Errorf("cannot clear the attempt's uploads: %w", err)
		}
		d, err := run.Decide(r, run.Settled{Output: output, Fault: wrong, Exit: exit, Logged: logged, Rand: s.ports.Rand()}, s.now())
		if err != nil || !d.Changed {
			return r, err
		}
		after, err := s.commit(ctx, d)
		if !errors.Is(err, port.ErrConflict) {
			return after, err
		}
		if r, err = s.ports.Store.Load(ctx, r.Ref()); err != nil || r.State != run.Terminating {
			return r, err
		}
	}
	return r, fault.New(fault.Unavailable, "the run is changed by too many at once; try again")
}

// seeGone lets a worker that has reported exit by itself, destroys what is
// still there, and returns once the machine is seen gone, or could not be for
// ten minutes. The exit is that of a worker that was not destroyed here.
func (s *Service) seeGone(ctx context.Context, r run.Run) (*run.Exit, error) {
	id, err := s.machineID(ctx, r)
	if err != nil || id == "" {
		return nil, err
	}
	if r.Attempt.Report != nil {
		// A runner that does not answer here is asked again below, where it has
		// ten minutes and no more.
		if exit, gone, err := s.goneWithin(ctx, id, s.config.ExitWait, r.Attempt.StartBy); gone && err == nil {
			return exit, nil
		}
	}
	if err = s.ports.Runner.Destroy(ctx, id); err == nil {
		var gone bool
		if _, gone, err = s.goneWithin(ctx, id, s.config.DestroyWait, r.Attempt.StartBy); gone {
			return nil, nil
		}
	}
	if err == nil {
		err = errors.New("it is still there")
	}
	if s.now().Sub(r.EnteredAt) >= unreachableLimit {
		s.warn(ctx, r, "the machine was not seen gone for ten minutes; the run goes on without", err)
		return nil, nil
	}
	return nil, TryAgain{fmt.Errorf("cannot see machine %s gone: %w", id, err)}
}

// goneWithin waits until the machine is gone, and tells how it ended. One that
// the platform does not know is gone too, but not before the time by which it had
// to be visible: the records may be a backup's, and the machines not.
func (s *Service) goneWithin(ctx context.Context, id string, limit time.Duration, visibleBy time.Time) (exit *run.Exit, gone bool, err error) {
	machine, err := s.ports.Runner.Wait(ctx, id, port.MachineGone, limit)
	if errors.Is(err, port.ErrNotFound) {
		return nil, !s.now().Before(visibleBy), nil
	}
	return exitOf(machine), err == nil && machine.Phase == port.MachineGone, err
}

// machineID is the id of the attempt's machine; empty where there is none. A
// worker that has reported has one, even if its launch has not committed it
// yet: a quick worker overtakes the answer to the call that made its machine.
func (s *Service) machineID(ctx context.Context, r run.Run) (string, error) {
	if r.Attempt.MachineID != "" {
		return r.Attempt.MachineID, nil
	}
	latest, err := s.awaitMachineID(ctx, r)
	if err != nil || latest != "" {
		return latest, err
	}
	machines, err := s.ports.Runner.List(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot list the machines: %w", err)
	}
	for _, m := range machines {
		if m.Owner == (port.MachineOwner{Tenant: r.Tenant, RunID: r.ID, Attempt: r.Attempt.Number}) {
			return m.ID, nil
		}
	}
	return "", nil
}

// awaitMachineID looks at the record again, for a worker that has reported
// until its machine's id is there, at most overtakeLimit.
func (s *Service) awaitMachineID(ctx context.Context, r run.Run) (string, error) {
	timeUp, stop := s.ports.Clock.NewTimer(overtakeLimit)
	defer stop()
	for {
		told, giveUp := s.changes.watch(r.Ref())
		latest, err := s.ports.Store.Load(ctx, r.Ref())
		if err != nil || latest.Attempt.MachineID != "" || r.Attempt.Report == nil {
			giveUp()
			return latest.Attempt.MachineID, err
		}
		select {
		case <-told:
		case <-timeUp:
			giveUp()
			return "", nil
		case <-ctx.Done():
			giveUp()
			return "", ctx.Err()
		}
	}
}

// keep verifies the output of a worker that reported success, and copies it to
// where no worker reaches it. wrong says why there is none to be kept.
func (s *Service) keep(ctx context.Context, r run.Run) (kept *run.Output, wrong *fault.Fault, err error) {
	report := r.Attempt.Report
	if r.Attempt.Outcome != run.OutcomeSucceeded || r.Cancel != nil || report == nil || report.Upload == nil {
		return nil, nil, nil
	}
	upload := *report.Upload
	object, err := s.ports.Outputs.Head(ctx, port.Uploads, upload.Key)
	if err == nil && object.Size == upload.Size {
		object, err = s.ports.Outputs.Accept(ctx, upload.Key, object.ETag)
	}
	if errors.Is(err, port.ErrNotFound) {
		// An earlier try may have kept it and cleared the upload.
		object, err = s.ports.Outputs.Head(ctx, port.Accepted, upload.Key)
	}
	switch {
	case errors.Is(err, port.ErrNotFound):
		return nil, fault.New(fault.OutputMissing, "the output %s that the worker reported is not in the bucket", upload.Key), nil
	case errors.Is(err, port.ErrChanged):
		return nil, nil, TryAgain{err}
	case err != nil:
		return nil, nil, err
	case object.Size != upload.Size:
		return nil, fault.New(fault.OutputMismatch, "the output %s has %d bytes, and the worker reported %d",
			upload.Key, object.Size, upload.Size), nil
	}
	return &run.Output{Upload: upload, ETag: object.ETag, ContentType: object.ContentType}, nil, nil
}

// clear removes what the attempt has uploaded, and what was kept of it where
// nothing is to be kept.
func (s *Service) clear(ctx context.Context, r run.Run, kept *run.Output) error {
	nothing := r.Attempt.Outcome == run.OutcomeSucceeded && r.Cancel == nil && r.Attempt.Report.Upload == nil && r.Attempt.WorkerID == ""
	if r.Attempt.MachineName == "" || nothing {
		return nil
	}
	if kept != nil && r.Attempt.Number == 1 {
		// Nobody else has uploaded for this task, and its own worker has told what
		// it left. Deletes are free, and the two lists of a prefix are not. What a
		// worker leaves that it does not tell of goes by the bucket's own rule.
		return errors.Join(
			s.ports.Outputs.Delete(ctx, port.Uploads, kept.Key),
			s.ports.Outputs.Delete(ctx, port.Uploads, attemptPrefix(r.TaskID, 1)+"log"),
		)
	}
	prefix := OutputPrefix(r.TaskID)
	if err := s.ports.Outputs.DeletePrefix(ctx, port.Uploads, prefix); err != nil {
		return err
	}
	if kept == nil && r.Attempt.Outcome == run.OutcomeSucceeded {
		return s.ports.Outputs.DeletePrefix(ctx, port.Accepted, prefix)
	}
	return nil
}

// OutputPrefix is where a task's worker may upload to.
func OutputPrefix(taskID string) string { return "exports/" + taskID + "/" }
