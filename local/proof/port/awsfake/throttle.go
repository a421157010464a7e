package awsfake

import (
	"sync"
	"time"

	"github.com/sortie-dev/sortie/local/proof/cost/units"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Throughput is the maximum number of units per second of each partition key of a table.
// Requests above it are throttled; 0 is no limit. Unused units are saved for one second only,
// which is less than the burst capacity of the service.
type Throughput struct{ WriteUnits, ReadUnits float64 }

// PartitionThroughput returns the limits of the service (Amazon DynamoDB Developer Guide, "Best
// practices for designing and using partition keys effectively").
func PartitionThroughput() Throughput { return Throughput{WriteUnits: 1000, ReadUnits: 3000} }

// throughput counts the used units of the partition keys of all tables. Indexes have no limit.
type throughput struct {
	limit Throughput
	clock clock.Clock

	mu    sync.Mutex
	used  map[partition]*allowance
	times int
}

// partition identifies a partition key of a table and a kind of units.
type partition struct {
	table, key string
	write      bool
}

// allowance has the units that were left at a time.
type allowance struct {
	left float64
	at   time.Time
}

func (t *throughput) of(write bool) float64 {
	if write {
		return t.limit.WriteUnits
	}
	return t.limit.ReadUnits
}

// counts reports whether the units of a write must be counted, because the request asks for
// them or because they are limited.
func (d *DynamoDB) counts(wanted string) bool {
	return wanted != "" && wanted != "NONE" || d.throughput.of(true) > 0
}

// refuses reports whether a partition key has no units left, and counts the rejection. As in
// the service, a request is rejected because of the units of earlier requests, not because of
// its own size.
func (t *throughput) refuses(table, key string, write bool) bool {
	if t.of(write) == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	full := t.allowance(partition{table, key, write}).left <= 0
	if full {
		t.times++
	}
	return full
}

// use subtracts units from the allowance of a partition key.
func (t *throughput) use(table, key string, write bool, units float64) {
	if t.of(write) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.allowance(partition{table, key, write}).left -= units
}

// allowance returns the current allowance of a partition key. The caller holds the lock.
func (t *throughput) allowance(p partition) *allowance {
	now, most := t.clock.Now(), t.of(p.write)
	b := t.used[p]
	if b == nil {
		b = &allowance{most, now}
		t.used[p] = b
	}
	b.left, b.at = min(most, b.left+most*now.Sub(b.at).Seconds()), now
	return b
}

// Throttled returns the number of throttled requests and transaction items, because of the
// limits of partition keys.
func (d *DynamoDB) Throttled() int {
	d.throughput.mu.Lock()
	defer d.throughput.mu.Unlock()
	return d.throughput.times
}

// refusedUnits returns the units of a write whose condition does not hold.
func (p *planned) refusedUnits() float64 {
	return max(units.Kilobytes(p.before, size), 1)
}
