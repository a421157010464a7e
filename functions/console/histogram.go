package console

import (
	"fmt"
	"net/url"
	"time"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// histogram is a picture of the runs by the time of their creation and their state.
type histogram struct {
	Width, Height int
	Bars          []column
	Most          int
	From          time.Time
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
	chartWidth   = 960
	chartHeight  = 110
	columnSpace  = 3
	leastPart    = 2
	chartMinimum = 4 // a column with fewer runs is not as high as the picture
)

// histogramOf returns the picture of the slots of figures. It is nil without runs.
func histogramOf(a contract.Activity) *histogram {
	if len(a.Slots) == 0 || a.Runs == (contract.ActivityCounts{}) {
		return nil
	}
	h := &histogram{Width: chartWidth, Height: chartHeight, From: a.Since, Most: chartMinimum}
	wide := float64(chartWidth) / float64(len(a.Slots))
	for i, s := range a.Slots {
		c := column{X: float64(i) * wide, W: wide - columnSpace, From: s.From, Until: s.Until}
		c.Path = ui.WithQuery("runs", url.Values{"createdAfter": {s.From.Format(time.RFC3339)}, "createdBefore": {s.Until.Format(time.RFC3339)}})
		c.Counts = [4]int{s.Runs.Completed, s.Runs.Cancelled + s.Runs.Skipped, s.Runs.UnderWay, s.Runs.Failed}
		for _, n := range c.Counts {
			c.Total += n
		}
		h.Bars, h.Most = append(h.Bars, c), max(h.Most, c.Total)
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
