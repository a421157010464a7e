package run_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

var epoch = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func policy() spec.Policy {
	return spec.Policy{
		StartTimeout: 10 * time.Minute, TimeLimit: time.Hour,
		HeartbeatInterval: 30 * time.Second, HeartbeatTimeout: 90 * time.Second,
		CancelGrace: 30 * time.Second, QueueTimeout: 24 * time.Hour,
		OutputRetention: 24 * time.Hour, RecordRetention: 7 * 24 * time.Hour,
		Retry: spec.Retry{
			MaxAttempts: 3, MaxFurtherStarts: 3, InitialDelay: 2 * time.Second, Multiplier: 2,
			MaxDelay: time.Minute, Jitter: 0.5,
		},
	}
}

func fresh() run.Run {
	return run.Run{
		Tenant: "local", Workspace: "local", ID: "export_mods_1_a", TaskID: "export_mods_1_a",
		CorrelationID: "c", Policy: policy(),
		Work: spec.Work{Kind: "export", Format: "mods", PI: "01K9XVBAQZF9EHDRXGBEADTZYY", Options: json.RawMessage(`{}`), Image: "worker"},
	}
}

// TestStories runs the files under testdata/stories. The name of a file is its claim. The
// output of each step is the decision about a fact. -rewrite records the outputs again.
func TestStories(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		story := &teller{now: epoch}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return story.step(t, d)
		})
	})
}

// teller runs one story.
type teller struct {
	run run.Run
	now time.Time
}

func (s *teller) step(t *testing.T, d *datadriven.TestData) string {
	after := ""
	d.MaybeScanArgs(t, "after", &after)
	if after != "" {
		pause, err := time.ParseDuration(after)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.now = s.now.Add(pause)
	}
	if d.Cmd == "new" {
		r := fresh()
		s.constrain(t, d, &r)
		if d.HasArg("only") {
			r.Policy.Retry.Categories = []fault.Category{fault.Category(word(t, d, "only"))}
		}
		if d.HasArg("scheduled") {
			r.ScheduledAt = s.now.Add(time.Hour)
		}
		r.Work.Program = program(t, d)
		if d.HasArg("deadline") {
			r.Policy.Deadline = duration(t, d, "deadline")
		}
		first := s.first(t, d, r)
		s.run = first.Run
		return s.emit(first)
	}
	decision, err := run.Decide(s.run, s.fact(t, d), s.now)
	if err != nil {
		return "refused: " + err.Error()
	}
	if !decision.Changed {
		return "no change; " + s.route()
	}
	s.run = decision.Run
	s.run.Version++
	return s.emit(decision)
}

