package harness

// Admitting reports whether the jobs of the world have constraints that refuse runs for a
// while. Limits change, hooks refuse for a while, runs fail, and requests overlap. In three of
// four such worlds Sortie has no faults, so admissions are checked exactly.
func (w *Base) Admitting() bool {
	return !w.Chained() && !w.Graphed() && !w.FannedOut() && !w.Dated() && !w.Sensed() && (w.Seed%10 == 5 || w.Seed%20 == 10 || w.Seed%20 == 14)
}

// Contended reports whether the jobs of the world compete for a few slots of the pool, of their
// keys and of themselves, while the limits of the pool change. Such a world injects no faults
// into Sortie, so queues are checked exactly.
func (w *Base) Contended() bool {
	return !w.Chained() && !w.Graphed() && !w.FannedOut() && (w.Seed%10 == 7 || w.Seed%20 == 4)
}

// Chained reports whether the jobs of the world trigger one another in a chain that exceeds the
// limit.
func (w *Base) Chained() bool { return w.Seed%50 == 19 || w.Seed%50 == 44 }

// Graphed reports whether the jobs of the world come after one another.
func (w *Base) Graphed() bool { return w.Seed%50 == 29 || w.Seed%50 == 24 }

// FannedOut reports whether the runs of the world's job have children.
func (w *Base) FannedOut() bool { return w.Seed%50 == 20 || w.Seed%50 == 35 }

// Dated reports whether the world takes several days, in which a job has schedules with calendars,
// is backfilled, keeps outputs and sends messages.
func (w *Base) Dated() bool { return w.Seed%50 == 40 || w.Seed%50 == 49 }

// PinsLate reports whether clients of a dated world pin runs whose output is about to expire.
func (w *Base) PinsLate() bool { return w.Seed%400 == 99 || w.Seed%400 == 240 }

// Sensed reports whether the jobs of the world have sensors.
func (w *Base) Sensed() bool { return w.Seed%50 == 30 || w.Seed%50 == 39 }

// Mixed reports whether the world has pools on several runners, with fallbacks.
func (w *Base) Mixed() bool { return w.Seed%5 == 3 }

// Serves reports whether the world has engine pools whose replicas Sortie runs.
func (w *Base) Serves() bool {
	return !w.Chained() && !w.Graphed() && !w.FannedOut() && !w.Dated() && !w.Sensed() && (w.Seed%10 == 2 || w.Seed%10 == 9)
}

// Warmed reports whether the world has pools with warm machines: on Fly only, or also with
// pools on other platforms as fallbacks.
func (w *Base) Warmed() bool {
	return !w.Chained() && !w.Graphed() && !w.FannedOut() && (w.Seed%5 == 1 || w.Seed%15 == 3)
}

// SeveralPools reports whether runs of the world use more than the default pool.
func (w *Base) SeveralPools() bool { return w.Mixed() || w.Warmed() || w.Serves() }

// IsHealed reports whether all faults have ended.
func (w *Base) IsHealed() bool { return w.Healed }
