package balance

// Widen takes up to n further slots of the replica for a task, and returns their number. It takes
// none while another task waits for a slot.
func (l *Lease) Widen(n int) (taken int) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.released || l.of.waiting > 0 || l.of.cools(l.replica) {
		return 0
	}
	taken = max(min(n, l.place.SlotsOf(l.reportedCapabilities.Slots)-l.of.load(l.replica)), 0)
	l.wider += taken
	l.held += taken
	return taken
}

// Narrow releases a slot that Widen has taken.
func (l *Lease) Narrow() {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.released || l.wider == 0 {
		return
	}
	l.wider--
	l.held--
	l.of.notify()
}

// Awaited reports whether another task waits for a slot.
func (l *Lease) Awaited() bool {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	return l.of.waiting > 0
}
