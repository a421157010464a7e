package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/contract"
)

// Config is what is checked, and how.
type Config struct {
	// Command starts the worker. It should work for ten intervals at least.
	Command []string
	// Environ is what it gets beside TASK_ENVELOPE; SORTIE_CHECK names the
	// scenario, for a worker that wants to know.
	Environ []string
	Clock   clock.Clock
	// Interval is heartbeatIntervalMs, 250 ms where it is 0; Timeout the time
	// without a call that a worker is given, 6 intervals where it is 0; Grace is
	// cancelGracePeriodMs, 5 s where it is 0.
	Interval, Timeout, Grace time.Duration
	// Limit is how long one scenario may last, 60 s where it is 0.
	Limit time.Duration
	// Abort is how long "at once" may take, 2 s where it is 0.
	Abort time.Duration
	// Only names the scenarios; empty is all.
	Only []string
	// Tell is called with the verdicts of each scenario as it ends; may be nil.
	Tell func([]Verdict)
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

// Check runs the scenarios, one after the other. The error is one of the kit:
// no command, an unknown scenario, a command that cannot be started.
func Check(ctx context.Context, c Config) (Report, error) {
	c = c.withDefaults()
	if len(c.Command) == 0 {
		return Report{}, errors.New("no command is given")
	}
	for _, name := range c.Only {
		if !slices.Contains(Scenarios(), name) {
			return Report{}, fmt.Errorf("there is no scenario %q; there are %s", name, strings.Join(Scenarios(), ", "))
		}
	}
	report := Report{Conforms: true}
	for _, s := range scenarios {
		if len(c.Only) > 0 && !slices.Contains(c.Only, s.name) {
			continue
		}
		verdicts, err := c.play(ctx, s)
		if err != nil {
			return report, err
		}
		report.Verdicts = append(report.Verdicts, verdicts...)
		if c.Tell != nil {
			c.Tell(verdicts)
		}
	}
	report.Conforms = len(report.Failures()) == 0
	return report, nil
}

// Scenarios lists the names of the scenarios, in order.
func Scenarios() []string {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}

// stage is one scenario being played.
type stage struct {
	config Config
	plane  *Plane
	worker *process
	begun  time.Time

	mu      sync.Mutex
	endBy   time.Time // when the worker is stopped
	event   time.Time // when what the scenario is about happened
	stopped bool      // by the kit

	scenario string
	verdicts []Verdict
}

func (c Config) play(ctx context.Context, s scenario) ([]Verdict, error) {
	st := &stage{config: c, scenario: s.name, begun: c.Clock.Now(), endBy: c.Clock.Now().Add(c.Limit)}
	ready := make(chan struct{}) // the worker is known
	plane, err := NewPlane(c.Clock, contract.TaskEnvelope{
		TaskID: "check_" + s.name + "_7.a~b", RunID: "check:2026-11-21T09:00:00Z", TenantID: "default", WorkspaceID: "default",
		Attempt: 3, EnqueuedAt: st.begun.UTC(), Deadline: st.begun.Add(time.Hour).UTC(),
		HeartbeatIntervalMS: c.Interval.Milliseconds(), HeartbeatTimeoutMS: c.Timeout.Milliseconds(), CancelGracePeriodMS: c.Grace.Milliseconds(),
	}, func(call *Call, n int) *Answer {
		<-ready
		st.mu.Lock()
		defer st.mu.Unlock()
		if call.Endpoint == "completed" && s.decide == nil {
			st.within(c.Abort + time.Second)
		}
		if s.decide == nil {
			return nil
		}
		return s.decide(st, call, n)
	})
	if err != nil {
		return nil, err
	}
	defer plane.Close()
	st.plane = plane
	variable, err := plane.Variable()
	if err != nil {
		return nil, err
	}
	env := append(slices.Clone(c.Environ), variable, "SORTIE_CHECK="+s.name)
	if st.worker, err = launch(c.Clock, c.Command, env); err != nil {
		close(ready)
		return nil, err
	}
	close(ready)
	st.wait(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	plane.Close() // no call is on its way any more
	st.general()
	s.judge(st)
	return st.verdicts, nil
}

// wait until the worker has ended or has to.
func (st *stage) wait(ctx context.Context) {
	defer st.worker.stop()
	for {
		st.mu.Lock()
		left := st.endBy.Sub(st.config.Clock.Now())
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

// within stops the worker after d, unless that is due before.
func (st *stage) within(d time.Duration) {
	if at := st.config.Clock.Now().Add(d); at.Before(st.endBy) {
		st.endBy = at
	}
}

// happens notes the time of what the scenario is about, the first time.
func (st *stage) happens() {
	if st.event.IsZero() {
		st.event = st.config.Clock.Now()
	}
}

// verdict judges a sentence.
func (st *stage) verdict(s Sentence, m Mark, detail string, args ...any) {
	st.verdicts = append(st.verdicts, Verdict{st.scenario, s, m, fmt.Sprintf(detail, args...)})
}

// keeps judges a sentence by a condition.
func (st *stage) keeps(s Sentence, kept bool, detail string, args ...any) {
	if kept {
		st.verdict(s, Kept, "")
		return
	}
	st.verdict(s, Broken, detail, args...)
}

// of gives the calls of an endpoint.
func (st *stage) of(endpoint string) []*Call {
	var list []*Call
	for _, c := range st.plane.Calls() {
		if c.Endpoint == endpoint {
			list = append(list, c)
		}
	}
	return list
}

// since gives the calls of an endpoint after what the scenario is about.
func (st *stage) since(endpoint string) []*Call {
	return slices.DeleteFunc(st.of(endpoint), func(c *Call) bool { return !c.At.After(st.event) })
}
