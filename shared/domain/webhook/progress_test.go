package webhook_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/domain/webhook"
)

func begin() webhook.Progress {
	return webhook.Webhook{Tenant: "acme", ID: "whk_1"}.Begin(7, "e", noon)
}

// answers settles attempts of new events one after another, all at the time now.
func answers(p webhook.Progress, now time.Time, statuses ...int) webhook.Progress {
	for _, status := range statuses {
		p, _ = settle(p, webhook.Delivery{}, status, now)
	}
	return p
}

func window(t *testing.T, p webhook.Progress, now time.Time) (int, time.Duration) {
	t.Helper()
	n, next := p.Window(0, now)
	if n == 0 {
		return 0, next.Sub(now)
	}
	return n, 0
}

func TestBreakerOpensAndStartsSlowly(t *testing.T) {
	t.Parallel()
	p, now := answers(begin(), noon, 500, 500, 500, 500), noon
	if n, _ := window(t, p, now); n != webhook.Parallel || p.Health.Failing() {
		t.Errorf("got %d attempts after 4 failures, want %d", n, webhook.Parallel)
	}
	for i, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute} {
		p = answers(p, now, 500)
		if n, pause := window(t, p, now); n != 0 || pause != want {
			t.Fatalf("failure %d: got %d attempts and a pause of %s, want %s", i+5, n, pause, want)
		}
		now = p.Health.HeldUntil
		if n, _ := window(t, p, now); n != 1 {
			t.Fatalf("failure %d: got %d attempts after the pause, want 1", i+5, n)
		}
	}
	for _, want := range []int{2, 4, 8, webhook.Parallel} {
		p = answers(p, now, 200)
		if n, _ := window(t, p, now); n != want || p.Health.Failing() {
			t.Errorf("got %d attempts after a success, want %d", n, want)
		}
	}
}

func TestReceiverSlowsTheWebhook(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		status int
		after  time.Duration
		want   time.Duration
	}{
		"429": {429, 0, time.Second}, "502": {502, 0, time.Second}, "504": {504, 0, time.Second}, "500": {500, 0, 0}, "503": {503, 0, 0}, "no answer": {0, 0, 0},
		"429 with Retry-After": {429, 90 * time.Second, 90 * time.Second}, "503 with Retry-After": {503, time.Minute, time.Minute},
		"200 with Retry-After": {200, time.Minute, time.Minute}, "long Retry-After": {429, 1000 * time.Hour, webhook.MaxHold},
	} {
		p, _ := begin().Settle([]webhook.Result{{Attempt: webhook.Attempt{Status: row.status}, RetryAfter: row.after}}, 0, retention, noon, never)
		n, pause := window(t, p, noon)
		if pause != row.want || (n == 0) != (row.want > 0) {
			t.Errorf("%s: got %d attempts and a pause of %s, want a pause of %s", name, n, pause, row.want)
		}
		if n, _ := window(t, p, noon.Add(row.want)); row.want > 0 && n != 1 {
			t.Errorf("%s: got %d attempts after the pause, want 1", name, n)
		}
	}
	if p := answers(begin(), noon, 429, 429, 429); p.Health.HeldUntil.Sub(noon) != 4*time.Second {
		t.Errorf("got a pause of %s after three 429, want 4s", p.Health.HeldUntil.Sub(noon))
	}
}

// TestRateIsLimited makes attempts as fast as permitted. No second may have more than twice the
// rate, and the total may not exceed the rate plus one burst.
func TestRateIsLimited(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.IntRange(1, 50).Draw(t, "rate")
		p, now, sent := begin(), noon, 0
		for range rapid.IntRange(1, 60).Draw(t, "turns") {
			n, next := p.Window(rate, now)
			if n == 0 {
				if !next.After(now) {
					t.Fatalf("got no attempts and the next one at %s, want it after %s", next, now)
				}
				now = next
				continue
			}
			n = rapid.IntRange(1, n).Draw(t, "taken")
			p, _ = p.Settle(make([]webhook.Result, n), rate, retention, now, never)
			p.Health.HeldUntil, p.Health.Window = time.Time{}, 0
			sent += n
			now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "milliseconds")) * time.Millisecond)
			if most := float64(rate)*(now.Sub(noon).Seconds()+1) + 1; float64(sent) > most {
				t.Fatalf("got %d attempts after %s, want at most %.0f", sent, now.Sub(noon), most)
			}
		}
	})
}

