package console

import (
	"fmt"
	"net/url"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// histogram is a picture of the runs by the time of their creation and their state.
type histogram struct {
	Width, Height int
	Bars          []column
	Most          int
	From, Until   time.Time
}

// column has the runs that were created between two times. Path is the list of them.
type column struct {
	X, W        float64
	From, Until time.Time
	Counts      [4]int
	Parts       []columnPart
	Total       int
	Path        string
}

// columnPart is a part of a column: runs whose states have the same look.
type columnPart struct {
	Class string
	Y, H  float64
}

// kinds are the groups of states in a column, from the bottom to the top.
var columnKinds = [4]struct{ Class, Word string }{{"good", "completed"}, {"off", "cancelled or skipped"}, {"run", "under way"}, {"bad", "failed"}}

// Name describes a column in words.
func (c column) Name() string {
	text := fmt.Sprintf("%s to %s UTC: %d runs", c.From.Format("2006-01-02 15:04"), c.Until.Format("15:04"), c.Total)
	for i, kind := range columnKinds {
		if c.Counts[i] > 0 {
			text += fmt.Sprintf(", %d %s", c.Counts[i], kind.Word)
		}
	}
	return text
}

// The geometry of the picture.
const (
	columns      = 48
	chartWidth   = 960
	chartHeight  = 110
	columnSpace  = 3
	leastPart    = 2
	chartMinimum = 4 // a column with fewer runs is not as high as the picture
)

// histogramOf returns the picture of runs that were created since a time, with at least a second
// for each column. It is nil without runs.
func histogramOf(rows []runRow, from, until time.Time) *histogram {
	if len(rows) == 0 {
		return nil
	}
	if until.Sub(from) < columns*time.Second {
		from = until.Add(-columns * time.Second)
	}
	length := until.Sub(from)
	h := &histogram{Width: chartWidth, Height: chartHeight, From: from, Until: until, Most: chartMinimum}
	step, wide := length/columns, float64(chartWidth)/columns
	for i := range columns {
		begin := from.Add(time.Duration(i) * step)
		c := column{X: float64(i) * wide, W: wide - columnSpace, From: begin, Until: begin.Add(step)}
		c.Path = address("runs", url.Values{"createdAfter": {begin.Format(time.RFC3339Nano)}, "createdBefore": {c.Until.Format(time.RFC3339Nano)}})
		h.Bars = append(h.Bars, c)
	}
	for _, r := range rows {
		i := min(max(int(r.CreatedAt.Sub(from)/step), 0), columns-1)
		h.Bars[i].Counts[kindOf(r)]++
		h.Bars[i].Total++
		h.Most = max(h.Most, h.Bars[i].Total)
	}
	for i := range h.Bars {
		c, y := &h.Bars[i], float64(chartHeight)
		for kind, count := range c.Counts {
			if count == 0 {
				continue
			}
			high := max(float64(count)/float64(h.Most)*(chartHeight-10), leastPart)
			y -= high
			c.Parts = append(c.Parts, columnPart{Class: columnKinds[kind].Class, Y: y, H: high})
		}
	}
	return h
}

func kindOf(r runRow) int {
	switch s := run.State(r.State); {
	case r.Skipped || s == run.Cancelled:
		return 1
	case s == run.Completed:
		return 0
	case !s.Terminal():
		return 2
	}
	return 3
}
