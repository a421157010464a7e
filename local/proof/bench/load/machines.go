package load

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// The delays of the platform: a creation, and the start of its program.
const (
	createDelay = 1500 * time.Millisecond
	bootDelay   = 300 * time.Millisecond
	listDelay   = 100 * time.Millisecond
)

// machines is a platform without a limit of creations. Each machine runs a worker with the
// worker contract.
type machines struct {
	w       *world
	working sync.WaitGroup

	mu  sync.Mutex
	all map[string]*machine
}

type machine struct {
	status port.MachineStatus
	// gone is closed when the program has ended.
	gone chan struct{}
}

var _ port.Runner = (*machines)(nil)

// Launch implements port.Runner.
func (m *machines) Launch(_ context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	pause(createDelay)
	m.mu.Lock()
	defer m.mu.Unlock()
	one := &machine{gone: make(chan struct{}), status: port.MachineStatus{
		Machine: port.Machine{Runner: "fly", App: "sortie", ID: fmt.Sprintf("%014x", len(m.all)+1)}, Name: spec.Name,
		Phase: port.MachineRunning, Owner: spec.Owner, CreatedAt: clock.System{}.Now(), Started: true,
	}}
	m.all[one.status.ID] = one
	m.working.Go(func() {
		pause(bootDelay)
		m.work(one.status.ID, spec.Env)
		m.end(one)
	})
	return one.status, nil
}

func (m *machines) end(one *machine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one.status.Phase, one.status.Exit = port.MachineGone, &port.Exit{At: clock.System{}.Now()}
	close(one.gone)
}

// work is the worker: started, heartbeats and completed, each repeated until it is answered.
func (m *machines) work(id string, env map[string]string) {
	var e contract.TaskEnvelope
	if err := json.Unmarshal([]byte(env[contract.EnvelopeVariable]), &e); err != nil {
		return
	}
	report := func(what, members string) bool {
		body := fmt.Sprintf(`{"attempt":%d,"workerId":%q%s}`, e.Attempt, id, members)
		for range 20 {
			status, _ := m.w.call(0, http.MethodPost, "/v1/tasks/"+e.TaskID+"/"+what, e.TaskToken, body)
			if status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
				return status == http.StatusOK
			}
			pause(time.Second)
		}
		return false
	}
	if !report("started", "") {
		return
	}
	m.w.change(e.TaskID, func(k *mark) { k.started, k.attempts = time.Now(), e.Attempt })
	lasts, _ := strconv.Atoi(env["LASTS"])
	for end := time.Now().Add(time.Duration(lasts) * time.Millisecond); time.Now().Before(end); {
		pause(min(beatInterval, time.Until(end)))
		if time.Now().Before(end) && !report("heartbeat", "") {
			return
		}
	}
	m.w.change(e.TaskID, func(k *mark) { k.reported = time.Now() })
	if report("completed", `,"outcome":"SUCCEEDED"`) {
		m.w.change(e.TaskID, func(k *mark) { k.ended = time.Now() })
	}
}

// Inspect implements port.Runner.
func (m *machines) Inspect(_ context.Context, at port.Machine) (port.MachineStatus, error) {
	pause(listDelay)
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := m.all[at.ID]; one != nil {
		return one.status, nil
	}
	return port.MachineStatus{}, port.ErrNotFound
}

// Wait implements port.Runner.
func (m *machines) Wait(ctx context.Context, at port.Machine, _ port.MachinePhase, most time.Duration) (port.MachineStatus, error) {
	m.mu.Lock()
	one := m.all[at.ID]
	m.mu.Unlock()
	if one != nil {
		timer, stop := clock.System{}.NewTimer(most)
		defer stop()
		select {
		case <-one.gone:
		case <-timer:
		case <-ctx.Done():
		}
	}
	return m.Inspect(ctx, at)
}

// List implements port.Runner.
func (m *machines) List(_ context.Context, each func(port.MachineStatus) bool) error {
	pause(listDelay)
	m.mu.Lock()
	var living []port.MachineStatus
	for _, one := range m.all {
		if one.status.Phase != port.MachineGone {
			living = append(living, one.status)
		}
	}
	m.mu.Unlock()
	for _, one := range living { // each makes calls, and so waits
		if !each(one) {
			break
		}
	}
	return nil
}

// Stop implements port.Runner.
func (m *machines) Stop(context.Context, port.Machine, time.Duration) error { return nil }

// Destroy implements port.Runner.
func (m *machines) Destroy(context.Context, port.Machine) error { return nil }
