package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/app/about"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/host"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// launchGrace is how long a launch continues after its caller's context ends. A local process
// waits for it before it stops. If the machine's id were not committed, a machine that the stop
// has ended would look like one whose worker was lost.
const launchGrace = 5 * time.Second

// Launches handles the state ContainerCreating.
type Launches struct {
	*Machines
	outputs     *Outputs
	grants      grants.Grants
	bucket      grants.BucketSource
	secrets     port.Secrets
	environment Environment
	rand        Rand
	config      Config
}

// NewLaunches returns the handler of ContainerCreating. environment encodes the assignment of a
// worker.
func NewLaunches(
	machines *Machines, tokens *grants.Tokens, outputs *Outputs, bucket grants.BucketSource, secrets port.Secrets, environment Environment,
	rand Rand, config Config,
) *Launches {
	return &Launches{
		Machines: machines, outputs: outputs, grants: grants.NewGrants(tokens, outputs.outputs, config.TokenTTL),
		bucket: bucket, secrets: secrets, environment: environment, rand: rand, config: config,
	}
}

// Assignment is the input of a worker's environment. It contains secrets and is never logged.
type Assignment struct {
	Run   run.Run
	Grant grants.Grant
	// Variables is the environment of the run's program, with the values of its secrets.
	Variables map[string]string
	// InputURL is a presigned URL of the input of the run's program; empty without one.
	InputURL string
	// ParentOutputURL is a presigned URL of the output of the run that triggered this one;
	// empty without one.
	ParentOutputURL string
	// UpstreamURLs are presigned URLs of the outputs of the runs that this one came after, by job.
	UpstreamURLs map[string]string
	// StoreUpstream stores the description of these runs and returns a presigned URL. It is nil for
	// one that fits into a variable.
	StoreUpstream func(text []byte) (url string, err error)
	// Bucket is zero for a worker that gets only presigned URLs.
	Bucket      grants.WorkerBucket
	CallbackURL string
	PublicURL   string
	SourceURL   string
	CPUs        int
	MemoryMB    int
}

// inputType is the content type of the input of a program.
const inputType = "application/octet-stream"

// Environment encodes an assignment as environment variables.
type Environment func(Assignment) (map[string]string, error)

// Launch handles the state ContainerCreating: it stores the token, creates the machine whose
// name is committed, commits the machine's id, and waits briefly until it runs.
//
// It is idempotent: it adopts a live machine of that name. If the attempt has ended meanwhile,
// it destroys the machine and deletes its uploads.
func (s *Launches) Launch(ctx context.Context, in StepInput) error {
	ctx = countCalls(ctx, in.Ref)
	r, waiting, err := s.enterWait(ctx, in)
	if err != nil || !waiting {
		return err
	}
	if r.FansOut() {
		return s.begin(ctx, r)
	}
	attempt := r.Attempt.Number
	for stuck := -1; stuck < r.Attempt.StuckWarm; { // repeats after each warm machine that did not start
		stuck = r.Attempt.StuckWarm
		if !r.Attempt.Machine.Known() {
			r, err = s.create(ctx, r)
		}
		if err == nil && r.IsCurrent(attempt) && r.State == run.ContainerCreating && r.Attempt.Machine.Known() && r.Attempt.Warm != nil {
			r, err = s.awaitWarm(ctx, r)
		}
		if err != nil {
			return err
		}
		if r.State != run.ContainerCreating || r.Attempt.Number != attempt || r.Queued() {
			return nil // a fast worker has reported, or the attempt is over
		}
	}
	if !r.Attempt.Machine.Known() || r.Attempt.Warm != nil {
		return nil
	}
	machine, err := s.runner.Wait(ctx, r.Attempt.Machine, port.MachineRunning, s.config.LaunchWait)
	if err != nil {
		// The sweep observes the start, or the start limit ends the wait.
		s.warn(ctx, r, "cannot see whether the machine has started", err)
		return nil
	}
	if shown := s.factOf(ctx, attempt, machine); shown != nil {
		_, err = s.apply(ctx, r.Ref(), shown)
	}
	return err
}

// outlive returns a context that ends grace after ctx.
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

