package harness

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Notice are the tries of one message to a service.
type Notice struct {
	Taken, Tries int
	Last         time.Time
}

// notify answers for a service: PagerDuty never takes messages about skipped runs. The caller can
// crash before and after it.
func (h *hooks) notify(ctx context.Context, r run.Run, of spec.Hook, reason string) (answer, failure string, err error) {
	w := h.W
	w.MaybeCrash()
	w.MaybeInterrupt()
	w.Time.Sleep(w.UpTo(3 * time.Second))
	if ctx.Err() != nil {
		return "", "", fault.New(fault.Unavailable, "the call was interrupted")
	}
	id := MessageID(&r, reason)
	if h.Notices[id] == nil {
		h.Notices[id] = &Notice{}
	}
	notice := h.Notices[id]
	notice.Tries++
	notice.Last = w.Time.Now
	event, _ := spec.EndAction(reason).Event()
	if never := of.Notice.Service == "pagerduty" && event == spec.OnSkip; never || notice.Taken == 0 && w.Random.Float64() < 0.4 {
		return "", "", &hook.Untaken{Detail: "no answer"}
	}
	notice.Taken++
	w.MaybeCrash()
	return "ok", "", nil
}
