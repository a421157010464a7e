package counts_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// machines is a Runner whose machines are controlled by the test.
type machines struct {
	made    []*port.MachineStatus
	env     map[string]map[string]string // by machine
	waiting []*port.MachineStatus        // the machines whose worker has not run yet
	calls   int
}

var (
	_ port.Runner      = (*machines)(nil)
	_ port.MachineLogs = (*machines)(nil)
)

// Launch implements port.Runner.
func (m *machines) Launch(_ context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	m.calls++
	one := &port.MachineStatus{
		Machine: port.Machine{Runner: "fly", App: "sortie", ID: fmt.Sprintf("%014x", len(m.made)+1)}, Name: spec.Name,
		Phase: port.MachineRunning, Owner: spec.Owner, CreatedAt: clock.System{}.Now(), Started: true,
	}
	m.made, m.waiting = append(m.made, one), append(m.waiting, one)
	m.env[one.ID] = spec.Env
	return *one, nil
}

// end ends the program of a machine successfully.
func (m *machines) end(one *port.MachineStatus) {
	one.Phase, one.Exit = port.MachineGone, &port.Exit{At: clock.System{}.Now()}
	delete(m.env, one.ID)
}

// Inspect implements port.Runner.
func (m *machines) Inspect(_ context.Context, at port.Machine) (port.MachineStatus, error) {
	m.calls++
	for _, one := range m.made {
		if one.ID == at.ID {
			return *one, nil
		}
	}
	return port.MachineStatus{}, port.ErrNotFound
}

// Wait implements port.Runner. It returns at once, because machines change only between two
// calls.
func (m *machines) Wait(ctx context.Context, at port.Machine, _ port.MachinePhase, _ time.Duration) (port.MachineStatus, error) {
	return m.Inspect(ctx, at)
}

// List implements port.Runner.
func (m *machines) List(_ context.Context, each func(port.MachineStatus) bool) error {
	m.calls++
	for _, one := range m.made {
		if one.Phase != port.MachineGone && !each(*one) {
			break
		}
	}
	return nil
}

// Stop implements port.Runner.
func (m *machines) Stop(context.Context, port.Machine, time.Duration) error {
	m.calls++
	return nil
}

// Destroy implements port.Runner.
func (m *machines) Destroy(context.Context, port.Machine) error {
	m.calls++
	return nil
}

// Logs implements port.MachineLogs.
func (m *machines) Logs(context.Context, port.Machine) ([]byte, error) {
	m.calls++
	return []byte("exported 72 entities in 3 s\n"), nil
}
