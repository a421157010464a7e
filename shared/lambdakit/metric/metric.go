// Package metric writes metrics as log lines, in CloudWatch's embedded metric
// format: CloudWatch reads them out of the log, and nobody waits for a call.
//
// It promises one line of JSON a set of counts. The libraries that AWS has for
// this are for other languages, and those of others ask the environment behind
// the back of main; the format is a page long.
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

// Namespace is where CloudWatch has the metrics.
const Namespace = "Sortie"

// Counts collects what is measured until it is written. Its zero value is empty.
// It is safe for use by many goroutines.
type Counts struct {
	mu     sync.Mutex
	values map[string]int
	faults map[string]int
}

// Add adds n to the metric of that name.
func (c *Counts) Add(name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(&c.values, name, n)
}

// Fault counts a fault by its code: the metric "Faults" has a dimension "code"
// beside the others.
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

// Dimensions are what metrics are told apart by.
type Dimensions struct{ Function, Stage string }

// Write writes what was collected, one line for all counts and one for each code
// of a fault, and begins anew. A metric whose name ends in "Ms" is in
// milliseconds, any other a count.
func (c *Counts) Write(to io.Writer, at time.Time, d Dimensions) error {
	c.mu.Lock()
	values, faults := c.values, c.faults
	c.values, c.faults = nil, nil
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
	if len(text) == 0 {
		return nil
	}
	if _, err := to.Write(text); err != nil {
		return fmt.Errorf("cannot write the metrics: %w", err)
	}
	return nil
}

// declared is one metric as the format declares it.
type declared struct {
	Name string
	Unit string
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
	line["_aws"] = struct {
		Timestamp         int64
		CloudWatchMetrics []directive
	}{at.UnixMilli(), []directive{of}}
	text, err := json.Marshal(line)
	if err != nil {
		return nil, fmt.Errorf("cannot write the metrics: %w", err)
	}
	return append(text, '\n'), nil
}
