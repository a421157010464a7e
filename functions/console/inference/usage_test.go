package inference

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/functions/console/uitest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestUseOfTokensByHour(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 9, 30, 0, 0, time.UTC)
	task := func(ago time.Duration, in, out int) contract.Task {
		return contract.Task{CreatedAt: now.Add(-ago), Inference: &contract.InferenceDetails{TokensIn: &in, TokensOut: &out}}
	}
	tasks := []contract.Task{task(0, 1, 2), task(20*time.Minute, 10, 20), task(40*time.Minute, 100, 200), task(23*time.Hour, 4, 4), task(25*time.Hour, 9, 9)}
	text := uitest.Text(t, usageOf(tasks, true, now).content(&ui.Layout{Root: "../", Now: now}, "tenant"))
	for _, want := range []string{"09:00 to 10:00 UTC: 33 tokens of 2 tasks", "08:00 to 09:00 UTC: 300 tokens of 1 tasks", "10:00 to 11:00 UTC: 8 tokens", "at most 300 in an hour</span>"} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %q in %s", want, text)
		}
	}
	limit := int64(1000)
	u := usageOf(tasks[:3], true, now)
	u.spend(contract.Budget{Limit: contract.BudgetLimit{Tokens: &limit}, Spent: contract.BudgetUse{Tokens: 500}}, tasks[2].CreatedAt)
	if h := u.Hours; h[23].Spent != 500 || h[22].Spent != 467 || h[21].Spent != -1 || u.Limit != 1000 {
		t.Errorf("got %+v, want the budget of the last two hours", h[20:])
	}
	if text := uitest.Text(t, u.line()); !strings.Contains(text, `points="900,43 940,40"`) {
		t.Errorf("got the line %s", text)
	}
	if u := usageOf(tasks[:4], true, now); !u.Partial {
		t.Error("got the use of all tasks, want that there are more")
	}
	if u := usageOf(tasks[4:], false, now); u != nil {
		t.Errorf("got %+v without a task of the last day", u)
	}
}

// TestUseOfSessions groups tasks by their session.
func TestUseOfSessions(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 9, 30, 0, 0, time.UTC)
	task := func(session string, ago time.Duration, out int) contract.Task {
		return contract.Task{CreatedAt: now.Add(-ago), Inference: &contract.InferenceDetails{SessionID: session, TokensOut: &out}}
	}
	bad := `<script>alert(1)</script>`
	tasks := []contract.Task{task("a", 0, 10), task(bad, time.Minute, 1), task("", time.Minute, 9), task("a", time.Hour, 30), task("b", 48*time.Hour, 5), {CreatedAt: now}}
	sessions := sessionsOf(tasks, false, now)
	if len(sessions) != 3 || sessions[0].Tasks != 2 || sessions[0].Tokens != 40 || sessions[0].Usage.Most != 30 || sessions[2].Usage != nil {
		t.Fatalf("got %+v, want three sessions", sessions)
	}
	text := uitest.Text(t, inferenceData{Sessions: sessions}.sessions(&ui.Layout{Now: now}))
	for _, want := range []string{"08:00 UTC: 30 tokens; 09:00 UTC: 10 tokens; ", `viewBox="0 0 120 24"`, "&lt;script&gt;"} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %q in %s", want, text)
		}
	}
	if strings.Contains(text, "<script") {
		t.Errorf("got a name as markup in %s", text)
	}
}
