package run_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// withOutput returns a completed run with an output, a log and a policy, and the time of its end.
func withOutput(t *testing.T, change func(*spec.Policy), facts ...run.Fact) (run.Run, time.Time) {
	t.Helper()
	first := fresh()
	first.Policy.OutputRetention, first.Policy.RecordRetention = 24*time.Hour, 7*24*time.Hour
	change(&first.Policy)
	r, now := run.New(first, epoch).Run, epoch
	facts = append([]run.Fact{
		run.Admitted{Pool: "default"},
		run.MachineCreated{Attempt: 1, Machine: platform.Machine{ID: "m"}},
		run.MachineRunning{Attempt: 1},
		run.Reported{Attempt: 1, Report: run.Report{Success: true, Upload: &run.Upload{Key: "k", Size: 1}}},
		run.Settled{Output: &run.Output{Upload: run.Upload{Key: "k", Size: 1}}, Logged: true},
	}, facts...)
	for _, f := range facts {
		now = now.Add(time.Second)
		d, err := run.Decide(r, f, now)
		if err != nil {
			t.Fatalf("%T: %v", f, err)
		}
		r = d.Run
	}
	return r, r.EndedAt
}

func TestRetentionOfARun(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	pin, unpin := run.PinChanged{Pinned: true, By: run.Actor{Subject: "me"}}, run.PinChanged{By: run.Actor{Subject: "me"}}
	download := run.OutputExpiring{At: epoch.Add(time.Hour), Message: "downloaded"}
	for name, row := range map[string]struct {
		change                func(*spec.Policy)
		facts                 []run.Fact
		output, logs, records time.Duration // after the end; 0 means never
	}{
		"of the deployment":            {func(*spec.Policy) {}, nil, day, 0, 7 * day},
		"downloaded":                   {func(*spec.Policy) {}, []run.Fact{download}, time.Hour, 0, 7 * day},
		"downloaded, of a job":         {func(p *spec.Policy) { p.OutputRetention, p.RecordRetention, p.KeepDownloaded = 90*day, 90*day, true }, []run.Fact{download}, 90 * day, 0, 90 * day},
		"shorter logs":                 {func(p *spec.Policy) { p.LogRetention = 2 * day }, nil, day, 2 * day, 7 * day},
		"newest":                       {func(p *spec.Policy) { p.Newest = 1 }, []run.Fact{download}, 0, 0, 0},
		"pinned":                       {func(p *spec.Policy) { p.LogRetention = day }, []run.Fact{pin, pin, download}, 0, 0, 0},
		"unpinned":                     {func(*spec.Policy) {}, []run.Fact{pin, unpin, unpin}, day, 0, 7 * day},
		"unpinned, one of the newest":  {func(p *spec.Policy) { p.Newest = 1 }, []run.Fact{pin, unpin}, 0, 0, 0},
		"downloaded, pinned, unpinned": {func(*spec.Policy) {}, []run.Fact{download, pin, unpin}, day, 0, 7 * day},
		"deleted while it is pinned":   {func(*spec.Policy) {}, []run.Fact{pin, run.OutputExpiring{At: epoch, Deleted: true}}, -5 * time.Second, 0, 0},
	} {
		r, end := withOutput(t, row.change, row.facts...)
		for part, got := range map[string]struct {
			at   time.Time
			want time.Duration
		}{"output": {r.Output.ExpiresAt, row.output}, "logs": {r.LogsExpireAt, row.logs}, "record": {r.ExpiresAt, row.records}} {
			late := got.at.Sub(end.Add(got.want))
			if got.at.IsZero() != (got.want == 0) || got.want != 0 && (late < -5*time.Second || late > 5*time.Second) {
				t.Errorf("%s: got the %s until %s, want %s after the end", name, part, got.at, got.want)
			}
		}
		if r.Held != r.ExpiresAt.IsZero() || r.PurgeAt() != (time.Time{}) {
			t.Errorf("%s: got held %t, expiry %s and purge %s", name, r.Held, r.ExpiresAt, r.PurgeAt())
		}
	}
}

