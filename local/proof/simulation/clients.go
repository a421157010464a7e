package simulation

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/api"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

var client = port.Identity{Tenant: "local", Workspace: "local", Subject: "localhost"}

// errDead is what a client gets of a process that is no more, or cannot be
// reached.
var errDead = fault.New(fault.Unavailable, "nobody answers")

// ask makes a client's call. An answer can be lost.
func (w *world) ask(do func() error) error {
	err := error(errDead)
	if w.cutOff() {
		return err
	}
	w.attempted(func() { err = do() }, func() { err = errDead })
	if w.chance(w.plan.lostCalls) {
		return errDead
	}
	return err
}

// arrive makes a client ask for a run, as often as it takes to be answered.
func (w *world) arrive(key string, policy *contract.Policy) {
	var accepted run.Run
	err := w.ask(func() (err error) {
		submission, err := api.Export(limit.Formats()[0], contract.ExportRequest{PI: "01K9XVBAQZF9EHDRXGBEADTZYY", Policy: policy})
		if err != nil {
			return err
		}
		submission.Identity, submission.IdempotencyKey, submission.CorrelationID = client, key, key
		accepted, _, err = w.system.Submit(context.Background(), submission)
		return err
	})
	if err != nil {
		w.time.after(w.upTo(5*time.Second), func() { w.arrive(key, policy) })
		return
	}
	w.accepted(key, accepted)
}

// accepted plans what a client does about a run that was accepted.
func (w *world) accepted(key string, r run.Run) {
	w.note("%s is accepted as %s", key, r.TaskID)
	w.accepts = append(w.accepts, r.TaskID)
	if w.chance(w.plan.cancels) {
		w.time.after(w.upTo(4*time.Minute), func() { w.cancel(r.TaskID) })
	}
	if w.chance(w.plan.aborts) {
		w.time.after(w.upTo(4*time.Minute), func() { w.abort(r.Ref()) })
	}
}

// drawPolicy draws what a request asks for; nil for nothing.
func (w *world) drawPolicy() *contract.Policy {
	if w.chance(0.6) {
		return nil
	}
	p := &contract.Policy{TimeLimitSeconds: new(120 + w.random.IntN(1000)), Retry: &contract.RetryPolicy{MaxAttempts: new(1 + w.random.IntN(3))}}
	if w.chance(0.5) {
		p.HeartbeatIntervalSeconds = new(5 + w.random.IntN(20))
	}
	if w.chance(0.5) {
		p.Retry.Categories = []string{contract.CategoryUserCode, contract.CategoryInfrastructure}
	}
	return p
}

// again has a client retry a task that has ended, with one key until it is
// answered.
func (w *world) again(task string) {
	var accepted run.Run
	err := w.ask(func() (err error) {
		accepted, _, err = w.system.Retry(context.Background(), orchestrator.RetryRequest{
			Identity: client, TaskID: task, IdempotencyKey: "again " + task, CorrelationID: "again",
		})
		return err
	})
	if err != nil {
		w.time.after(w.upTo(5*time.Second), func() { w.again(task) })
		return
	}
	w.retried++
	w.accepted("another try of "+task, accepted)
}

// abort stops a run's execution behind our back.
func (w *world) abort(ref run.Ref) {
	w.attempted(func() {
		err := w.engine.Stop(context.Background(), run.ExecutionName(ref, 1), "by hand")
		w.note("the execution of %s is stopped by hand: %v", ref.ID, err)
	}, func() {})
}

// meddle has a client cancel a task in the middle of something, now and then.
func (w *world) meddle(task string) {
	if w.meddling || !w.chance(w.plan.cancels*0.03) {
		return
	}
	w.meddling = true
	defer func() { w.meddling = false }()
	w.cancel(task)
}

func (w *world) cancel(task string) {
	var stands run.Run
	err := w.ask(func() (err error) {
		stands, err = w.system.Cancel(context.Background(), client, task, "user_requested")
		return err
	})
	w.note("cancel of %s: %v", task, err)
	if err != nil {
		w.time.after(w.upTo(5*time.Second), func() { w.cancel(task) })
		return
	}
	if _, before := w.cancelled[task]; !before {
		w.cancelled[task] = stands.State
	}
	if stands.Cancel == nil && !stands.State.Terminal() {
		w.broken("the cancel of %s was acknowledged, and nothing is wished", task)
	}
	if r, ok := w.record(task); ok && r.Cancel == nil && !r.State.Terminal() {
		w.broken("the cancel of %s was acknowledged and is lost", task)
	}
}
