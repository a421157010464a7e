package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Config configures Check.
type Config struct {
	// Command starts the worker, with the rules of sortie dev --image: the program is found in
	// the caller's PATH, and arguments that name a file become absolute. The worker should work
	// for at least ten intervals.
	Command []string
	// Environ has additional environment entries of the machine, "NAME=value". SORTIE_CHECK has
	// the name of the scenario.
	Environ []string
	Clock   clock.Clock
	// Interval is heartbeatIntervalMs (default 250 ms). Timeout is the longest time without a
	// call (default 6 intervals). Grace is cancelGracePeriodMs (default 5 s).
	Interval, Timeout, Grace time.Duration
	// Limit limits the time of one scenario (default 60 s).
	Limit time.Duration
	// Abort limits the time of an immediate reaction (default 2 s).
	Abort time.Duration
	// Only names the scenarios to run; empty selects all.
	Only []string
	// Report is called with the new verdicts of each scenario when it ends. It may
	// be nil.
	Report func(scenario string, verdicts []Verdict)
}

func (c Config) withDefaults() Config {
	for d, fallback := range map[*time.Duration]time.Duration{
		&c.Interval: 250 * time.Millisecond, &c.Grace: 5 * time.Second, &c.Limit: time.Minute, &c.Abort: 2 * time.Second,
	} {
		if *d == 0 {
			*d = fallback
		}
	}
	if c.Timeout == 0 {
		c.Timeout = 6 * c.Interval
	}
	return c
}

// Check runs the scenarios in sequence. It returns an error only if the kit is used wrongly: no
// command, an unknown scenario, or a command that cannot be started.
func Check(ctx context.Context, c Config) (Report, error) {
	c = c.withDefaults()
	if len(c.Command) == 0 {
		return Report{}, errors.New("no command")
	}
	for _, name := range c.Only {
		if !slices.Contains(Scenarios(), name) {
			return Report{}, fmt.Errorf("unknown scenario %q: want one of %s", name, strings.Join(Scenarios(), ", "))
		}
	}
	report := Report{Contract: "worker"}
	var first *session
	for _, s := range scenarios {
		switch {
		case len(c.Only) > 0 && !slices.Contains(c.Only, s.name):
			continue
		case first == nil:
		case len(first.plane.Calls()) == 0, first.callsBack() && !s.export:
			report.Skipped = append(report.Skipped, s.name)
			continue
		case s.export && !first.callsBack():
			continue
		}
		run, err := c.run(ctx, s)
		if err != nil {
			return report, err
		}
		if first == nil {
			first = run
		}
		if run.callsBack() {
			report.Contract = "export"
		}
		verdicts := report.add(run.verdicts)
		if c.Report != nil {
			c.Report(s.name, verdicts)
		}
	}
	report.Conforms = len(report.Failures()) == 0
	return report, nil
}

// Scenarios returns the names of the scenarios in order.
func Scenarios() []string {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}

// session is one run of the worker in a scenario.
type session struct {
	config Config
	plane  *Plane
	worker *process
	start  time.Time

	mu      sync.Mutex
	stopAt  time.Time // time at which the kit kills the worker
	event   time.Time // time of the first special answer
	stopped bool      // by the kit

	scenario string
	verdicts []Verdict
}

func (c Config) run(ctx context.Context, s scenario) (*session, error) {
	st := &session{config: c, scenario: s.name, start: c.Clock.Now(), stopAt: c.Clock.Now().Add(c.Limit)}
	ready := make(chan struct{}) // closed when st.worker is set
	plane, err := NewPlane(c.Clock, contract.TaskEnvelope{
		TaskID: "check_" + s.name + "_7.a~b", RunID: "check:2026-11-21T09:00:00Z", TenantID: "default", WorkspaceID: "default",
		Attempt: 3, EnqueuedAt: st.start.UTC(), Deadline: st.start.Add(time.Hour).UTC(),
		HeartbeatIntervalMS: c.Interval.Milliseconds(), HeartbeatTimeoutMS: c.Timeout.Milliseconds(), CancelGracePeriodMS: c.Grace.Milliseconds(),
	}, func(call *Call, n int) *Answer {
		<-ready
		st.mu.Lock()
		defer st.mu.Unlock()
		if call.Endpoint == endpointCallback || call.Endpoint == "completed" && s.answer == nil {
			st.stopWithin(c.Abort + time.Second)
		}
		if s.answer == nil {
			return nil
		}
		return s.answer(st, call, n)
	})
	if err != nil {
		return nil, err
	}
	defer plane.Close()
	st.plane = plane
	st.worker, err = launch(c, plane, s.name)
	close(ready)
	if err != nil {
		return nil, err
	}
	st.wait(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	plane.Close() // waits for the calls in flight
	if st.callsBack() {
		st.checkCallback()
		return st, nil
	}
	st.checkCalls()
	s.check(st)
	return st, nil
}

// wait returns when the worker has ended. It kills the worker at stopAt.
func (st *session) wait(ctx context.Context) {
	defer st.worker.stop()
	for {
		st.mu.Lock()
		left := st.stopAt.Sub(st.config.Clock.Now())
		st.mu.Unlock()
		timer, stop := st.config.Clock.NewTimer(min(left, 50*time.Millisecond))
		select {
		case <-st.worker.ended:
			stop()
			return
		case <-ctx.Done():
			stop()
			return
		case <-timer:
			if left <= 0 {
				st.stopped = true
				return
			}
		}
	}
}

// stopWithin makes the kit kill the worker after d, unless it does so earlier.
func (st *session) stopWithin(d time.Duration) {
	if at := st.config.Clock.Now().Add(d); at.Before(st.stopAt) {
		st.stopAt = at
	}
}

// markEvent records the time of the first special answer.
func (st *session) markEvent() {
	if st.event.IsZero() {
		st.event = st.config.Clock.Now()
	}
}

// note records an observation.
func (st *session) note(r Requirement, detail string) {
	st.verdicts = append(st.verdicts, Verdict{Scenario: st.scenario, Requirement: r, Mark: Note, Detail: detail})
}

// fail records a failure. Failures with the same cause are reported together.
func (st *session) fail(r Requirement, m Mark, cause, detail string, args ...any) {
	st.verdicts = append(st.verdicts, Verdict{Scenario: st.scenario, Requirement: r, Mark: m, Detail: fmt.Sprintf(detail, args...), cause: cause})
}

// require records whether a requirement is met.
func (st *session) require(r Requirement, met bool, detail string, args ...any) {
	if !met {
		st.fail(r, Failed, "", detail, args...)
		return
	}
	st.verdicts = append(st.verdicts, Verdict{Scenario: st.scenario, Requirement: r, Mark: Passed})
}

// calls returns the calls of an endpoint.
func (st *session) calls(endpoint string) []*Call {
	return slices.DeleteFunc(st.plane.Calls(), func(c *Call) bool { return c.Endpoint != endpoint })
}

// callsAfter returns the calls of an endpoint after the first special answer.
func (st *session) callsAfter(endpoint string) []*Call {
	return slices.DeleteFunc(st.calls(endpoint), func(c *Call) bool { return !c.At.After(st.event) })
}

// callsBack reports whether the worker only uses the export contract.
func (st *session) callsBack() bool {
	return len(st.calls(endpointCallback)) > 0 && len(st.calls("started")) == 0
}

// endedEarly is the cause of all failures of a worker that ended without completed.
const endedEarly = "ended-early"

// earlyEnd returns endedEarly if the worker ended by itself without completed.
func (st *session) earlyEnd() string {
	if !st.stopped && len(st.calls("completed")) == 0 {
		return endedEarly
	}
	return ""
}
