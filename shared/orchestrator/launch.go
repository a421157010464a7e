package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/run"
)

// Launch handles the state ContainerCreating: it stores the token, makes the
// machine whose name is committed, commits the machine's id, and waits briefly
// to see it run. It needs Executions, Runner and Signer beside Store.
//
// It may be repeated: a live machine of that name is adopted. Who finds that
// the attempt is no longer wanted destroys what it made.
func (s *Service) Launch(ctx context.Context, in StepInput) error {
	r, waiting, err := s.enterWait(ctx, in)
	if err != nil || !waiting {
		return err
	}
	attempt, machineID := r.Attempt.Number, r.Attempt.MachineID
	if machineID == "" {
		if machineID, err = s.makeMachine(ctx, r); err != nil || machineID == "" {
			return err
		}
	}
	machine, err := s.ports.Runner.Wait(ctx, machineID, MachineRunning, s.config.LaunchWait)
	if err != nil {
		// The sweep sees it start, or the start limit ends the wait.
		s.warn(ctx, r, "cannot see whether the machine has started", err)
		return nil
	}
	return s.seen(ctx, r.Ref(), attempt, machine)
}

// makeMachine makes the machine and commits its id. The id is empty where no
// machine came of it, or one that nobody wants any more; the record then says
// what is next.
func (s *Service) makeMachine(ctx context.Context, r run.Run) (string, error) {
	spec, err := s.machineSpec(ctx, r)
	if err != nil {
		return "", err
	}
	machine, err := s.ports.Runner.Launch(ctx, spec)
	if err != nil {
		refused := run.StartRefused{Attempt: r.Attempt.Number, Fault: startFault(err), Roll: s.ports.Roll()}
		s.warn(ctx, r, "the machine was not made", err)
		_, err = s.apply(ctx, r.Ref(), is(refused))
		return "", err
	}
	after, err := s.apply(ctx, r.Ref(), is(run.MachineMade{Attempt: r.Attempt.Number, MachineID: machine.ID}))
	if err != nil {
		return "", fmt.Errorf("cannot commit the machine's id: %w", err)
	}
	if after.Attempt.Number == r.Attempt.Number && after.Attempt.MachineID == machine.ID {
		return machine.ID, nil
	}
	s.warn(ctx, after, "the machine is no longer wanted and is destroyed", errors.New(machine.ID))
	return "", s.ports.Runner.Destroy(ctx, machine.ID)
}

// startFault is the fault of a launch; anything that is none says nothing about
// whether there is a machine.
func startFault(err error) *fault.Fault {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f
	}
	return fault.Wrap(err, fault.Unavailable, "the runner did not answer")
}

// seen makes facts of what a runner shows about an attempt's machine.
func (s *Service) seen(ctx context.Context, ref run.Ref, attempt int, machine Machine) error {
	var f run.Fact
	switch machine.Phase {
	case MachineRunning:
		f = run.MachineRunning{Attempt: attempt}
	case MachineGone:
		f = run.MachineGone{Attempt: attempt, Exit: exitOf(machine)}
	default:
		return nil
	}
	_, err := s.apply(ctx, ref, is(f))
	return err
}

func exitOf(machine Machine) *run.Exit {
	if machine.Exit == nil {
		return nil
	}
	return &run.Exit{
		Code: machine.Exit.Code, Signal: machine.Exit.Signal,
		OOM: machine.Exit.OOM, Requested: machine.Exit.Requested,
	}
}

// machineSpec is the machine of the run's attempt, with the environment that
// the export contract asks for. It holds credentials and a token: it is never
// logged.
func (s *Service) machineSpec(ctx context.Context, r run.Run) (MachineSpec, error) {
	callback, err := s.callbackURL(ctx, r)
	if err != nil {
		return MachineSpec{}, err
	}
	bucket, batch := s.config.Bucket, r.BatchID
	if batch == "" {
		batch = "single"
	}
	env := map[string]string{
		"TASK_ID": r.TaskID, "BATCH_ID": batch,
		"PI": r.Work.PI, "EXPORT_FORMAT": r.Work.Format, "EXPORT_OPTIONS": string(r.Work.Options),
		"R2_ACCOUNT_ID": bucket.AccountID, "R2_ACCESS_KEY_ID": bucket.AccessKeyID,
		"R2_SECRET_ACCESS_KEY": bucket.SecretAccessKey, "R2_BUCKET": bucket.Bucket,
		"CALLBACK_URL": callback, "SOURCE_API_URL": s.config.SourceURL,
	}
	if bucket.Endpoint != "" {
		env["R2_ENDPOINT"] = bucket.Endpoint
	}
	return MachineSpec{
		Name: r.Attempt.MachineName, Image: r.Work.Image, Region: s.config.Region, Env: env,
		CPUs: s.config.CPUs, MemoryMB: s.config.MemoryMB, StopGrace: r.Policy.CancelGrace,
		Owner: MachineOwner{Tenant: r.Tenant, RunID: r.ID, Attempt: r.Attempt.Number},
	}, nil
}
