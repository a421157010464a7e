package inference

import "time"

// Retention is how many days the answers of tenants are stored.
type Retention struct {
	// Default is for tenants without their own entry; nil is as long as the record of the task.
	Default *int
	// Tenants has the days of single tenants.
	Tenants map[string]int
}

// leastKept is how long an answer is stored with 0 days: its caller receives it.
const leastKept = time.Minute

// Of returns how long the answers of a tenant are stored; 0 is as long as their records, whose
// retention is record.
func (r Retention) Of(tenant string, record time.Duration) time.Duration {
	days, own := r.Tenants[tenant]
	if !own && r.Default == nil {
		return 0
	}
	if !own {
		days = *r.Default
	}
	kept := max(time.Duration(days)*24*time.Hour, leastKept)
	if kept >= record {
		return 0
	}
	return kept
}
