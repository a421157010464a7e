package run_test

import (
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// first creates the run of a story. "key" is its key, with one slot; "overflow" is the rule for
// a queue of three; "joins" is how it joins the key at its creation.
func (s *teller) first(t *testing.T, d *datadriven.TestData, r run.Run) run.Decision {
	if d.HasArg("key") {
		r.Concurrency = &spec.Concurrency{Key: word(t, d, "key"), Limit: 1}
	}
	if d.HasArg("overflow") {
		r.Concurrency.QueueLimit, r.Concurrency.Overflow = 3, spec.Overflow(word(t, d, "overflow"))
	}
	if !d.HasArg("joins") {
		return run.New(r, s.now)
	}
	switch word(t, d, "joins") {
	case "held":
		return run.New(r.Joined(run.AdmitStart, s.now), s.now)
	case "queued":
		return run.New(r.Joined(run.AdmitKeyQueue, s.now), s.now)
	}
	return run.NewOverflowed(r, run.KeyOverflowed{By: "other", Queued: 3}, s.now)
}

// line returns the QueueState of the pool's queue from the arguments "head", "tail", "last" and
// "queued".
func line(t *testing.T, d *datadriven.TestData) (l platform.QueueState) {
	var head, tail, last int
	d.MaybeScanArgs(t, "head", &head)
	d.MaybeScanArgs(t, "tail", &tail)
	d.MaybeScanArgs(t, "last", &last)
	d.MaybeScanArgs(t, "queued", &l.Queued)
	l.Head, l.Tail, l.Last = int64(head), int64(tail), int64(last)
	return l
}

func TestAdmissionDecidesAboutAllLimits(t *testing.T) {
	t.Parallel()
	key := func(overflow spec.Overflow) *spec.Concurrency {
		return &spec.Concurrency{Key: "shop", Limit: 1, QueueLimit: 2, Overflow: overflow}
	}
	for name, row := range map[string]struct {
		run  run.Run
		room run.Room
		want run.Admission
	}{
		"free":                      {run.Run{}, run.Room{}, run.AdmitStart},
		"full pool":                 {run.Run{}, run.Room{PoolFull: true}, run.AdmitQueue},
		"no key":                    {run.Run{}, run.Room{KeyFull: true}, run.AdmitStart},
		"free key":                  {run.Run{Concurrency: key("")}, run.Room{}, run.AdmitStart},
		"free key, full pool":       {run.Run{Concurrency: key("")}, run.Room{PoolFull: true}, run.AdmitQueue},
		"full key":                  {run.Run{Concurrency: key("")}, run.Room{KeyFull: true, KeyQueued: 1}, run.AdmitKeyQueue},
		"full key and pool":         {run.Run{Concurrency: key("")}, run.Room{KeyFull: true, PoolFull: true}, run.AdmitKeyQueue},
		"full queue":                {run.Run{Concurrency: key("")}, run.Room{KeyFull: true, KeyQueued: 2}, run.AdmitReject},
		"full queue, reject":        {run.Run{Concurrency: key(spec.OverflowReject)}, run.Room{KeyFull: true, KeyQueued: 3}, run.AdmitReject},
		"full queue, keep newest":   {run.Run{Concurrency: key(spec.OverflowKeepNewest)}, run.Room{KeyFull: true, KeyQueued: 2}, run.AdmitReplace},
		"full queue, keep oldest":   {run.Run{Concurrency: key(spec.OverflowKeepOldest)}, run.Room{KeyFull: true, KeyQueued: 2}, run.AdmitSkip},
		"queue without a limit":     {run.Run{Concurrency: &spec.Concurrency{Key: "shop", Limit: 1}}, run.Room{KeyFull: true, KeyQueued: 1e6}, run.AdmitKeyQueue},
		"retry with its key":        {run.Run{Concurrency: key(""), KeySlot: platform.Slot{State: platform.SlotHeld}}, run.Room{KeyFull: true, KeyQueued: 2}, run.AdmitStart},
		"retry, full pool":          {run.Run{Concurrency: key(""), KeySlot: platform.Slot{State: platform.SlotHeld}}, run.Room{KeyFull: true, PoolFull: true}, run.AdmitQueue},
		"no key, key queue is long": {run.Run{}, run.Room{KeyFull: true, KeyQueued: 9}, run.AdmitStart},
	} {
		if got := row.run.Admit(row.room); got != row.want {
			t.Errorf("%s: got %s, want %s", name, got, row.want)
		}
	}
}

func TestOrderIsPriorityThenRoundThenAge(t *testing.T) {
	t.Parallel()
	slot := func(p spec.Priority, round int64, age int) platform.Slot {
		return platform.Slot{Priority: p, Round: round, Since: epoch.Add(-time.Duration(age))}
	}
	sorted := []platform.Slot{
		{Since: epoch.Add(-time.Duration(1))},
		{Since: epoch}, // stored by a version without rounds
		slot(spec.PriorityInteractive, 9, 1), slot(spec.PriorityInteractive, 1<<40, 9),
		slot(spec.PriorityNormal, 1, 3), slot("", 1, 2), slot(spec.PriorityNormal, 2, 9), slot("", 16, 1), slot("", 17, 9),
		slot(spec.PriorityBatch, 1, 9), slot(spec.PriorityBatch, 1, 8),
	}
	for i := range sorted[1:] {
		if a, b := sorted[i].Order(), sorted[i+1].Order(); a >= b {
			t.Errorf("got %q of %+v not before %q of %+v", a, sorted[i], b, sorted[i+1])
		}
	}
	for _, s := range sorted {
		if got := platform.RoundOf(s.Order()); got != s.Round {
			t.Errorf("got round %d of %q, want %d", got, s.Order(), s.Round)
		}
	}
}
