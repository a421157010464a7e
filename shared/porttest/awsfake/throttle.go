package awsfake

import (
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/units"
	"github.com/sortie-dev/sortie/shared/clock"
)

// Throughput is what each partition key of a table takes in a second: beyond, its requests
// are throttled. 0 is no limit. A rest saves the units of one second and no more, which is
// less than the burst capacity of the service.
type Throughput struct{ WriteUnits, ReadUnits float64 }

// PartitionThroughput is that of the service: Amazon DynamoDB Developer Guide, "Best
// practices for designing and using partition keys effectively".
func PartitionThroughput() Throughput { return Throughput{WriteUnits: 1000, ReadUnits: 3000} }

// throughput counts the units of the partition keys of all tables. Indexes have no limit.
type throughput struct {
	limit Throughput
	clock clock.Clock

	mu    sync.Mutex
	used  map[partition]*allowance
	times int
}

// partition is a partition key of a table, for one of the two kinds of units.
type partition struct {
	table, key string
	write      bool
}

// allowance has the units that are left at a time.
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

// counts reports whether the units of a write matter: its caller wants them, or they are limited.
func (d *DynamoDB) counts(wanted string) bool {
	return wanted != "" && wanted != "NONE" || d.throughput.of(true) > 0
}

// refuses reports whether a partition key has no units left, and counts it. As in the
// service, a request is refused for what earlier ones have used, not for its own size.
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

// use takes units.
func (t *throughput) use(table, key string, write bool, units float64) {
	if t.of(write) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.allowance(partition{table, key, write}).left -= units
}

// allowance returns the units of a partition key as it is now. The lock is held.
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

// Throttled returns the number of requests, and of items of transactions, that were
// throttled because of their partition keys.
func (d *DynamoDB) Throttled() int {
	d.throughput.mu.Lock()
	defer d.throughput.mu.Unlock()
	return d.throughput.times
}

// refusedUnits are those of a write whose condition does not hold.
func (p *planned) refusedUnits() float64 {
	return max(units.Kilobytes(p.before, size), 1)
}
