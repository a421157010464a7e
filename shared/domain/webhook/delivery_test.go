package webhook_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/domain/webhook"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const retention = 7 * 24 * time.Hour

func never() float64 { return 0 }

// settle settles one attempt with a status at a time.
func settle(p webhook.Progress, d webhook.Delivery, status int, now time.Time) (webhook.Progress, webhook.Delivery) {
	p, all := p.Settle([]webhook.Result{{Delivery: d, Attempt: webhook.Attempt{At: now, Status: status}}}, 0, retention, now, never)
	return p, all[0]
}

// TestAttemptsFollowTheSchedule fails each attempt of an event (EE-6.2).
func TestAttemptsFollowTheSchedule(t *testing.T) {
	t.Parallel()
	want := []time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
	var p webhook.Progress
	d, now := webhook.Delivery{Position: 1, State: webhook.Pending}, noon
	for i, pause := range want {
		p, d = settle(p, d, 500, now)
		if d.State != webhook.Pending || d.Due.Sub(now) != pause || d.Tries != i+1 {
			t.Fatalf("attempt %d: got %+v, want the next one after %s", i+1, d, pause)
		}
		now = d.Due
	}
	_, d = settle(p, d, 500, now)
	if d.State != webhook.Failed || len(d.Log) != webhook.Attempts() || !d.Due.IsZero() || !d.ExpiresAt.Equal(now.Add(retention)) {
		t.Errorf("got %+v, want a failed delivery after %d attempts", d, webhook.Attempts())
	}
	if d = d.Again(nil); d.State != webhook.Pending || d.Tries != 0 || len(d.Log) != webhook.Attempts() || !d.ExpiresAt.IsZero() {
		t.Errorf("got %+v of a redelivery, want all attempts again and the log of the former ones", d)
	}
}

func TestJitterLengthensPauses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		chance := rapid.Float64Range(0, 0.999).Draw(t, "chance")
		tries := rapid.IntRange(0, webhook.Attempts()-2).Draw(t, "tries")
		d := webhook.Delivery{State: webhook.Pending, Tries: tries}
		_, all := webhook.Progress{}.Settle([]webhook.Result{{Delivery: d}}, 0, retention, noon, func() float64 { return chance })
		pause := webhook.Pauses()[tries]
		if got := all[0].Due.Sub(noon); got < pause || got > pause+pause/10 {
			t.Fatalf("got a pause of %s, want %s to a tenth more", got, pause)
		}
	})
}

func TestOnlySuccessEndsADelivery(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]webhook.State{
		200: webhook.Delivered, 201: webhook.Delivered, 204: webhook.Delivered, 299: webhook.Delivered,
		0: webhook.Pending, 199: webhook.Pending, 300: webhook.Pending, 301: webhook.Pending, 304: webhook.Pending, 400: webhook.Pending, 401: webhook.Pending,
		404: webhook.Pending, 409: webhook.Pending, 429: webhook.Pending, 500: webhook.Pending, 503: webhook.Pending, 410: webhook.Failed,
	} {
		if _, d := settle(webhook.Progress{}, webhook.Delivery{}, status, noon); d.State != want {
			t.Errorf("%d: got %s, want %s", status, d.State, want)
		}
	}
}

func TestLogKeepsTheNewestAttempts(t *testing.T) {
	t.Parallel()
	var d webhook.Delivery
	for i := range 50 {
		_, d = settle(webhook.Progress{}, d.Again(nil), 500+i, noon)
	}
	if len(d.Log) != 20 || d.Log[19].Status != 549 || d.Log[0].Status != 530 {
		t.Errorf("got %d attempts from %d to %d, want the newest 20", len(d.Log), d.Log[0].Status, d.Log[len(d.Log)-1].Status)
	}
}

// TestOrderedDeliveriesWaitForTheirTask checks, for random pending deliveries, that at most the
// first one of a task is ready, and that unordered ones depend only on their time.
func TestOrderedDeliveriesWaitForTheirTask(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var pending []webhook.Delivery
		for i := range rapid.IntRange(0, 12).Draw(t, "pending") {
			d := webhook.Delivery{Position: int64(i + 1), TaskID: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "task")}
			d.Due = noon.Add(time.Duration(rapid.IntRange(-2, 2).Draw(t, "due")) * time.Second)
			pending = append(pending, d)
		}
		for _, ordered := range []bool{false, true} {
			var want []int64
			var next time.Time
			for i, d := range pending {
				behind := ordered && d.TaskID != "" && slices.ContainsFunc(pending[:i], func(e webhook.Delivery) bool { return e.TaskID == d.TaskID })
				if !behind && !d.Due.After(noon) {
					want = append(want, d.Position)
				}
				if !behind && d.Due.After(noon) && (next.IsZero() || d.Due.Before(next)) {
					next = d.Due
				}
			}
			var got []int64
			ready, at := webhook.Webhook{Ordered: ordered}.Ready(pending, noon)
			for _, d := range ready {
				got = append(got, d.Position)
			}
			if !slices.Equal(got, want) || !at.Equal(next) {
				t.Fatalf("ordered %t: got %v and then %s, want %v and %s of %+v", ordered, got, at, want, next, pending)
			}
		}
	})
}

