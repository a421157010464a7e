package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// row is a stored execution. Times are ms since 1970.
type row struct {
	id         int64
	name       string
	definition string // digest
	input      string // digest
	status     port.ExecutionStatus
	ended      int64 // 0 while it runs
	due        int64 // 0 if nothing is due
	calls      bool  // an invocation is in flight
	entered    int64
	code       string
	cause      string
	document   []byte // nil once it has ended
}

// store keeps rows and the definitions that they name. A write that returned nil is durable. A
// failed write was not applied, unless the process ends during it. Calls for different rows may
// be concurrent.
type store interface {
	// insert adds the row. If the name belongs to an execution that runs, or that ended after
	// since, insert returns that one and adds nothing.
	insert(ctx context.Context, r *row, since int64) (taken *row, err error)
	// update writes the mutable fields of running rows, all or none.
	update(ctx context.Context, all ...*row) error
	// byName returns the row without its document, or errNoRow.
	byName(ctx context.Context, name string) (*row, error)
	// byID returns the row with its document, or errNoRow.
	byID(ctx context.Context, id int64) (*row, error)
	// running calls each with every running row, without its name and document,
	// and returns the highest id ever used.
	running(ctx context.Context, each func(*row)) (last int64, err error)
	// purge removes the executions that ended before the time, and unused
	// definitions except keep.
	purge(ctx context.Context, before int64, keep string) (int64, error)
	define(ctx context.Context, digest string, text []byte) error
	definition(ctx context.Context, digest string) ([]byte, error)
}

var errNoRow = errors.New("no such execution")

// memory is a store without persistence.
type memory struct {
	mu          sync.Mutex
	rows        map[int64]*row
	names       map[string]int64
	definitions map[string][]byte
	last        int64
}

func newMemory() *memory {
	return &memory{rows: map[int64]*row{}, names: map[string]int64{}, definitions: map[string][]byte{}}
}

func (m *memory) insert(_ context.Context, r *row, since int64) (*row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id, ok := m.names[r.name]; ok {
		if old := m.rows[id]; old.ended == 0 || old.ended >= since {
			taken := *old
			return &taken, nil
		}
		delete(m.rows, id)
	}
	copied := *r
	m.rows[r.id], m.names[r.name] = &copied, r.id
	m.last = max(m.last, r.id)
	return nil, nil
}

func (m *memory) update(_ context.Context, all ...*row) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range all {
		old, ok := m.rows[r.id]
		if !ok {
			return errNoRow
		}
		copied := *r
		copied.name, copied.definition, copied.input = old.name, old.definition, old.input
		m.rows[r.id] = &copied
	}
	return nil
}

func (m *memory) byName(ctx context.Context, name string) (*row, error) {
	m.mu.Lock()
	id, ok := m.names[name]
	m.mu.Unlock()
	if !ok {
		return nil, errNoRow
	}
	return m.byID(ctx, id)
}

func (m *memory) byID(_ context.Context, id int64) (*row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.rows[id]
	if !ok {
		return nil, errNoRow
	}
	copied := *r
	return &copied, nil
}

func (m *memory) running(_ context.Context, each func(*row)) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := int64(1); id <= m.last; id++ {
		if r, ok := m.rows[id]; ok && r.ended == 0 {
			each(r)
		}
	}
	return m.last, nil
}

func (m *memory) purge(_ context.Context, before int64, keep string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	count, used := int64(0), map[string]bool{keep: true}
	for id, r := range m.rows {
		if r.ended != 0 && r.ended < before {
			delete(m.rows, id)
			delete(m.names, r.name)
			count++
			continue
		}
		used[r.definition] = true
	}
	for digest := range m.definitions {
		if !used[digest] {
			delete(m.definitions, digest)
		}
	}
	return count, nil
}

func (m *memory) define(_ context.Context, digest string, text []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.definitions[digest] = text
	return nil
}

func (m *memory) definition(_ context.Context, digest string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, ok := m.definitions[digest]
	if !ok {
		return nil, errors.New("no such definition")
	}
	return text, nil
}

func milli(t time.Time) int64 { return t.UnixMilli() }
