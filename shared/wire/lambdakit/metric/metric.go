// Package metric writes metrics as log lines in CloudWatch's embedded metric format. CloudWatch
// extracts them from the log, so sending them needs no call.
//
// AWS has no Go library for this short format. Third-party libraries read the environment
// themselves.
package metric

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Namespace is the namespace of the metrics in CloudWatch.
const Namespace = "Sortie"

// Counts collects counts and samples until Write. The zero value is empty. It is safe for
// concurrent use.
type Counts struct {
	mu       sync.Mutex
	values   map[string]int
	faults   map[string]int
	commits  []commit
	observed map[string]observed // by labels
}

// Add adds n to the named metric.
func (c *Counts) Add(name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(&c.values, name, n)
}

// Fault counts a fault in the metric "Faults". Its additional dimension "code" is the code.
func (c *Counts) Fault(code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(&c.faults, code, 1)
}

func add(to *map[string]int, name string, n int) {
	if *to == nil {
		*to = map[string]int{}
	}
	(*to)[name] += n
}

// Dimensions are the dimensions of every metric.
type Dimensions struct{ Function, Stage string }

// Write writes the counts and samples as lines and resets them. It writes one line for all
// counts, one for each fault code, one for the samples of each commit, and one or more for each
// set of labels of the other samples. The unit of a count whose name ends in "Ms" is
// milliseconds, of any other Count.
func (c *Counts) Write(to io.Writer, at time.Time, d Dimensions) error {
	c.mu.Lock()
	values, faults, commits, others := c.values, c.faults, c.commits, c.observed
	c.values, c.faults, c.commits, c.observed = nil, nil, nil, nil
	c.mu.Unlock()
	var text []byte
	if len(values) > 0 {
		line, err := d.line(at, values, "")
		if err != nil {
			return err
		}
		text = append(text, line...)
	}
	for _, code := range slices.Sorted(maps.Keys(faults)) {
		line, err := d.line(at, map[string]int{"Faults": faults[code]}, code)
		if err != nil {
			return err
		}
		text = append(text, line...)
	}
	for _, commit := range commits {
		line, err := commit.line(d.Stage)
		if err != nil {
			return err
		}
		text = append(text, line...)
	}
	for _, labels := range slices.Sorted(maps.Keys(others)) {
		lines, err := others[labels].lines(at, d.Stage)
		if err != nil {
			return err
		}
		text = append(text, lines...)
	}
	if len(text) == 0 {
		return nil
	}
	if _, err := to.Write(text); err != nil {
		return fmt.Errorf("cannot write the metrics: %w", err)
	}
	return nil
}

// declared is the declaration of one metric in the format.
type declared struct {
	Name string
	Unit string
}

type header struct {
	Timestamp         int64
	CloudWatchMetrics []directive
}

type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []declared
}

func (d Dimensions) line(at time.Time, values map[string]int, code string) ([]byte, error) {
	of := directive{Namespace: Namespace, Dimensions: [][]string{{"function", "stage"}}}
	line := map[string]any{"function": d.Function, "stage": d.Stage}
	if code != "" {
		of.Dimensions = append(of.Dimensions, []string{"function", "stage", "code"})
		line["code"] = code
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		unit := "Count"
		if strings.HasSuffix(name, "Ms") {
			unit = "Milliseconds"
		}
		of.Metrics = append(of.Metrics, declared{name, unit})
		line[name] = values[name]
	}
	line["_aws"] = header{at.UnixMilli(), []directive{of}}
	text, err := json.Marshal(line)
	if err != nil {
		return nil, fmt.Errorf("cannot write the metrics: %w", err)
	}
	return append(text, '\n'), nil
}
