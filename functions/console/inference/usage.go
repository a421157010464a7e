package inference

import (
	"net/url"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// usage is the use of tokens in the hours of the last day, the oldest first.
type usage struct {
	Hours []usageHour
	Most  int
	// Limit is the limit of the tokens of the tenant's budget; 0 is no limit.
	Limit int64
	// Partial: there are more tasks than the page has read.
	Partial bool
}

// usageHour is the use of the tasks that were created in the hour before Until. Path is the list
// of them.
type usageHour struct {
	From, Until   time.Time
	Tasks, Tokens int
	// Spent is what the budget of the tenant had spent at the end of the hour; negative if unknown.
	Spent int64
	Path  string
}

// usageHours is the number of hours.
const usageHours = 24

// usageOf returns the use of tasks that are sorted by age, the newest first. It is nil if none of
// them is of the last day.
func usageOf(tasks []contract.Task, more bool, now time.Time) *usage {
	u := &usage{}
	end := now.Truncate(time.Hour).Add(time.Hour)
	for i := range usageHours {
		from := end.Add(time.Duration(i-usageHours) * time.Hour)
		h := usageHour{From: from, Until: from.Add(time.Hour)}
		h.Path = ui.WithQuery("runs", url.Values{"kind": {spec.KindInference}, "createdAfter": {h.From.Format(time.RFC3339)}, "createdBefore": {h.Until.Format(time.RFC3339)}})
		u.Hours = append(u.Hours, h)
	}
	found := false
	for _, t := range tasks {
		i := int(t.CreatedAt.Sub(u.Hours[0].From) / time.Hour)
		if t.CreatedAt.Before(u.Hours[0].From) || i >= usageHours || t.Inference == nil {
			continue
		}
		found = true
		h := &u.Hours[i]
		h.Tasks++
		h.Tokens += tokensOf(t)
		u.Most = max(u.Most, h.Tokens)
	}
	if !found {
		return nil
	}
	u.Partial = more && !tasks[len(tasks)-1].CreatedAt.Before(u.Hours[0].From)
	return u
}

// tokensOf returns the tokens of an inference task, as far as they are known.
func tokensOf(t contract.Task) (tokens int) {
	for _, n := range []*int{t.Inference.TokensIn, t.Inference.TokensOut} {
		if n != nil {
			tokens += *n
		}
	}
	return tokens
}

// spend adds what a budget had spent at the end of each hour: what it has spent now, without the
// tokens of the later hours. Before the oldest task that was read, it is unknown.
func (u *usage) spend(b contract.Budget, oldest time.Time) {
	if b.Limit.Tokens != nil {
		u.Limit = *b.Limit.Tokens
	}
	left := b.Spent.Tokens
	for i := range slices.Backward(u.Hours) {
		h := &u.Hours[i]
		if h.Spent = left; u.Partial && !h.Until.After(oldest) {
			h.Spent = -1
		}
		left = max(left-int64(h.Tokens), 0)
	}
}
