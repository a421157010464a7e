package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Launch handles the state ContainerCreating: it stores the token, makes the
// machine whose name is committed, commits the machine's id, and waits briefly
// to see it run. It needs Executions, Runner, Signer and Outputs beside Store.
//
// It may be repeated: a live machine of that name is adopted. Who finds that
// the attempt is no longer wanted destroys what it made, and what that has
// uploaded.
func (s *Service) Launch(ctx context.Context, in StepInput) error {
	r, waiting, err := s.enterWait(ctx, in)
	if err != nil || !waiting {
		return err
	}
	attempt := r.Attempt.Number
	if r.Attempt.MachineID == "" {
		if r, err = s.createMachine(ctx, r); err != nil {
			return err
		}
	}
	if r.State != run.ContainerCreating || r.Attempt.Number != attempt || r.Attempt.MachineID == "" {
		return nil // a quick worker has reported, or nobody wants the machine
	}
	machine, err := s.ports.Runner.Wait(ctx, r.Attempt.MachineID, port.MachineRunning, s.config.LaunchWait)
	if err != nil {
		// The sweep sees it start, or the start limit ends the wait.
		s.warn(ctx, r, "cannot see whether the machine has started", err)
		return nil
	}
	return s.seen(ctx, r.Ref(), attempt, machine)
}

// launchGrace is how long a launch goes on whose caller has ended: a stop of the
// local process waits for it. A machine that is made and not committed is one
// that nobody can tell from a lost worker's, once the stop has ended it.
const launchGrace = 5 * time.Second

// outlive gives a context that ends that long after ctx.
func outlive(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		last, done := context.WithTimeout(longer, grace)
		defer done()
		<-last.Done()
		cancel()
	})
	return longer, func() { stop(); cancel() }
}

// makeMachine makes the machine and commits its id. What it returns is the
// record, which says what is next; a machine that nobody wants any more is
// destroyed.
func (s *Service) createMachine(ctx context.Context, r run.Run) (run.Run, error) {
	spec, err := s.machineSpec(ctx, r)
	if err != nil {
		return r, err
	}
	ctx, cancel := outlive(ctx, launchGrace)
	defer cancel()
	machine, err := s.ports.Runner.Launch(ctx, spec)
	if err != nil {
		refused := run.StartRefused{Attempt: r.Attempt.Number, Fault: startFault(err), Rand: s.ports.Rand()}
		s.warn(ctx, r, "the machine was not made", err)
		return s.apply(ctx, r.Ref(), is(refused))
	}
	after, err := s.apply(ctx, r.Ref(), is(run.MachineCreated{
		Attempt: r.Attempt.Number, MachineID: machine.ID, Running: machine.Phase == port.MachineRunning,
	}))
	if err != nil {
		return r, fmt.Errorf("cannot commit the machine's id: %w", err)
	}
	if after.Attempt.Number == r.Attempt.Number && after.Attempt.MachineID == machine.ID {
		return after, nil
	}
	s.warn(ctx, after, "the machine is no longer wanted and is destroyed", errors.New(machine.ID))
	return after, s.discard(ctx, machine, after.Ref(), s.config.DestroyWait)
}

// discard destroys a machine that no run wants, and waits at most limit until it
// is gone. Its worker may have uploaded until then, after the run's own uploads
// were cleared.
func (s *Service) discard(ctx context.Context, m port.Machine, ref run.Ref, limit time.Duration) error {
	if err := s.ports.Runner.Destroy(ctx, m.ID); err != nil {
		return err
	}
	if _, gone, err := s.goneWithin(ctx, m.ID, limit, time.Time{}); !gone {
		return err // a sweep finds it again
	}
	r, err := s.ports.Store.Load(ctx, ref)
	if err != nil || !r.State.Terminal() {
		return err
	}
	return s.ports.Outputs.DeletePrefix(ctx, port.Uploads, OutputPrefix(r.TaskID))
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
func (s *Service) seen(ctx context.Context, ref run.Ref, attempt int, machine port.Machine) error {
	var f run.Fact
	switch machine.Phase {
	case port.MachineRunning:
		f = run.MachineRunning{Attempt: attempt}
	case port.MachineGone:
		f = run.MachineGone{Attempt: attempt, Exit: exitOf(machine)}
	default:
		return nil
	}
	_, err := s.apply(ctx, ref, is(f))
	return err
}

func exitOf(machine port.Machine) *run.Exit {
	if machine.Exit == nil {
		return nil
	}
	return &run.Exit{
		Code: machine.Exit.Code, Signal: machine.Exit.Signal,
		OOM: machine.Exit.OOM, Requested: machine.Exit.Requested,
	}
}

// machineSpec is the machine of the run's attempt, with the environment that
// the export contract asks for and the envelope of the worker contract. It holds
// credentials and a token: it is never logged.
func (s *Service) machineSpec(ctx context.Context, r run.Run) (port.LaunchSpec, error) {
	callback, err := s.callbackURL(ctx, r)
	if err != nil {
		return port.LaunchSpec{}, err
	}
	envelope, err := s.envelope(ctx, r)
	if err != nil {
		return port.LaunchSpec{}, err
	}
	bucket, batch := s.config.Bucket, r.BatchID
	if s.config.CurrentBucket != nil {
		if bucket, err = s.config.CurrentBucket(ctx); err != nil {
			return port.LaunchSpec{}, fmt.Errorf("cannot read the worker's keys: %w", err)
		}
	}
	if batch == "" {
		batch = "single"
	}
	env := map[string]string{
		"TASK_ID": r.TaskID, "BATCH_ID": batch,
		"PI": r.Work.PI, "EXPORT_FORMAT": r.Work.Format, "EXPORT_OPTIONS": string(r.Work.Options),
		"R2_ACCOUNT_ID": bucket.AccountID, "R2_ACCESS_KEY_ID": bucket.AccessKeyID,
		"R2_SECRET_ACCESS_KEY": bucket.SecretAccessKey, "R2_BUCKET": bucket.Bucket,
		"CALLBACK_URL": callback, "SOURCE_API_URL": s.config.SourceURL,
		contract.EnvelopeVariable: envelope,
	}
	if bucket.Endpoint != "" {
		env["R2_ENDPOINT"] = bucket.Endpoint
	}
	if bucket.Region != "" {
		env["R2_REGION"] = bucket.Region
	}
	return port.LaunchSpec{
		Name: r.Attempt.MachineName, Image: r.Work.Image, Region: s.config.Region, Env: env,
		CPUs: s.config.CPUs, MemoryMB: s.config.MemoryMB, StopGrace: r.Policy.CancelGrace,
		Owner: port.MachineOwner{Tenant: r.Tenant, RunID: r.ID, Attempt: r.Attempt.Number},
	}, nil
}
