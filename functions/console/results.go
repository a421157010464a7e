package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/run"
)

// results are the results of a job's newest runs, as a picture: a bar for each run, the newest
// at the right. Its height is the duration, its shape and colour are the result.
type results struct {
	Width int
	Bars  []resultBar
	// Summary is the same in words.
	Summary string
	// Ended counts the runs that ended with a result, Good those that completed.
	Ended, Good int
	// P95 is the 95th percentile of the durations of the completed runs; 0 without one.
	P95 time.Duration
}

// resultBar is a run in the picture. Shape is solid, cross, hollow, dot or half.
type resultBar struct {
	Class, Shape, Title string
	X, Middle, Y, H     int
}

// The geometry of the picture, in pixels.
const (
	resultStep   = 8
	resultHeight = 24
	resultLeast  = 5
	resultTop    = 7 // the space of the mark of a failure
)

// resultsOf returns the picture of runs that are sorted by age, the newest first.
func resultsOf(tasks []contract.Task, now time.Time) *results {
	if len(tasks) == 0 {
		return nil
	}
	r := &results{Width: len(tasks) * resultStep}
	rows, longest := make([]runRow, len(tasks)), 0.0
	for i, t := range tasks {
		rows[i] = rowOf(t, now)
		longest = max(longest, rows[i].Seconds)
	}
	var durations []float64
	var words []string
	for i, row := range rows {
		l := stateOf(row.State, row.Skipped)
		words = append(words, l.Word)
		b := resultBar{Class: l.Class, Shape: shapeOf(l), X: (len(rows) - 1 - i) * resultStep, H: resultLeast, Title: l.Word}
		if row.Seconds > 0 {
			b.Title += ", " + duration(time.Duration(row.Seconds*float64(time.Second)))
		}
		b.Middle = b.X + resultStep/2 - 1
		if longest > 0 {
			b.H = max(b.H, int(row.Seconds/longest*(resultHeight-resultTop)))
		}
		b.Y = resultHeight - b.H
		r.Bars = append(r.Bars, b)
		r.count(row)
		if row.State == string(run.Completed) && !row.Skipped {
			durations = append(durations, row.Seconds)
		}
	}
	if n := len(durations); n > 0 {
		slices.Sort(durations)
		r.P95 = time.Duration(durations[(n*95+99)/100-1] * float64(time.Second))
	}
	r.Summary = "newest first: " + strings.Join(words, ", ")
	return r
}

func (r *results) count(row runRow) {
	switch {
	case row.Skipped:
	case row.State == string(run.Completed):
		r.Ended++
		r.Good++
	case row.State == string(run.Failed), row.State == string(run.Orphaned):
		r.Ended++
	}
}

// Success returns the share of completed runs among those with a result.
func (r *results) Success() string {
	if r == nil || r.Ended == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", r.Good, r.Ended)
}

// shapeOf returns the shape of a state's bar.
func shapeOf(l look) string {
	switch {
	case l.Icon == "skip":
		return "dot"
	case l.Class == "good":
		return "solid"
	case l.Class == "bad":
		return "cross"
	case l.Busy:
		return "half"
	}
	return "hollow"
}
