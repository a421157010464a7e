package porttest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/series"
)

// Tally sums samples by name and labels. Record is a series.Recorder. It records a problem for
// each sample that package series does not declare. The zero value is ready to use. A Tally is
// safe for concurrent use.
type Tally struct {
	mu       sync.Mutex
	sums     map[string]float64
	problems []string
}

// Record adds samples to the sums.
func (t *Tally) Record(_ context.Context, samples ...series.Sample) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sums == nil {
		t.sums = map[string]float64{}
	}
	for _, s := range samples {
		if problem := check(s); problem != "" {
			t.problems = append(t.problems, problem)
		}
		t.sums[strings.Join(append([]string{s.Name}, s.Labels...), " ")] += s.Value
	}
}

// check returns the problem of a sample; empty if the sample is valid. The family must be a
// counter or a histogram, and the label values must be among LabelValues.
func check(s series.Sample) string {
	all := series.Families()
	n := slices.IndexFunc(all, func(f series.Family) bool { return f.Name == s.Name })
	if n < 0 || all[n].Kind == series.Gauge || len(s.Labels) != len(all[n].Labels) {
		return fmt.Sprintf("%v is no sample of a counter or a histogram", s)
	}
	for i, label := range all[n].Labels {
		if values := series.LabelValues(s.Name, label); values != nil && !slices.Contains(values, s.Labels[i]) {
			return fmt.Sprintf("%v: got %s %q, want one of %v", s, label, s.Labels[i], values)
		}
	}
	return ""
}

// Of returns the sum of the samples with this name and these label values.
func (t *Tally) Of(name string, labels ...string) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sums[strings.Join(append([]string{name}, labels...), " ")]
}

// Problems returns the problems of all recorded samples.
func (t *Tally) Problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.problems)
}
