package growth

import (
	"runtime"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// Measure names a counted quantity.
type Measure string

// The measures of an operation. Live is the memory in use after it, and only measured for
// starts.
const (
	Statements Measure = "statements"
	Steps      Measure = "steps"
	Pages      Measure = "pages"
	Scanned    Measure = "scanned rows"
	Written    Measure = "rows written"
	Decoded    Measure = "runs decoded"
	Objects    Measure = "objects"
	Live       Measure = "KiB in use"
	Requests   Measure = "requests"
	ReadUnits  Measure = "read units"
	WriteUnits Measure = "write units"
	// Took is the time in milliseconds. It is no count.
	Took Measure = "ms"
)

// Measures returns all measures but Took.
func Measures() []Measure {
	return []Measure{Statements, Steps, Pages, Scanned, Written, Decoded, Objects, Live, Requests, ReadUnits, WriteUnits}
}

// Counts are what one operation costs.
type Counts map[Measure]float64

// counter adds up the counters of statements. It is safe for concurrent use.
type counter struct {
	mu                                sync.Mutex
	statements, steps, pages, scanned int64
	byQuery                           map[string]int64
}

func (c *counter) add(s sqlite.Statement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statements++
	c.steps += s.Steps
	c.pages += s.Pages
	c.scanned += s.Scanned
	if c.byQuery == nil {
		c.byQuery = map[string]int64{}
	}
	c.byQuery[s.Query] += s.Steps
}

// read returns the totals since the home has opened.
func (h *home) read() Counts {
	if h.consumed != nil {
		return h.consumed.counts()
	}
	h.seen.mu.Lock()
	defer h.seen.mu.Unlock()
	s := h.db.Stats()
	return Counts{
		Statements: float64(h.seen.statements), Steps: float64(h.seen.steps), Pages: float64(h.seen.pages), Scanned: float64(h.seen.scanned),
		Written: float64(s.Rows), Decoded: float64(s.Decoded),
	}
}

// count returns the mean of what one of times calls costs.
func (h *home) count(times int, do func(i int) error) (Counts, error) {
	var from, to runtime.MemStats
	before := h.read()
	runtime.ReadMemStats(&from)
	began := time.Now()
	for i := range times {
		if err := do(i); err != nil {
			return nil, err
		}
	}
	took := time.Since(began)
	runtime.ReadMemStats(&to)
	each := h.read()
	each[Objects], each[Took] = float64(to.Mallocs-from.Mallocs), took.Seconds()*1000
	for m := range each {
		each[m] = (each[m] - before[m]) / float64(times)
	}
	return each, nil
}

// live returns the memory in use, in KiB.
func live() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 10)
}
