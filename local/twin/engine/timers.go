package engine

import "container/heap"

// timers is a heap of the entries with a deadline, the earliest first. Entries
// know their position, so that a deadline can be moved.
type timers []*entry

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	return t[i].due < t[j].due || t[i].due == t[j].due && t[i].id < t[j].id
}

func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i+1, j+1
}

// Push implements heap.Interface.
func (t *timers) Push(x any) {
	e := x.(*entry) //nolint:forcetypeassert // heap gives back what it was given
	*t = append(*t, e)
	e.place = len(*t)
}

// Pop implements heap.Interface.
func (t *timers) Pop() any {
	last := len(*t) - 1
	e := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	e.place = 0
	return e
}

// set sets the deadline of the entry; 0 removes it.
func (t *timers) set(e *entry, due int64) {
	e.due = due
	switch {
	case due == 0 && e.place > 0:
		heap.Remove(t, e.place-1)
	case due == 0:
	case e.place > 0:
		heap.Fix(t, e.place-1)
	default:
		heap.Push(t, e)
	}
}
