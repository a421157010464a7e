package console

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// timeline is the picture of a run: a row for each attempt, a bar for each state, to scale.
type timeline struct {
	Width, Height int
	Rows          []timelineRow
	Ticks         []tick
	// Bars are the bars of all rows, in the order of time, for the table.
	Bars []bar
}

type timelineRow struct {
	Label string
	Y     int
	Bars  []bar
}

// bar is a state of a run.
type bar struct {
	State        ui.Look
	Attempt      int
	From, Until  time.Time
	Seconds      float64
	X, Y, W, H   float64
	Open, Hidden bool
}

// Name describes the bar in words.
func (b bar) Name() string {
	return fmt.Sprintf("%s, attempt %d, %s", b.State.Word, b.Attempt, ui.Duration(time.Duration(b.Seconds*float64(time.Second))))
}

type tick struct {
	X    float64
	Text string
}

// The geometry of the picture, in its own units.
const (
	timelineWidth = 1000
	timelineLeft  = 84
	rowHeight     = 26
	barHeight     = 16
	axisHeight    = 24
	leastBar      = 2.0
	tickText      = 60
)

// timelineOf returns the picture of a run from its events. It is nil without any.
func timelineOf(task contract.Task, events []contract.TaskEvent, now time.Time) *timeline {
	bars := barsOf(task, events, now)
	if len(bars) == 0 {
		return nil
	}
	from, until := bars[0].From, bars[len(bars)-1].Until
	whole := max(until.Sub(from).Seconds(), 0.001)
	scale := (timelineWidth - timelineLeft - 10) / whole
	t := &timeline{Width: timelineWidth}
	for i := range bars {
		b := &bars[i]
		if n := len(t.Rows); n == 0 || t.Rows[n-1].Bars[0].Attempt != b.Attempt {
			t.Rows = append(t.Rows, timelineRow{Label: fmt.Sprintf("Attempt %d", b.Attempt), Y: n*rowHeight + 16})
			if b.Attempt == 0 {
				t.Rows[n].Label = "Before"
			}
		}
		row := &t.Rows[len(t.Rows)-1]
		b.X = timelineLeft + b.From.Sub(from).Seconds()*scale
		b.W = max(b.Seconds*scale, leastBar)
		b.Y, b.H = float64(row.Y-12), barHeight
		row.Bars = append(row.Bars, *b)
	}
	t.Bars, t.Height = bars, len(t.Rows)*rowHeight+axisHeight
	step := tickStep(whole)
	for at := 0.0; at <= whole+step/1000 && at*scale < timelineWidth-timelineLeft-tickText; at += step {
		t.Ticks = append(t.Ticks, tick{X: timelineLeft + at*scale, Text: "+" + ui.Duration(time.Duration(at*float64(time.Second)))})
	}
	return t
}

// barsOf returns a bar for each state that the events report.
func barsOf(task contract.Task, events []contract.TaskEvent, now time.Time) (bars []bar) {
	for _, e := range events {
		if n := len(bars); n > 0 {
			last := &bars[n-1]
			if last.State.Word == e.State && last.Attempt == e.Attempt {
				continue
			}
			if last.Open {
				last.Until, last.Open = e.OccurredAt, false
			}
		}
		if run.State(e.State).Terminal() {
			break
		}
		bars = append(bars, bar{State: ui.StateOf(e.State, false), Attempt: e.Attempt, From: e.OccurredAt, Open: true})
	}
	for i := range bars {
		b := &bars[i]
		if b.Open {
			if b.Until = task.EndedAt; b.Until.IsZero() {
				b.Until = now
			}
		}
		b.Seconds = max(b.Until.Sub(b.From).Seconds(), 0)
	}
	return bars
}

// tickStep returns a round distance of ticks, in seconds, for at most ten of them.
func tickStep(whole float64) float64 {
	for _, step := range []float64{0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 4 * 3600, 12 * 3600, 86400, 7 * 86400} {
		if whole/step <= 8 {
			return step
		}
	}
	return whole / 8
}
