package fan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// End says how a child ended.
type End byte

// The ends.
const (
	Succeeded End = 's'
	Failed    End = 'f'
	Cancelled End = 'c'
	// Skipped: the parent stopped before the child was created.
	Skipped End = 'k'
	// none is the end of a child that is active.
	none End = '-'
)

// Stop says why no further child starts.
type Stop string

// The reasons.
const (
	StopFailures  Stop = "failures"  // more children than MaxFailures have failed
	StopCancelled Stop = "cancelled" // the parent was cancelled
	StopDeadline  Stop = "deadline"  // the parent has reached its deadline
)

// Progress is what has become of the children of a run.
type Progress struct {
	// Total is the number of children, Started how many of them have started. The others wait.
	Total   int `json:"total"`
	Started int `json:"started"`
	// Active are the numbers of the children that have started and not ended, in order.
	Active []int `json:"active,omitempty"`
	// Ends has the ends of the children that have started; see ends.
	Ends      string `json:"ends,omitempty"`
	Succeeded int    `json:"succeeded,omitempty"`
	Failed    int    `json:"failed,omitempty"`
	Cancelled int    `json:"cancelled,omitempty"`
	// Verified is the number of children whose runs were seen or created. A later check does not
	// create them again.
	Verified int `json:"verified,omitempty"`
	// Stopped is the reason why no further child starts; empty while children start.
	Stopped Stop `json:"stopped,omitempty"`
	// CheckBy is when the next check is due.
	CheckBy time.Time `json:"checkBy"`
}

// ChildEnd is the end of a child.
type ChildEnd struct {
	Number int
	End    End
}

// Begin returns the progress of a fan-out with total children, of which the first have started.
func (s Spec) Begin(total int, now time.Time) Progress {
	return s.start(Progress{Total: total, CheckBy: now.Add(CheckEvery)})
}

// start starts waiting children, as many as may be active.
func (s Spec) start(p Progress) Progress {
	n := min(s.Parallel-len(p.Active), p.Total-p.Started)
	if p.Stopped != "" || n <= 0 {
		return p
	}
	p.Active = slices.Clone(p.Active)
	ends := p.ends()
	for range n {
		p.Active, ends = append(p.Active, p.Started), append(ends, byte(none))
		p.Started++
	}
	p.Ends = encode(ends)
	return p
}

// Count returns the progress after ends of children, with the further children that start. An end
// of a child that is not active counts no more.
func (s Spec) Count(p Progress, ended []ChildEnd) Progress {
	ends := p.ends()
	active := slices.Clone(p.Active)
	for _, e := range ended {
		at, is := slices.BinarySearch(active, e.Number)
		if !is {
			continue
		}
		active, ends[e.Number] = slices.Delete(active, at, at+1), byte(e.End)
		switch e.End {
		case Succeeded:
			p.Succeeded++
		case Failed:
			p.Failed++
		case Cancelled:
			p.Cancelled++
		case Skipped, none:
		}
	}
	if len(active) == len(p.Active) {
		return p
	}
	p.Active, p.Ends = active, encode(ends)
	if p.Stopped == "" && s.Exceeded(p) {
		p.Stopped = StopFailures
	}
	return s.start(p)
}

// Exceeded reports whether more children have failed than a success may have. A child that was
// cancelled counts as failed.
func (s Spec) Exceeded(p Progress) bool { return p.Failed+p.Cancelled > s.MaxFailures }

// CancelsActive reports whether the active children are to be cancelled.
func (s Spec) CancelsActive(p Progress) bool {
	return p.Stopped != "" && (s.FailFast || p.Stopped != StopFailures)
}

// Stop returns the progress without further starts. The first reason stays, but a request to cancel
// replaces failures.
func (p Progress) Stop(why Stop) Progress {
	if p.Stopped == "" || p.Stopped == StopFailures && why == StopCancelled {
		p.Stopped = why
	}
	return p
}

// Over reports whether all children have ended, and none starts any more.
func (p Progress) Over() bool {
	return len(p.Active) == 0 && (p.Started == p.Total || p.Stopped != "")
}

