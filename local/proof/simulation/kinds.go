package simulation

// admitting reports whether the jobs of the world have constraints that refuse runs for a
// while. Limits change, hooks refuse for a while, runs fail, and requests overlap. In three of
// four such worlds Sortie has no faults, so admissions are checked exactly.
func (w *base) admitting() bool {
	return !w.chained() && !w.graphed() && !w.fannedOut() && (w.seed%10 == 5 || w.seed%20 == 10 || w.seed%20 == 14)
}

// contended reports whether the jobs of the world compete for a few slots of the pool, of their
// keys and of themselves, while the limits of the pool change. Such a world injects no faults
// into Sortie, so queues are checked exactly.
func (w *base) contended() bool {
	return !w.chained() && !w.graphed() && !w.fannedOut() && (w.seed%10 == 7 || w.seed%20 == 4)
}

// chained reports whether the jobs of the world trigger one another in a chain that exceeds the
// limit.
func (w *base) chained() bool { return w.seed%50 == 19 || w.seed%50 == 44 }

// graphed reports whether the jobs of the world come after one another.
func (w *base) graphed() bool { return w.seed%50 == 29 || w.seed%50 == 24 }

// fannedOut reports whether the runs of the world's job have children.
func (w *base) fannedOut() bool { return w.seed%50 == 20 || w.seed%50 == 35 }

// mixed reports whether the world has pools on several runners, with fallbacks.
func (w *base) mixed() bool { return w.seed%5 == 3 }

// serves reports whether the world has engine pools whose replicas Sortie runs.
func (w *base) serves() bool {
	return !w.chained() && !w.graphed() && !w.fannedOut() && (w.seed%10 == 2 || w.seed%10 == 9)
}

// warmed reports whether the world has pools with warm machines: on Fly only, or also with
// pools on other platforms as fallbacks.
func (w *base) warmed() bool {
	return !w.chained() && !w.graphed() && !w.fannedOut() && (w.seed%5 == 1 || w.seed%15 == 3)
}

// severalPools reports whether runs of the world use more than the default pool.
func (w *base) severalPools() bool { return w.mixed() || w.warmed() || w.serves() }

// isHealed reports whether all faults have ended.
func (w *base) isHealed() bool { return w.healed }