func TestLostReceiverIsDisabled(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	failing := func(first, last time.Duration) webhook.Health {
		p := answers(begin(), noon.Add(first), 500)
		return answers(p, noon.Add(last), 500).Health
	}
	recovered := answers(begin(), noon.Add(time.Hour), 500)
	recovered = answers(recovered, noon.Add(4*day), 200)
	warned := failing(0, day)
	warned.Warned = true
	for name, row := range map[string]struct {
		health webhook.Health
		at     time.Duration
		want   webhook.Reason
	}{
		"new":                                {begin().Health, 100 * day, ""},
		"23 hours":                           {failing(0, 23*time.Hour), 23 * time.Hour, ""},
		"a day":                              {failing(0, day), day, webhook.ReasonFailing},
		"a day, warned":                      {warned, day, ""},
		"almost 5 days":                      {failing(0, 5*day-1), 5*day - 1, webhook.ReasonFailing},
		"5 days":                             {failing(0, 5*day), 5 * day, webhook.ReasonFailed},
		"5 days without events, one failure": {failing(6*day, 6*day), 6 * day, ""},
		"failures of 11 hours":               {failing(6*day, 6*day+11*time.Hour), 6*day + 11*time.Hour, ""},
		"failures of 12 hours":               {failing(6*day, 6*day+12*time.Hour), 6*day + 12*time.Hour, webhook.ReasonFailed},
		"success after a failure":            {recovered.Health, 8 * day, ""},
		"failures since a success":           {answers(answers(recovered, noon.Add(4*day), 500), noon.Add(9*day), 500).Health, 9 * day, webhook.ReasonFailed},
		"410":                                {answers(begin(), noon, 410).Health, 0, webhook.ReasonGone},
	} {
		if got := row.health.Verdict(noon.Add(row.at)); got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}

// TestSuccessEndsTheWarning expects a warning about failures, and another one about failures
// after a success.
func TestSuccessEndsTheWarning(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	p := answers(answers(begin(), noon, 500), noon.Add(day), 500)
	p.Health.Warned = true
	if p = answers(p, noon.Add(day), 500); !p.Health.Warned || p.Health.Verdict(noon.Add(day)) != "" {
		t.Errorf("got %+v after a further failure, want no second warning", p.Health)
	}
	if p = answers(p, noon.Add(day), 200); p.Health.Warned {
		t.Errorf("got %+v after a success, want no warning", p.Health)
	}
	p = answers(answers(p, noon.Add(2*day), 500), noon.Add(3*day), 500)
	if got := p.Health.Verdict(noon.Add(3 * day)); got != webhook.ReasonFailing {
		t.Errorf("got the verdict %q after failures since the success, want %q", got, webhook.ReasonFailing)
	}
}

func TestPausedWebhookMissesEvents(t *testing.T) {
	t.Parallel()
	p := answers(begin(), noon, 500, 500, 500, 500, 500, 500)
	p.Pending = 3
	p = p.Enable(20, noon.Add(time.Hour))
	if p.Cursor != 20 || len(p.Missed) != 1 || p.Missed[0] != (webhook.Range{From: 8, To: 20}) || p.Health.Failures != 0 || p.Pending != 3 {
		t.Errorf("got %+v, want the events 8 to 20 missed and 3 pending deliveries", p)
	}
	if n, _ := window(t, p, noon.Add(time.Hour)); n != webhook.Parallel {
		t.Errorf("got %d attempts, want %d", n, webhook.Parallel)
	}
	if same := p.Enable(20, noon); len(same.Missed) != 1 {
		t.Errorf("got %v, want nothing further missed", same.Missed)
	}
	for i := range 30 {
		p = p.Enable(int64(30+i), noon)
	}
	if last := p.Missed[len(p.Missed)-1]; len(p.Missed) != 20 || last.To != 59 {
		t.Errorf("got %d ranges up to %d, want the newest 20", len(p.Missed), last.To)
	}
}

func TestOneWorkerHasTheLease(t *testing.T) {
	t.Parallel()
	p, got, _ := begin().Acquire("a", noon)
	if !got || !p.WakeAt.Equal(noon.Add(webhook.LeaseTime+webhook.LeaseSlack)) {
		t.Fatalf("got %+v, want the lease, and a look after its end", p)
	}
	if p := p.Renew("a", noon.Add(webhook.LeaseSlack)); !p.WakeAt.Equal(p.Lease.Until) {
		t.Errorf("got %+v, want the same look", p)
	}
	if p := p.Renew("a", noon.Add(webhook.LeaseSlack+1)); !p.WakeAt.Equal(p.Lease.Until.Add(webhook.LeaseSlack)) {
		t.Errorf("got %+v, want a later look", p)
	}
	p, got, changed := p.Acquire("b", noon.Add(webhook.LeaseTime-1))
	if got || !changed || !p.Again {
		t.Errorf("got %+v, want a note to look again", p)
	}
	if _, got, changed := p.Acquire("c", noon); got || changed {
		t.Error("got a second note, want none")
	}
	if again, got, _ := p.Acquire("a", noon); !got || again.Again {
		t.Errorf("got %+v, want the owner's lease again", again)
	}
	if _, got, _ := p.Acquire("b", noon.Add(webhook.LeaseTime)); !got {
		t.Error("got no lease after the first one has ended")
	}
	for next, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, 5 * time.Hour: webhook.Housekeeping} {
		if p := p.Release(noon.Add(next), noon); p.Lease.Owner != "" || p.WakeAt.Sub(noon) != want {
			t.Errorf("got %+v, want no lease and the next look after %s", p, want)
		}
	}
}

// TestPendingIsCounted settles random deliveries. The count must follow their states.
func TestPendingIsCounted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, stored := begin(), map[int64]webhook.Delivery{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			position := rapid.Int64Range(1, 6).Draw(t, "position")
			d, known := stored[position]
			if d.Position = position; known {
				d = d.Read()
			}
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				p, stored[position] = settle(p, d, rapid.SampledFrom([]int{200, 410, 500}).Draw(t, "status"), noon)
			case 1:
				d = d.GiveUp("gone", noon, retention)
				p, stored[position] = p.Count([]webhook.Delivery{d}), d
			case 2:
				d = d.Again(nil)
				p, stored[position] = p.Count([]webhook.Delivery{d}), d
			}
			pending := 0
			for _, d := range stored {
				if d.State == webhook.Pending {
					pending++
				}
			}
			if p.Pending != pending {
				t.Fatalf("got %d pending, want %d", p.Pending, pending)
			}
		}
	})
}
