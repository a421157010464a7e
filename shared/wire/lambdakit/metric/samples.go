package metric

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/series"
)

// families maps names to the declarations of package series.
var families = func() map[string]series.Family {
	all := map[string]series.Family{}
	for _, f := range series.Families() {
		all[f.Name] = f
	}
	return all
}()

// Record adds the samples of one commit. They become one line, whose only dimensions are the
// stage and the labels of their families. CloudWatch accepts a time that is at most two weeks
// in the past.
func (c *Counts) Record(at time.Time, samples []series.Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commits = append(c.commits, commit{at, samples})
}

// commit contains the samples of one commit.
type commit struct {
	at      time.Time
	samples []series.Sample
}

func (c commit) line(stage string) ([]byte, error) {
	line := map[string]any{"stage": stage}
	var directives []directive
	for _, s := range c.samples {
		f := families[s.Name]
		dimensions := append([]string{"stage"}, f.Labels...)
		for i, label := range f.Labels {
			line[label] = s.Labels[i]
		}
		n := slices.IndexFunc(directives, func(d directive) bool { return slices.Equal(d.Dimensions[0], dimensions) })
		if n < 0 {
			n = len(directives)
			directives = append(directives, directive{Namespace: Namespace, Dimensions: [][]string{dimensions}})
		}
		directives[n].Metrics = append(directives[n].Metrics, declared{s.Name, unitOf(s.Name)})
		line[s.Name] = s.Value
	}
	line["_aws"] = header{c.at.UnixMilli(), directives}
	text, err := json.Marshal(line)
	if err != nil {
		return nil, fmt.Errorf("cannot write the metrics of a run: %w", err)
	}
	return append(text, '\n'), nil
}
