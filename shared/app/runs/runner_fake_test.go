package runs_test

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// runner is a platform whose machines start when Wait is called.
type runner struct {
	recycler
	// calls counts the calls for one run.
	calls    int
	h        *fixture
	launched []*machine
	// during is called once in the next launch, after the machine exists. Its error is the
	// error of the launch.
	during func(*machine) error
	// stuck reports that machines never start, ignoresSIGTERM that Stop has no effect, and
	// indestructible that neither Wait nor Destroy ends a machine.
	stuck, ignoresSIGTERM, indestructible bool
	// limited reports that the platform limits creations to the tokens of a bucket that gets
	// one per second, burst at most. refused counts the creations above that.
	limited  bool
	tokens   float64
	burst    float64
	tokensAt time.Time
	refused  int
	// paces are the documented limits of several apps, which buckets enforces; nil for one
	// app without a documented burst.
	paces   []fleet.StartPace
	buckets map[string]*rate.Limiter
	// unreachable fails every inspection.
	unreachable bool
	// silent is a runner whose machines cannot be listed.
	silent  string
	stopped []string
	// warmStarts counts the starts of warm machines.
	warmStarts int
	// digest is the digest of the images of new machines.
	digest string
	// seen is called once, after the next wait for the end of a machine.
	seen func()
	// beforeWarm is called once, before the next start of a warm machine. If it returns an
	// error, the call is lost.
	beforeWarm func() error
}

type machine struct {
	port.MachineStatus
	spec port.LaunchSpec
	// stuck reports that it does not start, late that it starts while it is destroyed.
	stuck, late bool
	// awaited is called after each wait that has timed out; nil for no call.
	awaited func()
	// hidden machines are in neither List nor Inspect.
	hidden bool
}

func newRunner(h *fixture) *runner { return &runner{h: h} }

// last returns the machine of the last launch.
func (r *runner) last() *machine {
	r.h.Helper()
	if len(r.launched) == 0 {
		r.h.Fatal("got no launched machine, want one")
	}
	return r.launched[len(r.launched)-1]
}

func (r *runner) find(at port.Machine) *machine {
	for _, m := range r.launched {
		if m.Key() == at.Key() {
			return m
		}
	}
	return nil
}

func (m *machine) exit(code int) {
	m.Phase, m.Exit = port.MachineGone, &port.Exit{Code: code}
}

// limitStarts limits creations to one per second with a burst; 0 allows none.
func (h *fixture) limitStarts(burst int) {
	h.runner.limited, h.runner.burst, h.runner.tokens, h.runner.tokensAt = true, float64(burst), float64(burst), h.clock.now
}

// StartLimits implements port.StartLimits.
func (r *runner) StartLimits(platform.Placement) []fleet.StartPace {
	if r.paces != nil {
		return r.paces
	}
	return []fleet.StartPace{{App: "app", Interval: 1050 * time.Millisecond}}
}

// AppOf implements port.StartLimits.
func (r *runner) AppOf(platform.Placement, string) string { return "app" }

// documentLimits gives each of n apps the documented limit of one creation per second with
// a burst.
func (h *fixture) documentLimits(n, burst int) {
	h.runner.buckets = map[string]*rate.Limiter{}
	for i := range n {
		app := fmt.Sprint("app-", i)
		h.runner.paces = append(h.runner.paces, fleet.StartPace{App: app, Interval: 1050 * time.Millisecond, Burst: burst})
		h.runner.buckets[app] = rate.NewLimiter(1, burst)
	}
}

// take takes a token of the platform's limit.
func (r *runner) take(app string) bool {
	now := r.h.clock.now
	if r.buckets != nil {
		bucket, known := r.buckets[app]
		if !known {
			r.h.Errorf("got a launch in app %q, want one of the pool's", app)
			return false
		}
		if bucket.AllowN(now, 1) {
			return true
		}
		r.refused++
		return false
	}
	r.tokens, r.tokensAt = min(r.burst, r.tokens+now.Sub(r.tokensAt).Seconds()), now
	if !r.limited || r.tokens >= 1 {
		r.tokens--
		return true
	}
	r.refused++
	return false
}

// call counts a call to the platform.
func (r *runner) call(ctx context.Context) {
	r.calls++
	port.CountCall(ctx, platform.RunnerFly)
}

// Launch implements port.Runner. Names need not be unique.
func (r *runner) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	r.call(ctx)
	if !r.take(spec.App) {
		return port.MachineStatus{}, fault.New(fault.Throttled, "too many machines")
	}
	m := &machine{spec: spec, MachineStatus: port.MachineStatus{
		Machine: port.Machine{Runner: "fly", App: "app", ID: fmt.Sprintf("m%d", len(r.launched)+1)},
		Name:    spec.Name, Owner: spec.Owner, Phase: port.MachineCreating, Digest: r.digest, Address: fmt.Sprintf("fdaa::%d", len(r.launched)+1),
	}}
	r.launched = append(r.launched, m)
	if do := r.during; do != nil {
		r.during = nil
		if err := do(m); err != nil {
			return port.MachineStatus{}, err
		}
	}
	return m.MachineStatus, nil
}

// Inspect implements port.Runner.
func (r *runner) Inspect(ctx context.Context, at port.Machine) (port.MachineStatus, error) {
	r.call(ctx)
	m := r.find(at)
	if m == nil || m.hidden {
		return port.MachineStatus{}, port.ErrNotFound
	}
	return m.MachineStatus, nil
}

// Wait implements port.Runner. A wait for the end of a machine ends it.
func (r *runner) Wait(ctx context.Context, at port.Machine, phase port.MachinePhase, limit time.Duration) (port.MachineStatus, error) {
	if r.unreachable {
		r.h.clock.to(r.h.clock.now.Add(limit))
		return port.MachineStatus{}, fault.New(fault.Unavailable, "the runner does not answer")
	}
	m := r.find(at)
	switch {
	case m == nil || m.hidden || m.Phase == phase || m.Phase == port.MachineGone || phase == port.MachineRunning && m.StartFault != nil:
	case phase == port.MachineRunning && !r.stuck && !m.stuck:
		m.Phase = port.MachineRunning
	case phase == port.MachineGone && !r.indestructible:
		m.exit(0)
	default:
		r.h.clock.to(r.h.clock.now.Add(limit))
		if m.awaited != nil {
			m.awaited()
		}
	}
	if do := r.seen; do != nil && phase == port.MachineGone {
		r.seen = nil
		do()
	}
	return r.Inspect(ctx, at)
}

// List implements port.Runner.
func (r *runner) List(_ context.Context, each func(port.MachineStatus) bool) error {
	for _, m := range r.launched {
		if (m.Phase != port.MachineGone || m.Reuse.ID != "") && !m.hidden && !each(m.MachineStatus) {
			break
		}
	}
	r.listLagging(each)
	if r.silent != "" {
		return fault.New(fault.Unavailable, "runner %s: no answer", r.silent)
	}
	return nil
}

// ListOf implements port.RunnerLists.
func (r *runner) ListOf(ctx context.Context, runner string, each func(port.MachineStatus) bool) error {
	err := r.List(ctx, each)
	if runner != r.silent {
		return nil
	}
	return err
}

// Stop implements port.Runner.
func (r *runner) Stop(ctx context.Context, at port.Machine, _ time.Duration) error {
	r.call(ctx)
	r.stopped = append(r.stopped, at.ID)
	if m := r.find(at); m != nil && !r.ignoresSIGTERM {
		m.Phase, m.Exit = port.MachineGone, &port.Exit{Code: 143, Signal: 15, Requested: true}
	}
	return nil
}
