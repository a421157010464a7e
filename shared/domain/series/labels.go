package series

import (
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// RunsByLabel counts ended runs by their labels. Labels makes its samples.
const RunsByLabel = "sortie_runs_by_label_total"

// labelValues is the maximum number of values of a label that have a series in a process.
// OtherValue replaces further ones.
const (
	labelValues = 100
	OtherValue  = "other values"
)

// Labels counts ended runs by those of their labels that a setting lists. nil counts none. It is
// safe for concurrent use.
type Labels struct {
	mu sync.Mutex
	// seen has the values by the listed keys.
	seen map[string]map[string]bool
}

// NewLabels returns Labels for the keys; nil without keys.
func NewLabels(keys []string) *Labels {
	if len(keys) == 0 {
		return nil
	}
	l := &Labels{seen: map[string]map[string]bool{}}
	for _, key := range keys {
		l.seen[key] = map[string]bool{}
	}
	return l
}

// OfCommit returns the samples of a commit that ends a run; see package function OfCommit.
func (l *Labels) OfCommit(r run.Run, events []run.Event) (samples []Sample) {
	if l == nil || len(r.Labels) == 0 {
		return nil
	}
	for _, e := range events {
		if !e.Ends() {
			continue
		}
		for key := range l.seen {
			if value, has := r.Labels[key]; has {
				samples = append(samples, Sample{RunsByLabel, 1, []string{key, l.bounded(key, value), r.Work.Kind, string(e.State)}})
			}
		}
	}
	return samples
}

// bounded returns the value, or OtherValue if the label has too many.
func (l *Labels) bounded(key, value string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.seen[key]
	if !seen[value] && len(seen) >= labelValues {
		return OtherValue
	}
	seen[value] = true
	return value
}
