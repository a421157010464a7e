package awsfake

import (
	"container/heap"
	"time"
)

// lateChange is an index change that is not visible yet.
type lateChange struct {
	at    time.Time
	order int
	index *index
	row   *row
	item  item
}

// lateChanges is a heap, ordered by time and then by the order of the writes.
type lateChanges struct {
	changes []lateChange
	count   int
}

func (l *lateChanges) Len() int { return len(l.changes) }

func (l *lateChanges) Less(i, j int) bool {
	a, b := l.changes[i], l.changes[j]
	return a.at.Before(b.at) || a.at.Equal(b.at) && a.order < b.order
}

func (l *lateChanges) Swap(i, j int) { l.changes[i], l.changes[j] = l.changes[j], l.changes[i] }

// Push implements heap.Interface.
func (l *lateChanges) Push(x any) { l.changes = append(l.changes, x.(lateChange)) } //nolint:forcetypeassert // its own element

// Pop implements heap.Interface.
func (l *lateChanges) Pop() any {
	last := len(l.changes) - 1
	x := l.changes[last]
	l.changes = l.changes[:last]
	return x
}

// write replaces an item. Replicas and indexes apply the write within lag. Each index has its
// own delay but applies the changes of an item in order.
func (t *table) write(key [2]string, is item, now time.Time, lag time.Duration, seed uint64) {
	r := t.rows[key]
	if r == nil {
		r = &row{key: key}
		t.rows[key] = r
	}
	was := r.item
	r.item = is
	r.writes++
	if _, known := t.own.entries[r]; !known {
		t.own.show(r, is)
	}
	if t.stream != nil {
		t.stream.add(was, is, t, now)
	}
	if lag <= 0 {
		for _, x := range t.indexes {
			x.show(r, is)
		}
		t.forget(r)
		return
	}
	random := draw(seed, r.writes, "lag", key[0], key[1])
	delay := func() time.Time { return now.Add(time.Duration(random.Int64N(int64(lag))) + 1) }
	until := delay()
	if last := len(r.earlier) - 1; last >= 0 && r.earlier[last].until.After(until) {
		until = r.earlier[last].until
	}
	r.earlier = append(r.earlier, version{was, until})
	t.replicating = append(t.replicating, r)
	for _, x := range t.indexes {
		at := delay()
		if x.visible[r].After(at) {
			at = x.visible[r]
		}
		x.visible[r] = at
		t.late.count++
		heap.Push(&t.late, lateChange{at, t.late.count, x, r, is})
	}
}

// catchUp applies the changes that have reached replicas and indexes by now.
func (t *table) catchUp(now time.Time) {
	for len(t.late.changes) > 0 && !t.late.changes[0].at.After(now) {
		c := heap.Pop(&t.late).(lateChange) //nolint:forcetypeassert // its own element
		c.index.show(c.row, c.item)
		if !c.index.visible[c.row].After(c.at) {
			delete(c.index.visible, c.row)
			t.forget(c.row)
		}
	}
	for len(t.replicating) > 0 && !t.replicating[0].lagsAt(now) {
		r := t.replicating[0]
		t.replicating = t.replicating[1:]
		r.earlier = nil
		t.forget(r)
	}
}

// lagsAt reports whether a replica can still return an earlier version.
func (r *row) lagsAt(now time.Time) bool {
	return len(r.earlier) > 0 && r.earlier[len(r.earlier)-1].until.After(now)
}

// forget removes a deleted item's row that no replica and no index has any more. A removed row
// can still be in the replication queue after its key has got a new row.
func (t *table) forget(r *row) {
	if r.item != nil || len(r.earlier) > 0 || t.rows[r.key] != r {
		return
	}
	for _, x := range t.indexes {
		if _, late := x.visible[r]; late {
			return
		}
	}
	if e, known := t.own.entries[r]; known {
		t.own.hide(e)
	}
	delete(t.rows, r.key)
}
