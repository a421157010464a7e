package runs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// pace has the interval of a worker's calls, its heartbeat limit, and the interval of sweeps.
type pace struct{ interval, limit, sweep time.Duration }

func (p pace) String() string { return fmt.Sprintf("%s of %s, sweep %s", p.interval, p.limit, p.sweep) }

// paces range from the shortest limit to long ones, in both homes.
var paces = []pace{
	{time.Second, 2 * time.Second, time.Second},
	{time.Second, 2 * time.Second, time.Minute},
	{2 * time.Second, 6 * time.Second, time.Second},
	{5 * time.Second, 15 * time.Second, time.Second},
	{5 * time.Second, 15 * time.Second, time.Minute},
	{20 * time.Second, 70 * time.Second, time.Minute},
	{30 * time.Second, 81 * time.Second, time.Minute},
	{30 * time.Second, 90 * time.Second, 10 * time.Second},
	{30 * time.Second, 90 * time.Second, time.Minute},
	{5 * time.Minute, 10 * time.Minute, time.Minute},
}

// vigil is a worker that calls at its pace and does not retry failed calls. Sweeps beside it
// send canaries.
type vigil struct {
	caller
	pace
	task                string
	held                token.Bearer
	nextCall, nextSweep time.Time
	// silent reports that the worker makes no call, out that neither calls nor canaries arrive.
	silent, out bool
	// sweeps reports that whole sweeps run, not only their canaries.
	sweeps bool
}

// watch starts a worker at a pace.
func watch(t *testing.T, p pace, change ...func(*runs.Config)) *vigil {
	t.Helper()
	h := setup(t, append(change, func(c *runs.Config) {
		c.SweepInterval = p.sweep
		c.Policy.HeartbeatInterval, c.Policy.HeartbeatTimeout, c.Policy.TimeLimit = p.interval, p.limit, 24*time.Hour
	})...)
	v := &vigil{pace: p, task: h.post(), nextCall: h.clock.now.Add(p.interval), nextSweep: h.clock.now}
	v.caller = h.worker(h.runner.last())
	v.held = v.bearer() // its renewal is not tested here
	h.probe = func(context.Context) error {
		if v.out {
			return errors.New("the call was not answered")
		}
		return nil
	}
	h.ok(v.started(false))
	return v
}

// pass advances the clock, with the calls and sweeps that are due.
func (v *vigil) pass(d time.Duration) {
	v.Helper()
	for until := v.clock.now.Add(d); v.clock.now.Before(until); {
		next := until
		for _, at := range []time.Time{v.nextCall, v.nextSweep} {
			if at.After(v.clock.now) && at.Before(next) {
				next = at
			}
		}
		v.advance(next.Sub(v.clock.now))
		if !v.nextSweep.After(v.clock.now) {
			v.nextSweep = v.clock.now.Add(v.sweep)
			if v.sweeps {
				_ = v.service.Sweep(v.Context(), 0) // it fails in part during an outage
				v.step()
			} else {
				_ = v.service.RecordReception(v.Context())
			}
		}
		if !v.nextCall.After(v.clock.now) {
			v.nextCall = v.clock.now.Add(v.interval)
			if _, err := v.call(); err != nil && !v.broken() {
				v.Fatalf("got %v for a heartbeat, want it accepted (events %s)", err, v.eventsOf(v.task))
			}
		}
	}
}

func (v *vigil) call() (runs.HeartbeatResult, error) {
	if v.silent || v.out {
		return runs.HeartbeatResult{}, nil
	}
	return v.service.Heartbeat(v.Context(), v.held, contract.TaskHeartbeat{Attempt: 1, WorkerID: v.id})
}

func (v *vigil) broken() bool { return v.store.down || v.store.noHeartbeats }