func (s *teller) fact(t *testing.T, d *datadriven.TestData) run.Fact {
	attempt := s.run.Attempt.Number
	d.MaybeScanArgs(t, "attempt", &attempt)
	limit := 16
	d.MaybeScanArgs(t, "limit", &limit)
	switch d.Cmd {
	case "due":
		return run.Due{}
	case "admitted":
		return run.Admitted{Pool: s.pool(), Limit: limit}
	case "enqueued":
		return run.Enqueued{Pool: s.pool(), Limit: limit, Queue: line(t, d)}
	case "key-enqueued":
		return run.KeyEnqueued{}
	case "key-granted":
		return run.KeyGranted{Pool: "default", Limit: limit, Queue: line(t, d)}
	case "key-overflowed":
		return run.KeyOverflowed{By: "other", Queued: 3}
	case "granted":
		granted := run.Granted{Limit: limit}
		if d.HasArg("app") {
			granted.App, granted.StartAt = word(t, d, "app"), s.now.Add(2*time.Second)
		}
		return granted
	case "checked":
		return s.checked(t, d)
	case "action-started":
		return run.ActionStarted{}
	case "action-ended":
		f := run.ActionEnded{}
		if d.HasArg("failed") {
			f.Failure = "the hook answers 500"
		}
		return f
	case "end-action-done":
		f := run.EndActionDone{Action: spec.EndAction(word(t, d, "name"))}
		if d.HasArg("failed") {
			f.Failure = "the hook answers 500"
		}
		return f
	case "job-granted":
		return run.JobGranted{Limit: s.slots(t, d)}
	case "recheck":
		return run.ActionRecheck{}
	case "check-begun":
		return run.CheckBegun{}
	case "token":
		return s.token(t, d)
	case "created":
		return run.MachineCreated{Attempt: attempt, Machine: platform.Machine{ID: fmt.Sprintf("m%d", attempt)}}
	case "refused":
		why := cause(t, d, "code")
		why.Retryable = why.Retryable && !d.HasArg("final")
		return run.StartRefused{Attempt: attempt, Fault: why, Fallbacks: fallbacks(d)}
	case "start-failed":
		return run.StartFailed{Attempt: attempt, Fault: cause(t, d, "code"), Fallbacks: fallbacks(d), Gone: d.HasArg("gone")}
	case "deferred":
		return run.StartDeferred{Attempt: attempt}
	case "running":
		return run.MachineRunning{Attempt: attempt}
	case "gone":
		return run.MachineGone{Attempt: attempt, Exit: s.exit(t, d)}
	case "contacted":
		return s.contacted(t, d, attempt)
	case "delivered":
		return run.CancelDelivered{Attempt: attempt}
	case "reported":
		worker := ""
		d.MaybeScanArgs(t, "worker", &worker)
		return run.Reported{Attempt: attempt, WorkerID: worker, Report: s.report(t, d)}
	case "evaluated":
		phase, generation := "", s.run.Wait.Generation
		d.MaybeScanArgs(t, "phase", &phase)
		d.MaybeScanArgs(t, "generation", &generation)
		return run.Evaluated{
			Generation: generation, Failed: d.HasArg("failed"), Phase: phase, Exit: s.exit(t, d),
			Contact: s.contact(t, d), StartFault: cause(t, d, "start"), Fallbacks: fallbacks(d),
		}
	case "settled":
		return s.settled(t, d)
	case "cancelled":
		return run.CancelRequested{By: "token:abc", Reason: "user_requested"}
	case "abandoned":
		return run.Abandoned{Message: "unexpected error"}
	case "restarted":
		start := s.run.Execution.Start
		d.MaybeScanArgs(t, "start", &start)
		return run.Restarted{Start: start, Cause: "FAILED: Boom"}
	case "execution-checked":
		return run.ExecutionChecked{Done: d.HasArg("done")}
	case "repair-failed":
		return run.RepairFailed{}
	case "slot-released":
		return run.SlotReleased{Attempt: s.run.Attempt.Number}
	case "downloaded":
		return run.OutputExpiring{At: s.now.Add(time.Hour), Message: "downloaded"}
	case "deleted":
		return run.OutputDeleted{}
	case "deletion-failed":
		return run.DeletionFailed{}
	case "shed":
		return run.Shed{}
	}
	d.Fatalf(t, "unknown fact %q", d.Cmd)
	return nil
}

// contacted returns a call of worker w, or of the worker in the argument "worker": a heartbeat,
// or started.
func (s *teller) contacted(t *testing.T, d *datadriven.TestData, attempt int) run.Fact {
	worker := "w"
	d.MaybeScanArgs(t, "worker", &worker)
	return run.WorkerContacted{
		Attempt: attempt, WorkerID: worker, Started: d.HasArg("started"),
		HandlesSigterm: d.HasArg("sigterm"), Missing: d.HasArg("missing"),
	}
}

// contact returns the last call of the worker and the result of a canary. "since" and "gap"
// describe the canaries of all processes; without them no canary was received before.
func (s *teller) contact(t *testing.T, d *datadriven.TestData) run.Contact {
	c := run.Contact{LastAt: s.ago(t, d, "contact")}
	c.Reception = run.Reception{Received: !d.HasArg("unreachable"), Since: s.ago(t, d, "since"), Gap: 10 * time.Second}
	if d.HasArg("gap") {
		c.Reception.Gap = s.now.Sub(s.ago(t, d, "gap"))
	}
	return c
}

