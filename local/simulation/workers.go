package simulation

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// employ gives a machine its start and its worker's character.
func (w *world) employ(m *machine) {
	if w.chance(w.plan.neverStart) {
		return
	}
	m.deaf = w.chance(0.3)
	begin := w.upTo(5 * time.Second)
	if w.chance(w.plan.quick) {
		begin = 0
	}
	start := func() {
		if m.phase == orchestrator.MachineCreating {
			m.phase = orchestrator.MachineRunning
			w.work(m)
		}
	}
	if begin == 0 {
		start()
		return
	}
	w.time.after(begin, start)
}

// work is the worker's life, drawn anew for each machine.
func (w *world) work(m *machine) {
	pause := w.upTo(90 * time.Second)
	if w.chance(w.plan.quick) {
		pause = 0
	}
	do := func() {
		if m.phase == orchestrator.MachineRunning {
			w.finish(m)
		}
	}
	if pause == 0 {
		do()
		return
	}
	w.time.after(pause, do)
}

func (w *world) finish(m *machine) {
	switch draw := w.random.Float64(); {
	case draw < w.plan.lost:
		w.machines.end(m, orchestrator.Exit{Code: 1})
	case draw < w.plan.lost+0.03:
		w.machines.end(m, orchestrator.Exit{Code: 137, Signal: 9, OOM: true})
	case draw < w.plan.lost+0.06:
		// It hangs until somebody ends it.
	case draw < w.plan.lost+0.11:
		w.report(m, contract.Callback{Status: contract.StatusError, Error: "Failed to fetch manifest"})
	case draw < w.plan.lost+0.14:
		w.report(m, contract.Callback{Status: contract.StatusSuccess})
	default:
		w.report(m, w.upload(m))
	}
}

// upload leaves an output in the bucket, or says so without.
func (w *world) upload(m *machine) contract.Callback {
	task := m.spec.Env["TASK_ID"]
	key, body := orchestrator.OutputPrefix(task)+"out.xml", outputOf(task, m.spec.Owner.Attempt)
	size := int64(len(body))
	if w.chance(0.04) {
		size++
	}
	if !w.chance(0.04) {
		w.buckets.shelves[orchestrator.Uploads][key] = body
	}
	return contract.Callback{
		Status: contract.StatusSuccess, OutputKey: key, OutputFileName: "out.xml", OutputFileSize: &size,
	}
}

// outputOf is what an attempt uploads.
func outputOf(task string, attempt int) []byte {
	return fmt.Appendf(nil, "<out task=%q attempt='%d'/>", task, attempt)
}

// report posts the callback until it is answered or the machine is gone, and
// then exits. A call can be lost, or arrive twice, or long after.
func (w *world) report(m *machine, body contract.Callback) {
	body.TaskID = m.spec.Env["TASK_ID"]
	if w.chance(w.plan.late) {
		w.time.after(w.upTo(10*time.Minute), func() { w.post(m, body) })
		w.time.after(w.upTo(2*time.Second), func() { w.machines.end(m, orchestrator.Exit{}) })
		return
	}
	answered := w.post(m, body)
	if answered && w.chance(w.plan.late) {
		w.time.after(w.upTo(time.Minute), func() { w.post(m, body) })
	}
	if !answered {
		w.time.after(time.Second+w.upTo(4*time.Second), func() {
			if m.phase == orchestrator.MachineRunning {
				w.report(m, body)
			}
		})
		return
	}
	if !w.chance(0.1) { // else it lingers
		w.time.after(w.upTo(3*time.Second), func() { w.machines.end(m, orchestrator.Exit{}) })
	}
}

// post makes the callback as the HTTP handler does. It is answered by a success
// or a refusal; a failure of ours is no answer.
func (w *world) post(m *machine, body contract.Callback) (answered bool) {
	if w.chance(w.plan.lostCalls) {
		return false
	}
	address, err := url.Parse(m.spec.Env["CALLBACK_URL"])
	if err != nil {
		w.broken("the callback's URL cannot be read: %v", err)
		return true
	}
	ctx := context.Background()
	w.attempted(func() {
		var claims contract.Claims
		claims, err = w.service.VerifyToken(ctx, address.Query().Get("token"), contract.AudienceCallback, body.TaskID)
		if err == nil {
			err = w.service.Callback(ctx, claims, body)
		}
	}, func() { err = fault.New(fault.Unavailable, "the process died") })
	w.note("callback of %s: %s: %v", m.id, body.Status, err)
	if err == nil {
		w.accepted(m, body)
		return !w.chance(w.plan.lostCalls)
	}
	f := fault.Of(err)
	return f.Code != fault.Unavailable && f.Code != fault.StoreFull && f.Code != fault.Internal
}

// accepted notes the success that was acknowledged for an attempt. What was
// acknowledged has to stand in the record.
func (w *world) accepted(m *machine, body contract.Callback) {
	attempt := m.spec.Owner.Attempt
	if body.Status == contract.StatusSuccess {
		w.acknowledged[body.TaskID] = append(w.acknowledged[body.TaskID], attempt)
	}
	r, ok := w.record(body.TaskID)
	if ok && r.Attempt.Number == attempt && r.Attempt.Report == nil && r.Attempt.Outcome != run.OutcomeCancelled {
		w.broken("the report of attempt %d of %s was acknowledged and is lost", attempt, r.ID)
	}
}