// Counts are the numbers of children. Their sum is Total.
type Counts struct {
	Total, Waiting, Running, Succeeded, Failed, Cancelled, Skipped int
}

// Counts returns the numbers of children.
func (p Progress) Counts() Counts {
	c := Counts{Total: p.Total, Running: len(p.Active), Succeeded: p.Succeeded, Failed: p.Failed, Cancelled: p.Cancelled}
	rest := p.Total - c.Running - c.Succeeded - c.Failed - c.Cancelled
	if p.Stopped == "" {
		c.Waiting = rest
	} else {
		c.Skipped = rest
	}
	return c
}

// Ended returns the number of children that have ended. Skipped ones do not count.
func (c Counts) Ended() int { return c.Succeeded + c.Failed + c.Cancelled }

// String returns the numbers for people, such as "3 of 10 succeeded, 1 failed, 2 running".
func (c Counts) String() string {
	text := fmt.Sprintf("%d of %d succeeded", c.Succeeded, c.Total)
	for _, part := range []struct {
		n    int
		name string
	}{{c.Failed, "failed"}, {c.Cancelled, "cancelled"}, {c.Running, "running"}, {c.Waiting, "waiting"}, {c.Skipped, "skipped"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.name)
		}
	}
	return text
}

// Tenths returns how many tenths of the children have ended.
func (p Progress) Tenths() int {
	if p.Total == 0 {
		return 0
	}
	return p.Counts().Ended() * 10 / p.Total
}

// EndOf returns the end of a child. ended is false for one that is active or waits. A child that
// waits when the fan-out stops is skipped.
func (p Progress) EndOf(number int) (end End, ended bool) {
	if number >= p.Started {
		return Skipped, p.Stopped != ""
	}
	end = End(p.ends()[number])
	return end, end != none
}

// Status says what has become of a child.
type Status string

// The statuses.
const (
	StatusWaiting   Status = "waiting"
	StatusRunning   Status = "running" // it has started and not ended
	StatusSucceeded Status = "succeeded"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
	StatusSkipped   Status = "skipped"
)

// Statuses returns all statuses.
func Statuses() []Status {
	return []Status{StatusWaiting, StatusRunning, StatusSucceeded, StatusFailed, StatusCancelled, StatusSkipped}
}

var statuses = map[End]Status{none: StatusRunning, Succeeded: StatusSucceeded, Failed: StatusFailed, Cancelled: StatusCancelled, Skipped: StatusSkipped}

// Statuses returns the statuses of all children, in order.
func (p Progress) Statuses() []Status {
	found := make([]Status, 0, p.Total)
	for _, end := range p.ends() {
		found = append(found, statuses[End(end)])
	}
	rest := StatusWaiting
	if p.Stopped != "" {
		rest = StatusSkipped
	}
	for len(found) < p.Total {
		found = append(found, rest)
	}
	return found
}

// Unsuccessful returns the numbers of the children that have not succeeded, in order.
func (p Progress) Unsuccessful() (numbers []int) {
	for n, end := range p.ends() {
		if End(end) != Succeeded {
			numbers = append(numbers, n)
		}
	}
	for n := p.Started; n < p.Total; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

// ends decodes Ends: one letter for each child that has started. In Ends a number before a letter
// repeats it.
func (p Progress) ends() []byte {
	ends, n := make([]byte, 0, p.Started), 0
	for _, c := range []byte(p.Ends) {
		if c >= '0' && c <= '9' {
			n = n*10 + int(c-'0')
			continue
		}
		for range max(n, 1) {
			ends = append(ends, c)
		}
		n = 0
	}
	return ends
}

// encode returns the text of ends.
func encode(ends []byte) string {
	var b strings.Builder
	for i := 0; i < len(ends); {
		n := 1
		for i+n < len(ends) && ends[i+n] == ends[i] {
			n++
		}
		if n > 1 {
			b.WriteString(strconv.Itoa(n))
		}
		b.WriteByte(ends[i])
		i += n
	}
	return b.String()
}