// ago returns the time before now by the duration in the argument; zero without the argument.
func (s *teller) ago(t *testing.T, d *datadriven.TestData, key string) time.Time {
	if !d.HasArg(key) {
		return time.Time{}
	}
	pause, err := time.ParseDuration(word(t, d, key))
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return s.now.Add(-pause)
}

func (s *teller) token(t *testing.T, d *datadriven.TestData) run.Fact {
	generation, step := s.run.Wait.Generation, string(s.run.Wait.Step)
	d.MaybeScanArgs(t, "generation", &generation)
	d.MaybeScanArgs(t, "step", &step)
	return run.TokenStored{Step: run.Step(step), Generation: generation, Token: "T" + strconv.Itoa(generation)}
}

func (s *teller) settled(t *testing.T, d *datadriven.TestData) run.Fact {
	f := run.Settled{Exit: s.exit(t, d), Destroyed: d.HasArg("destroyed"), MayRun: d.HasArg("unseen")}
	if d.HasArg("hook") {
		answer := word(t, d, "hook")
		f.PostRunHook = &spec.HookAnswer{Allowed: answer == "allows", Unavailable: answer == "unavailable", Detail: "not today"}
	}
	if d.HasArg("accepted") {
		f.Output = &run.Output{Upload: run.Upload{Key: "exports/x/y.xml", FileName: "y.xml", Size: 5}, ETag: `"e"`}
	}
	if d.HasArg("wrong") {
		f.Fault = fault.New(fault.Code(word(t, d, "wrong")), "no such object")
	}
	return f
}

func (s *teller) report(t *testing.T, d *datadriven.TestData) run.Report {
	digest := "first"
	d.MaybeScanArgs(t, "digest", &digest)
	if d.HasArg("category") {
		r := run.Report{Digest: digest, Outcome: run.OutcomeFailed, Error: "it says", Category: fault.Category(word(t, d, "category")), Exit: s.exit(t, d)}
		if d.HasArg("retryable") {
			r.Retryable = new(word(t, d, "retryable") == "yes")
		}
		return r
	}
	if d.HasArg("stopped") {
		return run.Report{Digest: digest, Outcome: run.OutcomeCancelled, Phase: "reading", Partial: json.RawMessage(`{"done":3}`)}
	}
	if d.HasArg("error") {
		return run.Report{Digest: digest, Error: "Failed to fetch manifest"}
	}
	if d.HasArg("bare") {
		return run.Report{Digest: digest, Success: true}
	}
	return run.Report{Digest: digest, Success: true, Upload: &run.Upload{Key: "exports/x/y.xml", FileName: "y.xml", Size: 5}}
}

func (s *teller) exit(t *testing.T, d *datadriven.TestData) *run.Exit {
	if !d.HasArg("code") && !d.HasArg("oom") && !d.HasArg("requested") && !d.HasArg("signal") {
		return nil
	}
	code, signal := 0, 0
	d.MaybeScanArgs(t, "code", &code)
	if d.MaybeScanArgs(t, "signal", &signal); signal > 0 {
		code = 128 + signal
	}
	return &run.Exit{
		Code: code, Signal: signal, OOM: d.HasArg("oom"), Requested: d.HasArg("requested"), Host: d.HasArg("host"), At: s.ago(t, d, "ended"),
	}
}

func word(t *testing.T, d *datadriven.TestData, key string) string {
	value := ""
	d.ScanArgs(t, key, &value)
	return value
}