// create creates the machine and commits its id. It returns the newest record. A
// machine whose attempt is over is destroyed.
func (s *Launches) create(ctx context.Context, r run.Run) (run.Run, error) {
	if r.Work.Program != nil && !r.Exec && slices.Contains(s.host.Bound, r.Work.Image) {
		// The image became the name of a host program after the run was accepted.
		f := fault.New(fault.Image, "%s", host.MissingExec(port.Identity{}, "image").Message)
		f.Retryable = false
		return s.refused(ctx, r, f)
	}
	r, err := s.claimWarm(ctx, r)
	if err != nil || r.State != run.ContainerCreating || r.Queued() || r.Attempt.Machine.Known() {
		return r, err
	}
	if r.Attempt.Warm != nil {
		return s.startWarm(ctx, r)
	}
	r, permitted, err := s.awaitPermit(ctx, r)
	if err != nil || !permitted {
		return r, err
	}
	spec, err := s.spec(ctx, r)
	if f, ok := errors.AsType[*fault.Fault](err); ok && f.Code == fault.SecretMissing {
		return s.refused(ctx, r, f)
	}
	if err != nil {
		return r, err
	}
	ctx, cancel := outlive(ctx, launchGrace)
	defer cancel()
	machine, err := s.runner.Launch(ctx, spec)
	if err != nil {
		s.warn(ctx, r, "the machine was not created", err)
		return s.refused(ctx, r, port.StartFault(err))
	}
	s.startAccepted(ctx, r)
	s.endOutdated(ctx, r, spec.Image, machine)
	return s.created(ctx, r, machine)
}

// created commits the machine of the run's attempt. It returns the newest record.
func (s *Launches) created(ctx context.Context, r run.Run, machine port.MachineStatus) (run.Run, error) {
	after, err := s.apply(ctx, r.Ref(), constantFact(run.MachineCreated{
		Attempt: r.Attempt.Number, Machine: machine.Machine, Running: machine.Phase == port.MachineRunning,
	}))
	if err != nil {
		return r, fmt.Errorf("cannot commit the machine's id: %w", err)
	}
	if after.Attempt.Number == r.Attempt.Number && after.Attempt.Machine.Key() == machine.Key() {
		return after, nil
	}
	s.log.LogAttrs(ctx, slog.LevelWarn, "the attempt of a new machine is over; the machine is destroyed", about.Machine(machine, after)...)
	if ours, err := s.endReusable(ctx, machine.Reuse, machine.Owner); err != nil || !ours {
		return after, err
	}
	return after, s.discard(ctx, s.outputs, machine, after.Ref(), s.config.DestroyWait)
}

// spec describes the machine of the run's attempt. Its environment has credentials
// and a token: it is never logged.
func (s *Launches) spec(ctx context.Context, r run.Run) (port.LaunchSpec, error) {
	if r.Work.Kind == spec.KindExport && s.config.SourceURL == "" { // the run was created while the deployment had an entity API
		return port.LaunchSpec{}, fault.New(fault.LaunchRefused, "this deployment has no entity API to export from")
	}
	r.Work.Program = r.Expanded()
	size := r.Work.Resources
	assignment := Assignment{
		Run: r, PublicURL: s.config.PublicURL, SourceURL: s.config.SourceURL,
		CPUs: cmp.Or(size.CPUs, s.config.CPUs), MemoryMB: cmp.Or(size.MemoryMB, s.config.MemoryMB),
	}
	var err error
	if assignment.CallbackURL, err = s.grants.CallbackURL(ctx, r, s.config.PublicURL); err != nil {
		return port.LaunchSpec{}, err
	}
	if assignment.Grant, err = s.grants.First(ctx, r); err != nil {
		return port.LaunchSpec{}, err
	}
	if assignment.Variables, err = grants.Variables(ctx, s.secrets, r); err != nil {
		return port.LaunchSpec{}, err
	}
	if input := r.Input(); input != nil {
		key, err := s.inputKey(ctx, r, *input)
		if err != nil {
			return port.LaunchSpec{}, err
		}
		ttl := assignment.Grant.ExpiresAt.Sub(s.now())
		if assignment.InputURL, err = s.outputs.outputs.PresignGet(ctx, key, "inline", inputType, ttl); err != nil {
			return port.LaunchSpec{}, fmt.Errorf("cannot sign the URL of the input: %w", err)
		}
	}
	if r.Parent != nil && r.Parent.Output != nil && r.Work.Program != nil {
		ttl := assignment.Grant.ExpiresAt.Sub(s.now())
		if assignment.ParentOutputURL, err = s.outputs.outputs.PresignGet(ctx, r.Parent.Output.Key, "inline", inputType, ttl); err != nil {
			return port.LaunchSpec{}, fmt.Errorf("cannot sign the URL of the parent's output: %w", err)
		}
	}
	if assignment.UpstreamURLs, err = s.upstreamURLs(ctx, r, assignment.Grant.ExpiresAt.Sub(s.now())); err != nil {
		return port.LaunchSpec{}, err
	}
	if r.StoresUpstream() {
		assignment.StoreUpstream = func(text []byte) (string, error) {
			return s.storeUpstream(ctx, r, text, assignment.Grant.ExpiresAt.Sub(s.now()))
		}
	}
	if s.givesKeys(r.Work) {
		if assignment.Bucket, err = s.bucket(ctx); err != nil {
			return port.LaunchSpec{}, fmt.Errorf("cannot read the worker's bucket keys: %w", err)
		}
	}
	env, err := s.environment(assignment)
	if err != nil {
		return port.LaunchSpec{}, fmt.Errorf("cannot encode the worker's environment: %w", err)
	}
	var command []string
	if r.Work.Program != nil {
		command = r.Work.Program.Command
	}
	return port.LaunchSpec{
		Placement: r.Attempt.Place(), JobID: r.JobID, ScheduledAt: r.ScheduledAt, PodSpec: r.Work.PodSpec,
		Command: command, Name: r.Attempt.MachineName, App: r.Attempt.App, Image: cmp.Or(r.Work.Image, s.config.Image), Env: env,
		Region: s.config.region(r.Work, r.Attempt.Place()), CPUs: assignment.CPUs, MemoryMB: assignment.MemoryMB, StopGrace: r.Policy.CancelGrace, MaxLife: maxLife(r.Policy), Owner: ownerOf(r),
	}, nil
}

