package runs_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/explain"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestExplanations plays the files under testdata/explain. Each drives a run through the
// use cases to the reason that is the name of the file. -rewrite records the outputs
// again.
func TestExplanations(t *testing.T) {
	t.Parallel()
	for _, reason := range explain.Reasons() {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			scene := &scene{reason: reason, tasks: map[string]string{}}
			datadriven.RunTest(t, filepath.Join("testdata", "explain", string(reason)), scene.play)
			if !scene.reached {
				t.Errorf("got no explanation with the reason %s, want one", reason)
			}
		})
	}
}

// scene runs the commands of a file.
type scene struct {
	*fixture
	reason  explain.Reason
	tasks   map[string]string
	reached bool
	during  string
}

func (s *scene) play(t *testing.T, d *datadriven.TestData) string {
	var slots, starts int
	var after, name, action string
	d.MaybeScanArgs(t, "slots", &slots)
	d.MaybeScanArgs(t, "starts", &starts)
	d.MaybeScanArgs(t, "run", &name)
	d.MaybeScanArgs(t, "action", &action)
	if d.Cmd == "pool" {
		s.fixture = setup(t, func(c *runs.Config) { c.MaxMachines = slots })
		if d.HasArg("starts") {
			s.limitStarts(starts)
		}
		return ""
	}
	if d.MaybeScanArgs(t, "after", &after); after != "" {
		pause, err := time.ParseDuration(after)
		s.ok(err)
		s.advance(pause)
	}
	s.during = ""
	if step := ""; d.HasArg("in") {
		d.ScanArgs(t, "in", &step)
		s.before[run.Step(step)] = func(in runs.StepInput) { s.during = s.explained(in.ID) }
	}
	switch d.Cmd {
	case "export":
		s.clock.to(s.clock.now.Add(time.Second))
		s.tasks[name] = s.accept()
		s.step()
	case "start":
		c, a := spec.Constraints{MaxConcurrentRuns: slots}, spec.Actions{}
		if d.HasArg("previous") {
			c.RequirePreviousSuccess = true
		}
		if action != "" {
			a = onViolation(spec.Action{Type: spec.ActionType(action), Delay: time.Minute, Limit: time.Hour, Hook: &spec.Hook{URL: "hook"}})
		}
		s.tasks[name] = s.runJob(name, c, a)
	case "keyed":
		s.tasks[name] = s.keyed(name, spec.Concurrency{Key: "customer-7", Limit: 1, QueueLimit: 1, Overflow: spec.Overflow(action)})
	case "fire":
		ref := s.createJob("nightly", d.Input)
		s.clock.to(s.clock.now.Add(time.Hour))
		s.fire(ref)
		s.tasks[name] = run.FiringID("nightly", epoch.Add(10*time.Minute))
	case "schedule":
		s.createJob("nightly", "")
		r, _, err := s.service.Jobs.RunJob(s.Context(), jobs.RunRequest{Identity: client, JobID: "nightly", ScheduledAt: s.clock.now.Add(time.Hour)})
		s.ok(err)
		s.tasks[name] = r.ID
		s.step()
	case "exit":
		code := 0
		d.MaybeScanArgs(t, "code", &code)
		s.exit(s.tasks[name], code)
	case "report":
		s.ok(s.report(s.runner.last(), success()))
		s.step()
	case "cancel":
		_, err := s.service.Cancel(s.Context(), client, s.tasks[name], "")
		s.ok(err)
		s.step()
	case "stuck":
		s.runner.stuck = true
	case "waits":
		s.runner.last().Waiting = "Unschedulable: 0/3 nodes are available"
		s.sweep()
	case "no-capacity":
		s.runner.during = func(m *machine) error {
			m.exit(1)
			return fault.New(fault.Capacity, "no host has room for the machine")
		}
	case "fallback":
		_, _, err := s.service.Pools.Put(s.Context(), client, "spare", pools.Definition{Limit: slots}, change.Precondition{})
		s.ok(err)
		_, _, err = s.service.Pools.Put(s.Context(), client, "default", pools.Definition{Limit: slots, Fallbacks: []platform.Fallback{
			{Pool: "spare", On: []platform.FallbackReason{platform.FallbackCapacity}},
		}}, change.Precondition{})
		s.ok(err)
	case "lost-start":
		s.calls.lostRequests["Start"] = 1
		s.tasks[name] = s.accept()
		s.step()
	case "drain":
		_, err := s.service.Pools.Drain(s.Context(), client, "default", nil, change.Precondition{})
		s.ok(err)
	case "resume":
		_, err := s.service.Pools.Resume(s.Context(), client, "default", change.Precondition{})
		s.ok(err)
		s.step()
	case "raise":
		_, _, err := s.service.Pools.Put(s.Context(), client, "default", pools.Definition{Limit: slots}, change.Precondition{})
		s.ok(err)
		s.step()
	case "deleted":
		_, _, err := s.service.Pools.Put(s.Context(), client, "other", pools.Definition{Limit: 1}, change.Precondition{})
		s.ok(err)
		s.createJob("nightly", "pool: other\n")
		r, _, err := s.service.Jobs.RunJob(s.Context(), jobs.RunRequest{Identity: client, JobID: "nightly", ScheduledAt: s.clock.now.Add(time.Minute)})
		s.ok(err)
		s.tasks[name] = r.ID
		p, err := s.store.LoadPool(s.Context(), platform.PoolRef{Tenant: client.Tenant, ID: "other"})
		s.ok(err)
		s.ok(s.store.DeletePool(s.Context(), p)) // while the run was created
	case "limit": // in another process, which has not granted slots yet
		s.config.MaxMachines = slots
		s.service = s.system(wiring{})
	case "lose-execution":
		s.fail[run.StepTerminating] = many("Boom")[:2]
		s.ok(s.report(s.runner.last(), success()))
		for range 3 {
			s.advance(5*time.Minute + time.Second)
			s.sweep()
		}
	case "explain":
		return s.explained(s.tasks[name])
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return s.during
}

// keyed starts a run with a key.
func (s *scene) keyed(id string, c spec.Concurrency) string {
	s.clock.to(s.clock.now.Add(time.Second))
	d := run.New(run.Run{
		Tenant: client.Tenant, Workspace: client.Workspace, ID: id, TaskID: id, CorrelationID: "c", Policy: s.config.Policy,
		Work: spec.Work{Kind: spec.KindJob, Image: "worker", Program: &spec.Program{Completion: spec.CompletionExit}}, Concurrency: &c,
	}, s.clock.now)
	_, err := s.store.Create(s.Context(), port.WriteOf(d), nil)
	s.ok(err)
	input, err := json.Marshal(d.Run.Ref())
	s.ok(err)
	s.ok(s.engine.Start(s.Context(), d.Effects[0].Execution, input))
	s.step()
	return id
}

// explained describes the explanation of a run.
func (s *scene) explained(task string) string {
	x, err := s.service.Explanations.ExplainRun(s.Context(), client, task)
	s.ok(err)
	s.reached = s.reached || x.Reason == s.reason
	return describeExplanation(x)
}

func describeExplanation(x jobs.ExplainedRun) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s: %s\n", x.Run.State, x.Reason, x.Message)
	if x.Position >= 0 {
		fmt.Fprintf(&text, "position %d\n", x.Position)
	}
	if !x.Until.IsZero() {
		fmt.Fprintf(&text, "until %s\n", x.Until.Format("15:04:05"))
	}
	for _, l := range x.Limits {
		fmt.Fprintf(&text, "limit %s %s: %d of %d, queued %d", l.Kind, l.Name, l.Used, l.Allowed, l.Queued)
		for _, h := range l.Holders {
			fmt.Fprintf(&text, ", held by %s", h.RunID)
		}
		text.WriteString("\n")
	}
	if e := x.Expected; e != nil {
		fmt.Fprintf(&text, "expected %s to %s: %s\n", e.P50.Format("15:04:05.000"), e.P90.Format("15:04:05.000"), e.Basis())
	}
	for _, f := range x.FellBack {
		fmt.Fprintf(&text, "fell back from %s to %s by %s in attempt %d\n", f.From, f.To, f.Reason, f.Attempt)
	}
	for _, f := range x.Fallbacks {
		fmt.Fprintf(&text, "would fall back to %s by %v\n", f.Pool, f.On)
	}
	if x.Change != nil {
		fmt.Fprintf(&text, "change: %s\n", x.Change)
	}
	return text.String()
}