// emit prints the visible parts of a decision.
func (s *teller) emit(d run.Decision) string {
	var text strings.Builder
	for _, e := range d.Events {
		fmt.Fprintf(&text, "event %d %s: %s -> %s, attempt %d", e.Seq, e.Type, e.From, e.State, e.Attempt)
		if e.Fault != nil {
			fmt.Fprintf(&text, ", %s", e.Fault.Code)
		}
		switch e.Type {
		case run.EventConstraintViolated, run.EventActionDue, run.EventActionExecuted, run.EventActionFailed, run.EventExpectedTimeExceeded:
			fmt.Fprintf(&text, ", %s", e.Message)
		}
		text.WriteString("\n")
	}
	for _, e := range d.Effects {
		fmt.Fprintf(&text, "effect %s", e.Kind)
		if e.Action != "" {
			fmt.Fprintf(&text, " %s", e.Action)
		}
		if e.Token != "" {
			fmt.Fprintf(&text, " %s of %s", e.Token, e.Step)
		}
		text.WriteString("\n")
	}
	if d.Lease != "" {
		fmt.Fprintf(&text, "lease %s\n", d.Lease)
		if slot := d.Run.Slot; slot.Round > 0 && slot.Key != "" {
			fmt.Fprintf(&text, "round %d of %s, behind %d\n", slot.Round, slot.Key, slot.Behind)
		}
	}
	if d.JobLease != "" {
		fmt.Fprintf(&text, "job's lease %s, limit %d\n", d.JobLease, d.Run.JobSlot.Limit)
	}
	if d.KeyLease != "" {
		fmt.Fprintf(&text, "key's lease %s, limit %d\n", d.KeyLease, d.Run.KeySlot.Limit)
	}
	if d.Run.Overflowed != nil && d.Run.State.Terminal() {
		fmt.Fprintf(&text, "%s\n", d.Events[len(d.Events)-1].Message)
	}
	if heartbeat := d.Heartbeat; heartbeat != (run.HeartbeatChange{}) {
		fmt.Fprintf(&text, "heartbeat %s\n", s.heartbeat(heartbeat))
	}
	fmt.Fprintf(&text, "%s; pending %d; %s", d.Run.State, len(d.Run.Execution.Pending), s.route())
	if act := d.Run.Execution.ActBy; !act.IsZero() {
		fmt.Fprintf(&text, "; act within %s", act.Sub(s.now))
	}
	if d.Run.Deletion != (run.Deletion{}) {
		fmt.Fprintf(&text, "; delete again in %s", d.Run.BytesDue().Sub(s.now))
	}
	return text.String()
}

func (s *teller) heartbeat(c run.HeartbeatChange) string {
	var parts []string
	if !c.Evaluated.IsZero() {
		parts = append(parts, fmt.Sprintf("of %s ago", s.now.Sub(c.Evaluated)))
	}
	if b := c.Open; b != nil {
		parts = append(parts, fmt.Sprintf("open for %s of attempt %d", b.WorkerID, b.Attempt))
		if b.Token != "" {
			parts = append(parts, "token "+b.Token)
		}
		if b.Cancel != nil {
			parts = append(parts, "cancel "+*b.Cancel)
		}
	}
	if c.Token != nil {
		parts = append(parts, "token "+*c.Token)
	}
	if c.Cancel != nil {
		parts = append(parts, "cancel "+*c.Cancel)
	}
	if c.Close {
		parts = append(parts, "close")
	}
	return strings.Join(parts, ", ")
}

func (s *teller) route() string {
	route := run.RouteOf(s.run, s.now)
	text := fmt.Sprintf("to %s, generation %d%s", route.Next, route.Generation, s.detour())
	switch route.Next {
	case run.StepRunning, run.StepCancelling, run.StepContainerCreating, run.StepQueued:
		text += fmt.Sprintf(", heartbeat %d, timeout %d", route.HeartbeatSeconds, route.TimeoutSeconds)
	case run.StepRetrying, run.StepBackingOff:
		text += fmt.Sprintf(", %d s", route.Seconds)
	}
	return text
}
