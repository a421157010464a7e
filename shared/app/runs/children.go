package runs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Children has the children of runs that fan out; see package children. Each method may be
// repeated.
type Children interface {
	// Begin reads the items of a run in ContainerCreating, and starts its first children.
	Begin(ctx context.Context, r run.Run, read func(context.Context, run.Upload) ([]byte, error)) error
	// Ended counts a child that has ended, and starts the next ones.
	Ended(ctx context.Context, child run.Run) error
	// Reconcile looks at all active children of a run.
	Reconcile(ctx context.Context, ref run.Ref) error
	// Results returns the results of the children, in order.
	Results(ctx context.Context, r run.Run) ([]byte, error)
	// Expire removes unused lists of items, at most most parts. It returns how many it found.
	Expire(ctx context.Context, most int) (found int, err error)
}

// NewChildren creates the Children of a process.
type NewChildren func(Creations, Config) Children

// errNoChildren is the result of a process that leaves the children of runs to the sweep.
var errNoChildren = errors.New("this function does not serve the children of runs; the sweep does")

// StartChildren makes a process start and count the children of runs, and leaves the other actions
// to a sweep.
func StartChildren(hex Hex, children NewChildren) EndActions { return ActForJobs(nil, hex, children) }

// childrenOf returns the children of runs; an error in a process that leaves them to the sweep.
func (s *effects) childrenOf() (Children, error) {
	if s.actions == nil || s.actions.children == nil {
		return nil, errNoChildren
	}
	return s.actions.children, nil
}

// reconcileChildren counts a child that has ended, or looks at all children of a run.
func (s *effects) reconcileChildren(ctx context.Context, r run.Run) error {
	children, err := s.childrenOf()
	switch {
	case err != nil:
		return err
	case r.Child != nil:
		return children.Ended(ctx, r)
	}
	return children.Reconcile(ctx, r.Ref())
}

// CreateChild stores a new child of a run, which has its ids. If it cannot join its pool, or its item
// is too long for the templates of the job, it is skipped. If it exists, CreateChild returns it as it is stored.
func (c Creations) CreateChild(ctx context.Context, r run.Run) (run.Run, error) {
	s := c.requests
	switch {
	case r.Missed != nil:
	case len(job.CheckExpanded(r)) > 0:
		r.Missed = &run.Missed{Reason: run.SkipInputs, Count: 1, Until: r.Scheduled()}
	default:
		missed, err := s.refused(ctx, &r)
		if err != nil {
			return run.Run{}, err
		}
		if missed != nil && missed.Reason == run.SkipQueueFull {
			return run.Run{}, fault.New(fault.Unavailable, "the queue of pool %s is full", r.Slot.Pool)
		}
		r.Missed = missed
	}
	created, _, err := s.createRun(ctx, r, nil, s.now())
	if err != nil || created.State != run.Pending {
		s.queue.Forget(r)
	}
	if errors.Is(err, port.ErrConflict) {
		return s.store.Load(ctx, r.Ref())
	}
	return created, err
}

// begin starts the children of a run that has no machine.
func (s *Launches) begin(ctx context.Context, r run.Run) error {
	children, err := s.childrenOf()
	if err != nil {
		return err
	}
	return children.Begin(ctx, r, s.outputs.read)
}

// read reads an accepted output, at most fan.MaxOutput bytes of it.
func (s *Outputs) read(ctx context.Context, output run.Upload) ([]byte, error) {
	body, _, err := s.outputs.Open(ctx, port.Accepted, output.Key, port.Span{})
	if err != nil {
		return nil, fmt.Errorf("cannot open the output: %w", err)
	}
	content, err := io.ReadAll(io.LimitReader(body, fan.MaxOutput))
	_ = body.Close()
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "cannot read the output")
	}
	return content, nil
}

// The name and the type of the results of a run with children.
const resultsName, resultsType = "results.jsonl", "application/jsonl"

// collectChildren stores the results of the children of a run as its output.
func (s *Termination) collectChildren(ctx context.Context, r run.Run) (run.Settled, error) {
	children, err := s.childrenOf()
	if err != nil || r.Fan == nil {
		return run.Settled{}, err
	}
	content, err := children.Results(ctx, r)
	if err != nil {
		return run.Settled{}, fmt.Errorf("cannot collect the results of the children: %w", err)
	}
	output := run.Output{Upload: run.Upload{
		Key: limit.AttemptPrefix(r.TaskID, r.Attempt.Number) + resultsName, FileName: resultsName, Size: int64(len(content)),
	}}
	object, err := s.outputs.put(ctx, output.Key, resultsType, content)
	if err != nil {
		return run.Settled{}, fmt.Errorf("cannot store the results of the children: %w", err)
	}
	output.ETag = object.ETag
	if r.PassesOutput() && output.Size <= limit.OutputText {
		output.Text = new(string(content))
	}
	return run.Settled{Output: &output}, nil
}

// put stores an object of any size in the bucket of accepted outputs.
func (s *Outputs) put(ctx context.Context, key, contentType string, content []byte) (port.Object, error) {
	if err := s.outputs.Upload(ctx, port.Accepted, key, contentType, bytes.NewReader(content), int64(len(content))); err != nil {
		return port.Object{}, err
	}
	return s.outputs.Head(ctx, port.Accepted, key)
}

// sweepItems removes the lists of items that no run uses any more.
func (s *Sweeper) sweepItems(ctx context.Context) error {
	children, err := s.childrenOf()
	if err != nil {
		return nil //nolint:nilerr // another process sweeps
	}
	return s.parts.UnlessResting("items", func() (found int, err error) { return children.Expire(ctx, sweepPage) })
}
