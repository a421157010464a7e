// Package schedule estimates when the jobs of a graph run: jobs that come after each other.
package schedule

import (
	"slices"
	"time"
)

// Node is a job of a graph.
type Node struct {
	JobID string
	// After are the jobs that it comes after. They are earlier nodes.
	After []string
	// Takes is the expected duration of a run; Measured is the number of runs that it comes from.
	Takes    time.Duration
	Measured int
	// Starts and Ends are the times after the start of the first job. Critical: a longer run of the
	// job delays the end of the graph. Graph sets these.
	Starts, Ends time.Duration
	Critical     bool
}

// Graph sets the times of nodes, in the order of a graph. Each job starts when the last of the jobs
// that it comes after ends; queues and the starts of machines are part of Takes. It returns the end
// of the last job.
func Graph(nodes []Node) (total time.Duration) {
	index := map[string]int{}
	for i := range nodes {
		n := &nodes[i]
		for _, id := range n.After {
			if j, known := index[id]; known {
				n.Starts = max(n.Starts, nodes[j].Ends)
			}
		}
		n.Ends = n.Starts + n.Takes
		total, index[n.JobID] = max(total, n.Ends), i
	}
	latest := make([]time.Duration, len(nodes))
	for i := range latest {
		latest[i] = total
	}
	for i, n := range slices.Backward(nodes) {
		nodes[i].Critical = n.Ends == latest[i]
		for _, id := range n.After {
			if j, known := index[id]; known {
				latest[j] = min(latest[j], latest[i]-n.Takes)
			}
		}
	}
	return total
}

// Median returns the median of durations; zero without one.
func Median(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)/2]
}
