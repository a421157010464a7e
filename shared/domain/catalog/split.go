package catalog

import (
	"fmt"
	"slices"

	"github.com/sortie-dev/sortie/shared/base/hash"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Share sends a part of the tasks for a model to another model, for example to a new one. The split of
// the other model does not apply to them.
type Share struct {
	Model   string `json:"model"`
	Percent int    `json:"percent"`
}

// MaxShares is the maximum number of shares of a model.
const MaxShares = 10

// ShareOf returns the share that a task belongs to. It depends only on the id of the task and on the
// split. ok is false for a task of the model itself.
func (d Definition) ShareOf(taskID string) (s Share, ok bool) {
	at := int(hash.Of(taskID) % 100)
	for _, s := range d.Split {
		if at -= s.Percent; at < 0 {
			return s, true
		}
	}
	return s, false
}

// checkSplit returns a fault for each invalid field of the split.
func (d Definition) checkSplit() (found []*fault.Fault) {
	if len(d.Split) > MaxShares {
		return []*fault.Fault{fault.Invalid("split", "%d shares, want at most %d", len(d.Split), MaxShares)}
	}
	total := 0
	for i, s := range d.Split {
		at := fmt.Sprintf("split.%d.", i)
		switch {
		case !limit.ValidModel(s.Model):
			found = append(found, fault.Invalid(at+"model", "missing or malformed model %q, want the id of a model of the catalog", limit.Cut(s.Model, limit.FileName)))
		case slices.ContainsFunc(d.Split[:i], func(other Share) bool { return other.Model == s.Model }):
			found = append(found, fault.Invalid(at+"model", "repeated model %q, want each once", s.Model))
		}
		if s.Percent < 1 || s.Percent > 100 {
			found = append(found, fault.Invalid(at+"percent", "%d is out of range, want 1 to 100", s.Percent))
		}
		total += min(max(s.Percent, 0), 100)
	}
	if total > 100 {
		found = append(found, fault.Invalid("split", "%d percent in all, want at most 100", total))
	}
	return found
}
