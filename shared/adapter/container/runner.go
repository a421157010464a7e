package container

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Runner implements port.Runner on a container engine. It is safe for concurrent use.
type Runner struct {
	cfg   Config
	notes notes

	connecting chan struct{} // held while engine is read or set
	engine     *engine       // nil until it responded

	pulls pulls

	pruning sync.Mutex           // held by Prune; it guards ended
	ended   map[string]time.Time // when Prune first saw that a container had ended

	life  context.Context // of pulls and of kills after a grace
	end   context.CancelFunc
	tasks sync.WaitGroup
}

var (
	_ port.Runner      = (*Runner)(nil)
	_ port.MachineLogs = (*Runner)(nil)
)

// New returns a Runner. It makes no call. The caller closes it.
func New(cfg Config) (*Runner, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	r := &Runner{cfg: cfg, connecting: make(chan struct{}, 1), pulls: pulls{running: map[string]*pull{}}, ended: map[string]time.Time{}}
	if r.notes, err = openNotes(cfg.Dir); err != nil {
		return nil, fmt.Errorf("cannot use the folder of notes about containers: %w", err)
	}
	r.life, r.end = context.WithCancel(context.Background())
	for id, n := range r.notes.all() {
		if !n.KillAt.IsZero() {
			r.killLater(id, n.KillAt) // of a process that ended before
		}
	}
	return r, nil
}

// Close stops the background work of the Runner. Containers keep running.
func (r *Runner) Close() error {
	r.end()
	r.tasks.Wait()
	r.connecting <- struct{}{}
	defer func() { <-r.connecting }()
	if r.engine == nil {
		return nil
	}
	return r.engine.api.Close()
}

// Connect connects to the engine, and returns the error if it cannot.
func (r *Runner) Connect(ctx context.Context) error {
	_, err := r.connected(ctx)
	return err
}

// idForm matches the ids of containers.
var idForm = regexp.MustCompile(`^[0-9a-f]{12,64}$`)

func located(m port.Machine) bool { return m.Runner == kind && idForm.MatchString(m.ID) }

// reach returns the engine for a call about a machine that exists. Its fault is Unavailable: a
// machine whose engine is missing is not gone.
func (r *Runner) reach(ctx context.Context, what string) (*engine, error) {
	e, err := r.connected(ctx)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "cannot %s: %s", what, fault.Of(err).Message)
	}
	return e, nil
}

// Inspect implements port.Runner.
func (r *Runner) Inspect(ctx context.Context, m port.Machine) (port.MachineStatus, error) {
	const what = "look the container up"
	if !located(m) {
		return port.MachineStatus{}, fmt.Errorf("cannot %s: %w", what, port.ErrNotFound)
	}
	e, err := r.reach(ctx, what)
	if err != nil {
		return port.MachineStatus{}, err
	}
	found, err := r.inspect(ctx, e, m.ID)
	if errdefs.IsNotFound(err) {
		return port.MachineStatus{}, fmt.Errorf("cannot %s: %w", what, port.ErrNotFound)
	}
	if err != nil {
		return port.MachineStatus{}, failure(ctx, err, what)
	}
	return r.converted(found), nil
}

// inspect returns a container of this Sortie instance. It returns "not found" for one of
// another instance.
func (r *Runner) inspect(ctx context.Context, e *engine, id string) (container.InspectResponse, error) {
	found, err := e.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return container.InspectResponse{}, err
	}
	c := found.Container
	if c.State == nil || c.Config == nil || c.ID == "" {
		return container.InspectResponse{}, errors.New("the answer has no container")
	}
	if c.Config.Labels[keyCluster] != r.cfg.Cluster {
		return container.InspectResponse{}, errdefs.ErrNotFound
	}
	return c, nil
}
