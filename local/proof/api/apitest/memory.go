package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// executions accepts every call and does nothing. Tests invoke the steps themselves.
type executions struct{}

func (executions) Start(context.Context, string, json.RawMessage) error   { return nil }
func (executions) Succeed(context.Context, string, json.RawMessage) error { return nil }
func (executions) Fail(context.Context, string, string, string) error     { return nil }
func (executions) Heartbeat(context.Context, string) error                { return nil }
func (executions) Stop(context.Context, string, string) error             { return nil }
func (executions) Describe(_ context.Context, name string) (port.Execution, error) {
	return port.Execution{Name: name, Status: port.ExecutionRunning}, nil
}

// machines simulates machines. They run from launch until they are stopped, destroyed, or
// awaited in phase MachineGone.
type machines struct {
	mu      sync.Mutex
	created map[string]port.LaunchSpec
	gone    map[string]bool
	// text has the logs of machines, by machine id.
	text map[string]string
}

func newMachines() *machines {
	return &machines{created: map[string]port.LaunchSpec{}, gone: map[string]bool{}, text: map[string]string{}}
}

func (m *machines) env(t *testing.T, id string) map[string]string {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	spec, ok := m.created[id]
	if !ok {
		t.Fatalf("got no machine %q, want one", id)
	}
	return spec.Env
}

func (m *machines) end(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone[id] = true
}

// Logs implements port.MachineLogs.
func (m *machines) Logs(_ context.Context, at port.Machine) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, ok := m.text[at.ID]
	if !ok {
		return nil, port.ErrNotFound
	}
	return []byte(text), nil
}

func (m *machines) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	m.mu.Lock()
	m.created["machine-"+spec.Name] = spec
	m.mu.Unlock()
	return m.Inspect(ctx, port.Machine{Runner: "memory", ID: "machine-" + spec.Name})
}

func (m *machines) Inspect(_ context.Context, at port.Machine) (port.MachineStatus, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	spec, ok := m.created[at.ID]
	if !ok {
		return port.MachineStatus{}, port.ErrNotFound
	}
	machine := port.MachineStatus{Machine: at, Name: spec.Name, Owner: spec.Owner, Phase: port.MachineRunning}
	if m.gone[at.ID] {
		machine.Phase, machine.Exit = port.MachineGone, &port.Exit{Code: 1}
	}
	return machine, nil
}

func (m *machines) Wait(ctx context.Context, at port.Machine, phase port.MachinePhase, _ time.Duration) (port.MachineStatus, error) {
	if phase == port.MachineGone {
		m.end(at.ID)
	}
	return m.Inspect(ctx, at)
}

func (m *machines) List(ctx context.Context, each func(port.MachineStatus) bool) error {
	m.mu.Lock()
	ids := make([]string, 0, len(m.created))
	for id := range m.created {
		ids = append(ids, id)
	}
	m.mu.Unlock()
	for _, id := range ids {
		if machine, err := m.Inspect(ctx, port.Machine{Runner: "memory", ID: id}); err == nil && !each(machine) {
			return nil
		}
	}
	return nil
}

func (m *machines) Stop(_ context.Context, at port.Machine, _ time.Duration) error {
	m.end(at.ID)
	return nil
}

func (m *machines) Destroy(_ context.Context, at port.Machine) error { m.end(at.ID); return nil }

// logs is a buffer for log lines. It is safe for concurrent use.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed and replaced when text grows
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.more)
	l.more = make(chan struct{})
	return l.text.Write(p)
}

// await returns once the log contains the text the given number of times, or ctx ends.
func (l *logs) await(ctx context.Context, text string, times int) {
	for {
		l.mu.Lock()
		found, more := bytes.Count(l.text.Bytes(), []byte(text)), l.more
		l.mu.Unlock()
		if found >= times {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