func TestIDs(t *testing.T) {
	t.Parallel()
	first := webhook.ID(noon, "acme", "key")
	if !webhook.ValidID(first) || webhook.ID(noon, "acme", "key") != first {
		t.Errorf("got %s, want one valid id of a name", first)
	}
	for _, other := range []string{webhook.ID(noon, "acmek", "ey"), webhook.ID(noon, "acme", "key2"), webhook.ID(noon.Add(time.Second), "acme", "key")} {
		if other == first {
			t.Errorf("got %s for two names", other)
		}
	}
	for _, text := range []string{"", "whk_", first + "A", "whk_" + fmt.Sprintf("%026d", 0)[:25] + "I", "hook_" + first[4:]} {
		if webhook.ValidID(text) {
			t.Errorf("got %q valid, want it malformed", text)
		}
	}
}

func TestRotationKeepsTheOlderSecretForADay(t *testing.T) {
	t.Parallel()
	w := webhook.Webhook{Secrets: []webhook.Secret{{Text: "one", CreatedAt: noon}}}
	w, ok := w.Rotate("two", false, "token:abc", noon.Add(time.Hour))
	if !ok || w.UpdatedBy != "token:abc" {
		t.Fatalf("got %+v, %t, want a rotation", w, ok)
	}
	for at, want := range map[time.Duration]string{
		time.Hour: "one two", 25*time.Hour - 1: "one two", 25 * time.Hour: "two", 9000 * time.Hour: "two",
	} {
		var got []string
		for _, s := range w.Signing(noon.Add(at)) {
			got = append(got, s.Text)
		}
		if fmt.Sprint(got) != "["+want+"]" {
			t.Errorf("after %s: got %s, want %s", at, got, want)
		}
	}
	w, _ = w.Rotate("three", false, "", noon.Add(2*time.Hour))
	if got := w.Signing(noon.Add(25*time.Hour + 30*time.Minute)); len(got) != 2 || got[0].Text != "two" {
		t.Errorf("got %v after a second rotation, want each secret for its own day", got)
	}
	for range 2 {
		w, _ = w.Rotate("more", false, "", noon.Add(3*time.Hour))
	}
	if _, ok := w.Rotate("six", false, "", noon.Add(3*time.Hour)); ok {
		t.Errorf("got a rotation with %d secrets, want none", len(w.Secrets))
	}
	if _, ok := w.Rotate("six", false, "", noon.Add(28*time.Hour)); !ok {
		t.Error("got no rotation after the older secrets have expired")
	}
	w, ok = w.Rotate("seven", true, "", noon.Add(3*time.Hour))
	if got := w.Signing(noon.Add(3 * time.Hour)); !ok || len(got) != 1 || got[0].Text != "seven" {
		t.Errorf("got %v, %t after a rotation that revokes, want the new secret alone", got, ok)
	}
}

func TestNextAttemptIsNotInThePast(t *testing.T) {
	t.Parallel()
	due := func(d time.Duration) webhook.Delivery {
		return webhook.Delivery{State: webhook.Pending, Due: noon.Add(d)}
	}
	for name, row := range map[string]struct {
		d    webhook.Delivery
		held time.Duration
		want time.Time
	}{
		"later":           {due(time.Hour), -time.Hour, noon.Add(time.Hour)},
		"due":             {due(-time.Hour), -time.Hour, noon},
		"at once":         {webhook.Delivery{State: webhook.Pending}, -time.Hour, noon},
		"held":            {due(-time.Minute), time.Hour, noon.Add(time.Hour)},
		"held, due later": {due(2 * time.Hour), time.Hour, noon.Add(2 * time.Hour)},
		"delivered":       {webhook.Delivery{State: webhook.Delivered}, time.Hour, time.Time{}},
		"failed":          {webhook.Delivery{State: webhook.Failed, Due: noon}, 0, time.Time{}},
	} {
		p := webhook.Progress{Health: webhook.Health{HeldUntil: noon.Add(row.held)}}
		if got := p.NextAttempt(row.d, noon); !got.Equal(row.want) {
			t.Errorf("%s: got %s, want %s", name, got, row.want)
		}
	}
}
