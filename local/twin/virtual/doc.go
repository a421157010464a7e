// Package virtual has a virtual clock whose events are coroutines. A program that gets its time
// from the clock can be played for a month in seconds, always in the same order.
//
//	t := virtual.New[call](start, killed{})
//	t.After(time.Hour, func() { t.Sleep(time.Minute) })
//	for _, more := t.Next(); more; _, more = t.Next() {
//		t.Step()
//	}
package virtual
