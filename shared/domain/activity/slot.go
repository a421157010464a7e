package activity

import (
	"cmp"
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
	o := &s.Causes[i]
	o.Runs += c.Runs
	if c.First.Before(o.First) {
		o.First = c.First
	}
	if !c.Last.Before(o.Last) {
		o.Last, o.LastRun, o.Message = c.Last, c.LastRun, c.Message
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
	o := &s.Works[i]
	o.Runs, o.Failed, o.FirstFailed = o.Runs+u.Runs, o.Failed+u.Failed, o.FirstFailed+u.FirstFailed
	if o.Times == nil && len(u.Times) > 0 {
		o.Times = map[int]int{}
	}
	for step, runs := range u.Times {
		o.Times[step] += runs
	}
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

// Total returns the figures of all slots: causes by their number of runs, works with the largest
// share of failures of the first attempt first, then the slowest.
func Total(slots []Slot) Slot {
	var all Slot
	for _, s := range slots {
		all.Created, all.Completed, all.Skipped = all.Created+s.Created, all.Completed+s.Completed, all.Skipped+s.Skipped
		all.Cancelled, all.Failed, all.Partial = all.Cancelled+s.Cancelled, all.Failed+s.Failed, all.Partial || s.Partial
		for _, c := range s.Causes {
			all.addCause(c, math.MaxInt)
		}
		for _, u := range s.Works {
			all.addWork(u, math.MaxInt)
		}
	}
	slices.SortFunc(all.Causes, func(a, b Cause) int {
		return cmp.Or(b.Runs-a.Runs, b.Last.Compare(a.Last), cmp.Compare(a.Code, b.Code))
	})
	slices.SortFunc(all.Works, func(a, b Used) int {
		return cmp.Or(
			cmp.Compare(b.FirstFailed*a.Runs, a.FirstFailed*b.Runs), cmp.Compare(b.Seconds(0.95), a.Seconds(0.95)),
			cmp.Compare(a.JobID, b.JobID), cmp.Compare(a.Kind, b.Kind),
		)
	})
	return all
}
