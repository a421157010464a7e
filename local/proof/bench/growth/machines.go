package growth

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// machines is a Runner whose machines do nothing by themselves.
type machines struct {
	clock   *clock.Virtual
	made    int
	known   map[string]*machine // with those that have ended
	waiting []*machine          // their workers have not run yet
}

type machine struct {
	port.MachineStatus
	env map[string]string
}

func newMachines(at time.Time) *machines {
	return &machines{clock: clock.NewVirtual(at), known: map[string]*machine{}}
}

var (
	_ port.Runner      = (*machines)(nil)
	_ port.MachineLogs = (*machines)(nil)
)

// Launch implements port.Runner.
func (m *machines) Launch(_ context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	m.made++
	one := &machine{env: spec.Env, MachineStatus: port.MachineStatus{
		Machine: port.Machine{Runner: "fly", App: "sortie", ID: fmt.Sprintf("%014x", m.made)}, Name: spec.Name,
		Phase: port.MachineRunning, Owner: spec.Owner, CreatedAt: m.clock.Now(), Started: true,
	}}
	m.known[one.ID] = one
	m.waiting = append(m.waiting, one)
	return one.MachineStatus, nil
}

// Inspect implements port.Runner.
func (m *machines) Inspect(_ context.Context, at port.Machine) (port.MachineStatus, error) {
	if one, ok := m.known[at.ID]; ok {
		return one.MachineStatus, nil
	}
	return port.MachineStatus{}, port.ErrNotFound
}

// Wait implements port.Runner. It returns at once, because machines change only between two
// calls.
func (m *machines) Wait(ctx context.Context, at port.Machine, _ port.MachinePhase, _ time.Duration) (port.MachineStatus, error) {
	return m.Inspect(ctx, at)
}

// take returns the machine of a run whose worker has not run yet, or nil.
func (m *machines) take(id string) *machine {
	i := slices.IndexFunc(m.waiting, func(one *machine) bool { return one.Owner.RunID == id })
	if i < 0 {
		return nil
	}
	one := m.waiting[i]
	m.waiting = slices.Delete(m.waiting, i, i+1)
	return one
}

// end ends the program of a machine successfully.
func (m *machines) end(one *machine) {
	one.Phase, one.Exit = port.MachineGone, &port.Exit{At: m.clock.Now()}
	one.env = nil
}

// List implements port.Runner.
func (m *machines) List(_ context.Context, each func(port.MachineStatus) bool) error {
	for _, one := range m.known {
		if one.Phase != port.MachineGone && !each(one.MachineStatus) {
			break
		}
	}
	return nil
}

// Stop implements port.Runner.
func (m *machines) Stop(context.Context, port.Machine, time.Duration) error { return nil }

// Destroy implements port.Runner.
func (m *machines) Destroy(_ context.Context, at port.Machine) error {
	delete(m.known, at.ID)
	return nil
}

// Logs implements port.MachineLogs.
func (m *machines) Logs(context.Context, port.Machine) ([]byte, error) {
	return []byte("exported 72 entities in 3 s\n"), nil
}
