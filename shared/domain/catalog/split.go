package catalog

import (
	"fmt"
	"iter"
	"slices"

	"github.com/sortie-dev/sortie/shared/base/hash"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Share is a part of the tasks for a model that is sent to another model, for example to a new one:
// in place of the model by its split, and besides it as shadow traffic. Neither applies twice: the
// split and the shadows of the other model do not apply to them.
type Share struct {
	Model   string `json:"model"`
	Percent int    `json:"percent"`
}

// MaxShares is the maximum number of shares of a split, and of shadow traffic.
const MaxShares = 10

// ShareOf returns the share of the split that a task belongs to. It depends only on the id of the task
// and on the split. ok is false for a task of the model itself.
func (d Definition) ShareOf(taskID string) (s Share, ok bool) { return shareOf(d.Split, taskID) }

// ShadowOf returns the share of the shadow traffic that a task belongs to. It depends only on the id
// of the task, not on the split. ok is false for a task that is not copied.
func (d Definition) ShadowOf(taskID string) (s Share, ok bool) {
	return shareOf(d.Shadow, "shadow/"+taskID)
}

func shareOf(shares []Share, key string) (s Share, ok bool) {
	at := int(hash.Of(key) % 100)
	for _, s := range shares {
		if at -= s.Percent; at < 0 {
			return s, true
		}
	}
	return s, false
}

// Shares returns the split and the shadow traffic, each with its field.
func (d Definition) Shares() iter.Seq2[string, []Share] {
	return func(yield func(string, []Share) bool) {
		_ = yield("split", d.Split) && yield("shadow", d.Shadow)
	}
}

// checkShares returns a fault for each invalid field of shares.
func checkShares(field string, shares []Share) (found []*fault.Fault) {
	if len(shares) > MaxShares {
		return []*fault.Fault{fault.Invalid(field, "%d shares, want at most %d", len(shares), MaxShares)}
	}
	total := 0
	for i, s := range shares {
		at := fmt.Sprintf("%s.%d.", field, i)
		switch {
		case !limit.ValidModel(s.Model):
			found = append(found, fault.Invalid(at+"model", "missing or malformed model %q, want the id of a model of the catalog", limit.Cut(s.Model, limit.FileName)))
		case slices.ContainsFunc(shares[:i], func(other Share) bool { return other.Model == s.Model }):
			found = append(found, fault.Invalid(at+"model", "repeated model %q, want each once", s.Model))
		}
		if s.Percent < 1 || s.Percent > 100 {
			found = append(found, fault.Invalid(at+"percent", "%d is out of range, want 1 to 100", s.Percent))
		}
		total += min(max(s.Percent, 0), 100)
	}
	if total > 100 {
		found = append(found, fault.Invalid(field, "%d percent in all, want at most 100", total))
	}
	return found
}
