package fan

import "time"

// The limits of a fan-out.
const (
	// MaxChildren is the maximum number of children.
	MaxChildren = 10_000
	// MaxParallel is the maximum number of active children, DefaultParallel the default.
	MaxParallel     = 500
	DefaultParallel = 20
	// MaxParents is the number of runs of a job that have active children at a time, unless the job
	// has a concurrencyKey. Further runs wait.
	MaxParents = 10
	// MaxItem and MaxItems are the sizes in bytes of one item, and of all together.
	MaxItem  = 4 << 10
	MaxItems = 768 << 10
	// MaxOutput is the size in bytes of an output with items: these, and what else is in the
	// document.
	MaxOutput = 4 * MaxItems
	// MaxAxes is the maximum number of axes of a matrix.
	MaxAxes = 10
	// MaxResult is the maximum size in bytes of the result of a child in the output of its parent.
	MaxResult = 4 << 10
)

// CheckEvery is the time between two checks of a parent, which find what was lost.
const CheckEvery = time.Minute

// Spec describes the children of a run. One of Items, Matrix, From and List is set; none of them
// means no children.
type Spec struct {
	Items  []string `json:"items,omitempty"`
	Matrix []Axis   `json:"matrix,omitempty"`
	From   *Source  `json:"from,omitempty"`
	// List is the digest of a stored list.
	List string `json:"list,omitempty"`
	// Parallel is the maximum number of active children.
	Parallel int `json:"parallel"`
	// MaxFailures is the maximum number of failed children of a success. Above it no further child
	// starts.
	MaxFailures int `json:"maxFailures,omitempty"`
	// FailFast also cancels the active children then.
	FailFast bool `json:"failFast,omitempty"`
}

// Axis is one axis of a matrix.
type Axis struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// Source is the run whose output has the items: that of a job which the run comes after, or one
// that the request names.
type Source struct {
	JobID string `json:"jobId,omitempty"`
	RunID string `json:"runId,omitempty"`
	// Result names a member of the output, an object in JSON; empty for the whole output.
	Result string `json:"result,omitempty"`
}

// Requested returns the description with the items of a request that before has, if any.
func (s *Spec) Requested(before *Spec) *Spec {
	if s == nil || before == nil || before.List == "" && (before.From == nil || before.From.RunID == "") {
		return s
	}
	kept := s.Begun(before.List)
	kept.From = before.From
	return &kept
}

// SameRequest reports whether both have the same items of a request, or none.
func (s *Spec) SameRequest(other *Spec) bool {
	list := func(s *Spec) string {
		if s == nil {
			return ""
		}
		if s.From != nil {
			return s.List + s.From.RunID
		}
		return s.List
	}
	return list(other) == "" || list(s) == list(other)
}

// Begun returns the description without its items, which are stored as the list with the digest.
func (s Spec) Begun(list string) Spec {
	return Spec{List: list, Parallel: s.Parallel, MaxFailures: s.MaxFailures, FailFast: s.FailFast}
}
