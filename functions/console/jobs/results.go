package jobs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// results are the results of a job's newest runs, as a picture: a bar for each run, the newest
// at the right. Its height is the duration, its shape and colour are the result.
type results struct {
	Width int
	Bars  []resultBar
	// Summary is the same in words, and Brief the beginning of it.
	Summary, Brief string
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

// briefGroups is the largest number of groups of equal results in results.Brief.
const briefGroups = 8

// resultsOf returns the picture of runs that are sorted by age, the newest first.
func resultsOf(runs []contract.JobResult, now time.Time) *results {
	if len(runs) == 0 {
		return nil
	}
	r := &results{Width: len(runs) * resultStep}
	took, longest := make([]float64, len(runs)), 0.0
	for i, row := range runs {
		took[i] = page.SecondsOf(row.StartedAt, row.EndedAt, now)
		longest = max(longest, took[i])
	}
	var durations []float64
	var words []string
	for i, row := range runs {
		l := ui.StateOf(row.State, row.Skipped)
		words = append(words, l.Word)
		b := resultBar{Class: l.Class, Shape: shapeOf(l), X: (len(runs) - 1 - i) * resultStep, H: resultLeast, Title: l.Word}
		if took[i] > 0 {
			b.Title += ", " + ui.Seconds(took[i])
		}
		b.Middle = b.X + resultStep/2 - 1
		if longest > 0 {
			b.H = max(b.H, int(took[i]/longest*(resultHeight-resultTop)))
		}
		b.Y = resultHeight - b.H
		r.Bars = append(r.Bars, b)
		r.count(row)
		if row.State == string(run.Completed) && !row.Skipped {
			durations = append(durations, took[i])
		}
	}
	if n := len(durations); n > 0 {
		slices.Sort(durations)
		r.P95 = time.Duration(durations[(n*95+99)/100-1] * float64(time.Second))
	}
	groups := grouped(words)
	r.Summary = "newest first: " + strings.Join(groups, ", ")
	if r.Brief = r.Summary; len(groups) > briefGroups {
		r.Brief = "newest first: " + strings.Join(groups[:briefGroups], ", ") + " …"
	}
	return r
}

// grouped returns equal words that follow each other as one, such as "3 Completed".
func grouped(words []string) (groups []string) {
	for len(words) > 0 {
		n := 1
		for n < len(words) && words[n] == words[0] {
			n++
		}
		group := words[0]
		if n > 1 {
			group = strconv.Itoa(n) + " " + group
		}
		groups, words = append(groups, group), words[n:]
	}
	return groups
}

// resultOf returns a run as the list of jobs has it.
func resultOf(t contract.Task) contract.JobResult {
	return contract.JobResult{RunID: t.RunID, State: t.State, Skipped: t.Skipped, CreatedAt: t.CreatedAt, StartedAt: t.StartedAt, EndedAt: t.EndedAt}
}

func (r *results) count(row contract.JobResult) {
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
func shapeOf(l ui.Look) string {
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
