package activity

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// The largest numbers of causes and of works in a slot. A slot of a store has a bounded size.
const (
	MaxCauses = 40
	MaxWorks  = 100
)

// Counts are numbers of runs by outcome. Those that have not ended are the rest of Created.
type Counts struct {
	Created   int `json:"created,omitempty"`
	Completed int `json:"completed,omitempty"`
	Skipped   int `json:"skipped,omitempty"`
	Cancelled int `json:"cancelled,omitempty"`
	Failed    int `json:"failed,omitempty"`
	// Children is the number of children that were created. The other figures leave them out: the
	// outcome of a parent is that of its children.
	Children int `json:"children,omitempty"`
}

// Slot has the figures of the runs that were created between two times.
type Slot struct {
	From time.Time `json:"from"`
	Counts
	Causes []Cause `json:"causes,omitempty"`
	Works  []Used  `json:"works,omitempty"`
	// Partial: Causes and Works lack some of the runs, because there were too many of them.
	Partial bool `json:"partial,omitempty"`
	// Spent is what the budget of the tenant had spent at the last count in the time of the slot;
	// nil without a count of inference tasks.
	Spent *budget.Amount `json:"spent,omitempty"`
}

// Cause is a group of failures with the same code, state and work.
type Cause struct {
	Work
	Code  string    `json:"code"`
	State run.State `json:"state"`
	Runs  int       `json:"runs"`
	// First and Last are the times of the first and the last failure. LastRun and Message are
	// those of the last.
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	LastRun string    `json:"lastRun"`
	Message string    `json:"message,omitempty"`
}

// Used has the figures of the runs of a work that have ended.
type Used struct {
	Work
	Runs   int `json:"runs"`
	Failed int `json:"failed,omitempty"`
	// FirstFailed is the number of runs whose first attempt failed.
	FirstFailed int `json:"firstFailed,omitempty"`
	// Times are the numbers of runs by the duration of the last attempt; see Seconds.
	Times map[int]int `json:"times,omitempty"`
}

// timesPerDouble is the number of steps of Used.Times in which the duration doubles.
const timesPerDouble = 4

// Count adds an entry to the slot of its creation.
func (s *Slot) Count(e Entry) {
	if e.Child {
		if e.Created {
			s.Children++
		}
		return
	}
	if e.Created {
		s.Created++
	}
	if !e.Ended {
		return
	}
	switch {
	case e.Skipped:
		s.Skipped++
		return
	case e.State == run.Completed:
		s.Completed++
	case e.State == run.Cancelled:
		s.Cancelled++
	default:
		s.Failed++
		s.addCause(Cause{Work: e.Work, Code: e.Code, State: e.State, Runs: 1, First: e.At, Last: e.At, LastRun: e.RunID, Message: e.Message}, MaxCauses)
	}
	u := Used{Work: e.Work, Runs: 1}
	if e.Failed() {
		u.Failed = 1
	}
	if e.Attempt > 1 || e.Failed() {
		u.FirstFailed = 1
	}
	if e.Seconds > 0 {
		u.Times = map[int]int{int(math.Round(math.Log2(max(e.Seconds*1000, 1)) * timesPerDouble)): 1}
	}
	s.addWork(u, MaxWorks)
}

// addCause adds failures to those of the same cause. Only most causes are stored.
func (s *Slot) addCause(c Cause, most int) {
	i := slices.IndexFunc(s.Causes, func(o Cause) bool { return o.Work == c.Work && o.Code == c.Code && o.State == c.State })
	if i < 0 {
		if len(s.Causes) >= most {
			s.Partial = true
			return
		}
		s.Causes = append(s.Causes, c)
		return
	}
	s.Causes[i].merge(c)
}

// merge adds later or earlier failures of the same cause.
func (c *Cause) merge(o Cause) {
	c.Runs += o.Runs
	if o.First.Before(c.First) {
		c.First = o.First
	}
	if !o.Last.Before(c.Last) {
		c.Last, c.LastRun, c.Message = o.Last, o.LastRun, o.Message
	}
}

// addWork adds runs to those of the same work. Of more than most works, the ones with failures
// replace one without.
func (s *Slot) addWork(u Used, most int) {
	i := slices.IndexFunc(s.Works, func(o Used) bool { return o.Work == u.Work })
	if i < 0 && len(s.Works) >= most {
		s.Partial = true
		if i = s.least(); i < 0 || u.FirstFailed == 0 {
			return
		}
		s.Works = slices.Delete(s.Works, i, i+1)
		i = -1
	}
	if i < 0 {
		s.Works = append(s.Works, Used{Work: u.Work})
		i = len(s.Works) - 1
	}
	s.Works[i].merge(u)
}

// merge adds runs of the same work.
func (u *Used) merge(o Used) {
	u.Runs, u.Failed, u.FirstFailed = u.Runs+o.Runs, u.Failed+o.Failed, u.FirstFailed+o.FirstFailed
	if u.Times == nil && len(o.Times) > 0 {
		u.Times = make(map[int]int, len(o.Times))
	}
	for step, runs := range o.Times {
		u.Times[step] += runs
	}
}

// Clone returns a slot that shares nothing with s that Count changes.
func (s Slot) Clone() Slot {
	s.Causes, s.Works = slices.Clone(s.Causes), slices.Clone(s.Works)
	for i := range s.Works {
		s.Works[i].Times = maps.Clone(s.Works[i].Times)
	}
	return s
}

// least returns the index of the work without failures that has the fewest runs; -1 without one.
func (s *Slot) least() int {
	least := -1
	for i, u := range s.Works {
		if u.FirstFailed == 0 && (least < 0 || u.Runs < s.Works[least].Runs) {
			least = i
		}
	}
	return least
}

// Seconds returns the duration below which a share of the runs was, such as 0.95; 0 without
// runs. It is off by at most a tenth.
func (u Used) Seconds(share float64) float64 {
	var steps []int
	total := 0
	for step, runs := range u.Times {
		steps, total = append(steps, step), total+runs
	}
	slices.Sort(steps)
	rest := int(math.Ceil(float64(total) * share))
	for _, step := range steps {
		if rest -= u.Times[step]; rest <= 0 {
			return math.Exp2(float64(step)/timesPerDouble) / 1000
		}
	}
	return 0
}
