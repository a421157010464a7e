package kubernetes

import (
	"context"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Current is a Runner whose client is replaced when its credentials are rotated. It is safe for
// concurrent use.
type Current struct {
	cfg     Config
	connect func(ctx context.Context) (Client, error)

	mu     sync.Mutex
	client Client
	runner *Runner
}

var (
	_ port.Runner      = (*Current)(nil)
	_ port.MachineLogs = (*Current)(nil)
)

// NewCurrent returns a Runner that polls. Each of its calls first gets the client from connect,
// which returns the same client while the credentials are unchanged. connect makes no call to
// the cluster. cfg needs no Client.
func NewCurrent(cfg Config, connect func(ctx context.Context) (Client, error)) (*Current, error) {
	cfg.Poll = true
	checked := cfg
	checked.Client = &calls{}
	if _, err := checked.complete(); err != nil {
		return nil, err
	}
	return &Current{cfg: cfg, connect: connect}, nil
}

// get returns the Runner with the current client. Fault: Unavailable.
func (c *Current) get(ctx context.Context, what string) (*Runner, error) {
	client, err := c.connect(ctx)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "cannot %s: the credentials of the cluster cannot be used", what)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runner != nil && c.client == client {
		return c.runner, nil
	}
	cfg := c.cfg
	cfg.Client = client
	if c.runner, err = New(cfg); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "cannot %s: the cluster is not configured", what)
	}
	c.client = client
	return c.runner, nil
}

// Launch implements port.Runner.
func (c *Current) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	r, err := c.get(ctx, "launch the machine")
	if err != nil {
		return port.MachineStatus{}, err
	}
	return r.Launch(ctx, spec)
}

// Inspect implements port.Runner.
func (c *Current) Inspect(ctx context.Context, m port.Machine) (port.MachineStatus, error) {
	r, err := c.get(ctx, "look the machine up")
	if err != nil {
		return port.MachineStatus{}, err
	}
	return r.Inspect(ctx, m)
}

// Wait implements port.Runner.
func (c *Current) Wait(ctx context.Context, m port.Machine, phase port.MachinePhase, limit time.Duration) (port.MachineStatus, error) {
	r, err := c.get(ctx, "wait for the machine")
	if err != nil {
		return port.MachineStatus{}, err
	}
	return r.Wait(ctx, m, phase, limit)
}

// List implements port.Runner.
func (c *Current) List(ctx context.Context, each func(port.MachineStatus) bool) error {
	r, err := c.get(ctx, "list the machines")
	if err != nil {
		return err
	}
	return r.List(ctx, each)
}

// Stop implements port.Runner.
func (c *Current) Stop(ctx context.Context, m port.Machine, grace time.Duration) error {
	r, err := c.get(ctx, "stop the machine")
	if err != nil {
		return err
	}
	return r.Stop(ctx, m, grace)
}

// Destroy implements port.Runner.
func (c *Current) Destroy(ctx context.Context, m port.Machine) error {
	r, err := c.get(ctx, "destroy the machine")
	if err != nil {
		return err
	}
	return r.Destroy(ctx, m)
}

// Logs implements port.MachineLogs.
func (c *Current) Logs(ctx context.Context, m port.Machine) ([]byte, error) {
	r, err := c.get(ctx, "read the machine's log")
	if err != nil {
		return nil, err
	}
	return r.Logs(ctx, m)
}
