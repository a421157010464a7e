package fly

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// Runner implements port.Runner on Fly Machines. It is safe for concurrent use.
type Runner struct {
	cfg    Config
	client client
	// paces limit the calls of this process by app. They are empty if nothing is paced. The
	// start limiter of a pool counts launches, in all processes. A launch in several regions makes
	// a call in each region, which only these limits count.
	paces map[string]*rate.Limiter
	log   *slog.Logger
	idle  func()
	logs  logReader
}

var (
	_ port.Runner       = (*Runner)(nil)
	_ port.StartLimits  = (*Runner)(nil)
	_ port.WarmMachines = (*Runner)(nil)
)

// New returns a Runner. It makes no call. The caller closes it.
func New(cfg Config) (*Runner, error) {
	cfg, base, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	r := &Runner{cfg: cfg, paces: map[string]*rate.Limiter{}, log: cfg.Log, idle: func() {}}
	next := cfg.Transport
	if next == nil {
		own := newTransport()
		next, r.idle = own, own.CloseIdleConnections
	}
	token := cfg.CurrentToken
	if token == nil {
		token = func(context.Context) (string, error) { return cfg.Token, nil }
	}
	sends := transport{base, next, token}
	r.logs = logReader{client: &http.Client{Transport: sends, Timeout: logsTimeout}, base: base}
	r.client = client{&http.Client{Transport: sends}, r.sleep}
	if cfg.CreatesPerSecond > 0 {
		for _, app := range cfg.Apps {
			r.paces[app] = rate.NewLimiter(rate.Limit(cfg.CreatesPerSecond), cfg.Burst)
		}
	}
	return r, nil
}

// Close closes idle connections.
func (r *Runner) Close() { r.idle() }

// startMargin is a factor for the documented time between two creations. With it, several
// processes whose calls take different times stay below the limit.
const startMargin = 1.05

// apps returns the apps of a placement.
func (r *Runner) apps(where platform.Placement) []string {
	if own := platform.SettingsOf[platform.FlySettings](where); own != nil && len(own.Apps) > 0 {
		return own.Apps
	}
	return r.cfg.Apps
}

// StartLimits implements port.StartLimits. Without a configured pace, only a placement that
// names the runner has Fly's documented limit. A local API has no limit, and may start the
// machines of other placements. Those get Fly's pace after they were throttled.
func (r *Runner) StartLimits(where platform.Placement) []fleet.StartPace {
	perSecond := r.cfg.CreatesPerSecond
	if perSecond == 0 {
		perSecond = DocumentedRate
	}
	interval := time.Duration(startMargin / perSecond * float64(time.Second))
	apps := r.apps(where)
	paces := make([]fleet.StartPace, len(apps))
	for i, app := range apps {
		paces[i] = fleet.StartPace{App: app, Interval: interval}
		if r.cfg.CreatesPerSecond > 0 || where.Runner == kind {
			paces[i].Burst = r.cfg.Burst
		}
	}
	return paces
}

// AppOf returns the app of a machine, chosen by its name.
func (r *Runner) AppOf(where platform.Placement, name string) string {
	apps := r.apps(where)
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return apps[int64(hash.Sum32())%int64(len(apps))]
}

// regions returns the regions to try, at least one. "" lets Fly choose.
func (r *Runner) regions(where platform.Placement, first string) []string {
	regions := slices.Clone(r.cfg.Regions)
	if own := platform.SettingsOf[platform.FlySettings](where); own != nil && len(own.Regions) > 0 {
		regions = slices.Clone(own.Regions)
	}
	if first != "" {
		regions = slices.DeleteFunc(regions, func(region string) bool { return region == first })
		regions = slices.Insert(regions, 0, first)
	}
	if len(regions) == 0 {
		return []string{""}
	}
	return regions
}

// pace waits until the app may create another machine.
func (r *Runner) pace(ctx context.Context, app string) error {
	limiter, paced := r.paces[app]
	if !paced {
		return nil
	}
	now := r.cfg.Clock.Now()
	turn := limiter.ReserveN(now, 1)
	pause := turn.DelayFrom(now)
	if pause > r.cfg.MaxPause || !r.sleep(ctx, pause) {
		turn.CancelAt(r.cfg.Clock.Now())
		return fault.New(fault.Throttled, "cannot launch the machine: too many launches in a short time")
	}
	return nil
}

// sleep waits. It returns false if the context ends first.
func (r *Runner) sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	over, stop := r.cfg.Clock.NewTimer(d)
	defer stop()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}

// Inspect implements port.Runner.
func (r *Runner) Inspect(ctx context.Context, m port.Machine) (port.MachineStatus, error) {
	const what = "look the machine up"
	if !located(m) {
		return port.MachineStatus{}, fmt.Errorf("cannot %s: %w", what, port.ErrNotFound)
	}
	found, err := r.client.Get(ctx, m.App, m.ID)
	if err == nil && found.ID != m.ID {
		err = errors.New("the answer is about no or another machine")
	}
	switch classify(err) {
	case fine:
		return r.converted(m.App, found), nil
	case noMachine:
		return port.MachineStatus{}, fmt.Errorf("cannot %s: %w", what, port.ErrNotFound)
	}
	return port.MachineStatus{}, failure(ctx, err, what)
}

// Stop implements port.Runner.
func (r *Runner) Stop(ctx context.Context, m port.Machine, grace time.Duration) error {
	const what = "stop the machine"
	if !located(m) {
		return nil
	}
	if m.Version != "" { // another attempt may use the machine now
		now, err := r.client.Get(ctx, m.App, m.ID)
		switch {
		case classify(err) == noMachine, err == nil && now.InstanceID != m.Version:
			return nil
		case err != nil:
			return failure(ctx, err, what)
		}
	}
	in := stopConfig{Signal: "SIGTERM", Timeout: duration(min(grace, maxStopTimeout))}
	if grace <= 0 {
		in.Signal = "SIGKILL" // Fly takes no grace for its default
	}
	err := r.client.Stop(ctx, m.App, m.ID, in)
	switch classify(err) {
	case fine, noMachine:
		return nil
	case wrongState:
		if now, err := r.client.Get(ctx, m.App, m.ID); err == nil && ended(now.State) {
			return nil
		}
	}
	return failure(ctx, err, what)
}

// Destroy implements port.Runner.
func (r *Runner) Destroy(ctx context.Context, m port.Machine) error {
	const what = "destroy the machine"
	if !located(m) {
		return nil
	}
	err := r.client.Destroy(ctx, m.App, m.ID)
	switch classify(err) {
	case fine, noMachine:
		return nil
	case wrongState, busy, changed:
		if now, err := r.client.Get(ctx, m.App, m.ID); err == nil && (now.State == "destroying" || now.State == "destroyed") {
			return nil
		}
	}
	return failure(ctx, err, what)
}

func ended(state string) bool {
	p := phase(state)
	return p == port.MachineEnding || p == port.MachineGone
}
