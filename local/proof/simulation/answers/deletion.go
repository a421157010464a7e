package answers

import (
	"context"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

// deletionSweeps is the number of sweeps in which all answers that are due are deleted.
const deletionSweeps = 20

// checkDeletion lets the days pass for which the tenant's answers are stored. The streams, the prompts and
// the transcripts must then be deleted; the records of the tasks and the usage stay.
func (w *world) checkDeletion(ctx context.Context) {
	if w.days == 0 {
		return
	}
	before := w.stored(ctx)
	for _, r := range before {
		if !r.AnswerDeleted && len(r.Work.Inference.Request) == 0 {
			w.fail("%s has no prompt %d days too early", r.ID, w.days)
		}
	}
	_ = clock.Sleep(ctx, bubble, time.Duration(w.days)*24*time.Hour+time.Hour)
	p, err := w.newProcess(ctx, "last")
	if err != nil {
		w.fail("cannot start a process: %v", err)
		return
	}
	var running sync.WaitGroup
	running.Go(func() { p.dispatcher.Run(p.ctx) })
	<-p.dispatcher.Ready()
	for range deletionSweeps {
		if err := p.system.Sweep(p.ctx, 0); err != nil {
			w.fail("cannot sweep: %v", err)
		}
		_ = clock.Sleep(ctx, bubble, sweepEvery)
	}
	p.end()
	running.Wait()
	after := w.stored(ctx)
	if len(after) != len(before) {
		w.fail("%d of %d tasks are left", len(after), len(before))
	}
	for _, r := range after {
		found, err := w.raw.feed.Read(ctx, inference.StreamOf(tenant, r.TaskID), 0, 1)
		if err != nil || len(found) > 0 || !r.AnswerDeleted || len(r.Work.Inference.Request) > 0 || r.Generation != nil && r.Generation.Trace != "" {
			w.fail("%s is left with %d records, %v, the prompt %s and %+v after %d days", r.ID, len(found), err, r.Work.Inference.Request, r.Generation, w.days)
		}
	}
	if n := w.outputs.Count(port.Accepted) - w.objects; n > 0 && w.plan.reliable() && w.outcome.Refused == 0 { // a refused request has an object without a task
		w.fail("%d objects are left after %d days", n, w.days)
	}
	for _, r := range after {
		if n := len(w.outputs.Content(port.Accepted, limit.InputKey(tenant, r.TaskID))); n > 0 {
			w.fail("the request of %s is left with %d bytes after %d days", r.ID, n, w.days)
		}
	}
	w.checkUsage(ctx, after)
	w.outcome.Expired += len(after)
}