// upstreamURLs returns Assignment.UpstreamURLs, which are valid for ttl.
func (s *Launches) upstreamURLs(ctx context.Context, r run.Run, ttl time.Duration) (map[string]string, error) {
	if r.Graph == nil || r.Work.Program == nil {
		return nil, nil
	}
	urls := map[string]string{}
	for _, u := range r.Graph.Upstream {
		if u.Output == nil {
			continue
		}
		url, err := s.outputs.outputs.PresignGet(ctx, u.Output.Key, "inline", inputType, ttl)
		if err != nil {
			return nil, fmt.Errorf("cannot sign the URL of the output of run %s: %w", u.RunID, err)
		}
		urls[u.JobID] = url
	}
	return urls, nil
}

// storeUpstream stores the description of the runs that r came after. The URL is valid for ttl.
func (s *Launches) storeUpstream(ctx context.Context, r run.Run, text []byte, ttl time.Duration) (string, error) {
	key := limit.UpstreamKey(r.Tenant, r.TaskID)
	if err := s.outputs.outputs.Put(ctx, port.Accepted, key, inputType, text); err != nil {
		return "", fmt.Errorf("cannot store the upstream runs: %w", err)
	}
	url, err := s.outputs.outputs.PresignGet(ctx, key, "inline", inputType, ttl)
	if err != nil {
		return "", fmt.Errorf("cannot sign the URL of the upstream runs: %w", err)
	}
	return url, nil
}

// lifeMargin is the time that maxLife adds to the limits of an attempt.
const lifeMargin = 10 * time.Minute

// maxLife returns the time after which the platform ends a machine that Sortie has lost. It
// exceeds the sum of the limits of an attempt.
func maxLife(p spec.Policy) time.Duration {
	return p.StartTimeout + p.TimeLimit + p.CancelGrace + lifeMargin
}

// givesKeys reports whether the worker gets the key pair of the uploads bucket. The
// deployment can forbid it. A program gets it only if its job requests it.
func (s *Launches) givesKeys(w spec.Work) bool {
	asked := w.BucketCredentials
	if asked == "" && w.Program != nil {
		asked = spec.BucketEnvelope
	}
	return s.config.BucketCredentials != spec.BucketEnvelope && asked != spec.BucketEnvelope
}

// inputKey returns the object key of the run's input. It first stores an inline text in the
// object store.
func (s *Launches) inputKey(ctx context.Context, r run.Run, input spec.Input) (string, error) {
	if input.Key != "" {
		return input.Key, nil
	}
	key := limit.InputKey(r.Tenant, r.TaskID)
	if err := s.outputs.outputs.Put(ctx, port.Accepted, key, inputType, []byte(input.Text)); err != nil {
		return "", fmt.Errorf("cannot store the input: %w", err)
	}
	return key, nil
}