// outages are the reasons for which no heartbeat arrives for a time.
var outages = map[string]func(v *vigil, d time.Duration){
	"the store": func(v *vigil, d time.Duration) {
		v.store.down = true
		v.pass(d)
		v.store.down = false
	},
	"the store of heartbeats": func(v *vigil, d time.Duration) {
		v.store.noHeartbeats = true
		v.pass(d)
		v.store.noHeartbeats = false
	},
	"the callback function": func(v *vigil, d time.Duration) {
		v.out = true
		v.pass(d)
		v.out = false
	},
	"the process": func(v *vigil, d time.Duration) {
		end := v.clock.now.Add(d)
		for !v.nextCall.After(end) {
			v.nextCall = v.nextCall.Add(v.interval)
		}
		v.clock.to(end)
		v.step()
	},
	"a sleeping host": func(v *vigil, d time.Duration) {
		v.nextCall = v.nextCall.Add(d) // the worker sleeps too
		v.clock.to(v.clock.now.Add(d))
		v.step()
	},
}

// TestWorkerSurvivesAnOutageOfSortie lets outages of several kinds and lengths begin at
// several moments between two calls of a worker and between two sweeps.
//
// Rule 8 of shared/README.md.
func TestWorkerSurvivesAnOutageOfSortie(t *testing.T) {
	t.Parallel()
	for name, outage := range outages {
		for _, p := range paces {
			t.Run(name+" "+p.String(), func(t *testing.T) {
				t.Parallel()
				for _, length := range []time.Duration{
					p.interval, p.limit - p.interval, p.limit - time.Second, p.limit, p.limit + 4*time.Second, 3*p.limit + p.interval,
				} {
					v := watch(t, p)
					for _, phase := range []time.Duration{p.interval / 50, p.interval / 2, p.interval - p.interval/50} {
						v.pass(2*p.limit + phase)
						outage(v, length)
						v.pass(p.limit + 2*p.interval)
						if r := v.wantState(v.task, run.Running); r.Attempt.Number != 1 {
							t.Fatalf("outage of %s: got attempt %d, want 1 (events %s)", length, r.Attempt.Number, v.eventsOf(v.task))
						}
					}
				}
			})
		}
	}
}

// TestDeadWorkerIsDetected ends the calls of a worker while everything works, and after
// an outage. Where canaries are dense the limit is exact; otherwise the silence is
// tested for another interval, or for another limit.
//
// Rule 8 of shared/README.md.
func TestDeadWorkerIsDetected(t *testing.T) {
	t.Parallel()
	const slack = 3 * time.Second // execution states last whole seconds
	for _, p := range paces {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			gap, latest := p.sweep+max(p.sweep/3, time.Second), 2*p.limit
			switch {
			case gap+p.interval <= p.limit:
				latest = p.limit
			case gap < p.limit:
				latest = p.limit + p.interval
			}
			v := watch(t, p)
			v.pass(2*p.limit + p.interval/2)
			v.silent = true
			last, err := v.store.LastHeartbeat(t.Context(), v.record(v.task).Ref())
			v.ok(err)
			v.pass(last.At.Add(latest).Sub(v.clock.now) - time.Second)
			v.wantState(v.task, run.Running)
			v.pass(last.At.Add(latest + slack).Sub(v.clock.now))
			v.wantEvents(v.task, "zombie_detected attempt_ended:HEARTBEAT_TIMEOUT")
		})
		t.Run(p.String()+", after an outage", func(t *testing.T) {
			t.Parallel()
			v := watch(t, p)
			v.pass(p.limit)
			v.silent = true
			outages["the callback function"](v, 2*p.limit)
			v.pass(3*p.limit + slack)
			v.wantEvents(v.task, "zombie_detected attempt_ended:HEARTBEAT_TIMEOUT")
		})
	}
}

// TestCanaryThatIsNotStoredProvesNothing answers the canary without storing it.
//
// Rule 8 of shared/README.md.
func TestCanaryThatIsNotStoredProvesNothing(t *testing.T) {
	t.Parallel()
	h := liveness(t)
	task := h.post()
	h.ok(h.worker(h.runner.last()).started(false))
	h.acknowledges = true
	h.advance(10*time.Minute - time.Second)
	if r := h.wantState(task, run.Running); r.Attempt.Number != 1 {
		t.Errorf("got attempt %d, want 1 (events %s)", r.Attempt.Number, h.eventsOf(task))
	}
}