// TestPinOfAnExpiredOutput pins a run before and after the expiry of its output, and after its
// deletion.
func TestPinOfAnExpiredOutput(t *testing.T) {
	t.Parallel()
	r, _ := withOutput(t, func(*spec.Policy) {})
	pin := run.PinChanged{Pinned: true, By: run.Actor{Subject: "me"}}
	expiry := r.Output.ExpiresAt
	for _, row := range []struct {
		before []run.Fact
		at     time.Time
		want   bool
	}{
		{nil, expiry.Add(-3 * time.Minute), true},
		{nil, expiry.Add(-time.Minute), false},
		{nil, expiry.Add(time.Hour), false},
		{[]run.Fact{run.OutputDeleted{}}, expiry.Add(time.Hour), true},
		{[]run.Fact{run.OutputExpiring{At: epoch, Deleted: true}}, epoch.Add(time.Hour), true},
	} {
		now := r
		for _, f := range row.before {
			d, err := run.Decide(now, f, row.at)
			if err != nil {
				t.Fatalf("%T: %v", f, err)
			}
			now = d.Run
		}
		d, err := run.Decide(now, pin, row.at)
		switch {
		case !row.want && (!fault.Is(err, fault.OutputExpired) || !strings.Contains(err.Error(), expiry.Format(time.RFC3339))):
			t.Errorf("pin at %s after %v: got %v, want OUTPUT_EXPIRED with the expiry", row.at, row.before, err)
		case row.want && (err != nil || d.Run.Pin == nil):
			t.Errorf("pin at %s after %v: got %+v, %v", row.at, row.before, d.Run.Pin, err)
		}
	}
}

// TestPinsAreEvents pins and unpins a run twice each, before and after its end.
func TestPinsAreEvents(t *testing.T) {
	t.Parallel()
	ended, _ := withOutput(t, func(*spec.Policy) {})
	for name, r := range map[string]run.Run{"new": run.New(fresh(), epoch).Run, "ended": ended} {
		for i, want := range []string{"job.pinned", "", "job.unpinned", ""} {
			d, err := run.Decide(r, run.PinChanged{Pinned: i < 2, By: run.Actor{Subject: "token/1"}}, r.EnteredAt.Add(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			if r = d.Run; len(d.Events) != min(len(want), 1) || want != "" && (string(d.Events[0].Type) != want || d.Events[0].Actor.Subject != "token/1") {
				t.Errorf("%s, %d: got %+v, want %q of the client", name, i, d.Events, want)
			}
		}
	}
}

// TestChecksOfAHeldRun checks a held run a day after its first retention, and later.
func TestChecksOfAHeldRun(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	newest := func(p *spec.Policy) { p.Newest = 2 }
	r, end := withOutput(t, newest)
	check := func(after time.Duration, isNewest bool) {
		t.Helper()
		d, err := run.Decide(r, run.RetentionChecked{Newest: isNewest}, end.Add(after))
		if err != nil || len(d.Events) > 0 {
			t.Fatalf("got %v and events %v", err, d.Events)
		}
		r = d.Run
	}
	if check(day-time.Second, false); !r.Held {
		t.Fatal("got a run that is released before its retention")
	}
	check(day, true)
	if due := r.BytesDue(); !r.Held || !due.Equal(end.Add(2*day)) {
		t.Errorf("got held %t and the next check at %s, want a day later", r.Held, due)
	}
	r.Pin = &run.Pin{At: end, By: "me"}
	if check(2*day, false); !r.Held || !r.BytesDue().Equal(end.Add(32*day)) {
		t.Errorf("got held %t and the next check at %s, want a pinned run checked a month later", r.Held, r.BytesDue())
	}
	r.Pin = nil
	check(32*day, false)
	if r.Held || !r.ExpiresAt.Equal(end.Add(7*day)) || !r.Output.Expired(end.Add(32*day)) || r.BytesDue().After(end.Add(32*day)) {
		t.Errorf("got held %t, expiry %s, want an expired run whose bytes are deleted now", r.Held, r.ExpiresAt)
	}
	if d, err := run.Decide(r, run.PinChanged{Pinned: true}, end.Add(33*day)); err == nil {
		t.Errorf("got %+v, want an expired run not found", d.Run.Pin)
	}
	held, _ := withOutput(t, newest)
	if d, err := run.Decide(held, run.Shed{}, end.Add(year)); err != nil || d.Changed {
		t.Errorf("got a held run that a full store removes, %v", err)
	}
}

const year = 365 * 24 * time.Hour
