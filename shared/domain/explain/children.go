package explain

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// children explains a run whose children run: what they wait for, and when the last one is expected
// to end at the pace so far.
func (x *Explanation) children(r run.Run, f Facts) {
	counts := r.Fan.Counts()
	text := counts.String()
	switch {
	case r.Fan.Stopped != "":
		text += fmt.Sprintf("; no further child starts (%s), and the active ones end", r.Fan.Stopped)
	case counts.Waiting > 0:
		text += fmt.Sprintf("; %d wait until one of the %d active children ends (maxParallel)", counts.Waiting, counts.Running)
	}
	if p := f.Pool; p.Limit > 0 && p.Held >= p.Limit && counts.Running > 0 {
		text += fmt.Sprintf("; active children may wait for pool %s: %d of %d slots are held, %d runs are queued", p.Name, p.Held, p.Limit, p.Queued)
	}
	if at, ok := lastEnd(r, f.Now); ok {
		text += "; at the pace so far, the last one ends at about " + stamp(at)
	}
	x.because(ChildrenRunning, r.RunBy(), "%s", text)
	x.Limits = append(x.Limits, childLimit(r))
}

// lastEnd returns when the last child ends at the pace so far; ok is false if none has ended.
func lastEnd(r run.Run, now time.Time) (at time.Time, ok bool) {
	counts := r.Fan.Counts()
	rest := counts.Running + counts.Waiting
	if counts.Ended() == 0 || rest == 0 || !now.After(r.EnteredAt) {
		return time.Time{}, false
	}
	return now.Add(now.Sub(r.EnteredAt) / time.Duration(counts.Ended()) * time.Duration(rest)).Truncate(time.Second), true
}

func childLimit(parent run.Run) Limit {
	counts := parent.Fan.Counts()
	return Limit{Kind: LimitChildren, Name: parent.ID, Used: counts.Running, Allowed: parent.Work.Fan.Parallel, Queued: min(counts.Waiting, limit.QueuePositions)}
}

// WaitingChild returns the explanation of a child that has no run yet, and its run as it would be
// created now; ok is false for a child that has one, or that will not start.
func WaitingChild(parent run.Run, number int, now time.Time) (child run.Run, x Explanation, ok bool) {
	if parent.Fan == nil || parent.State.Terminal() || parent.Fan.Stopped != "" || number < parent.Fan.Started || number >= parent.Fan.Total {
		return child, x, false
	}
	child = parent.ChildOf(number, fan.Item{Index: number}, now)
	child.State = run.Pending
	x.Position = min(number-parent.Fan.Started, limit.QueuePositions)
	x.because(AwaitsTurn, time.Time{}, "the child waits for its turn among those of run %s: %d of %d are active (maxParallel), and %s",
		parent.ID, len(parent.Fan.Active), parent.Work.Fan.Parallel, ahead(x.Position))
	x.Limits = []Limit{childLimit(parent)}
	return child, x, true
}
