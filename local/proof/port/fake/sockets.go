package fake

import (
	"context"
	"slices"
	"sync"

	"github.com/sortie-dev/sortie/shared/port"
)

// Sockets is a gateway in memory. It is safe for concurrent use.
type Sockets struct {
	calls

	mu   sync.Mutex
	open map[string]bool
	sent map[string][]string
}

var _ port.Sockets = (*Sockets)(nil)

// NewSockets returns a gateway without connections.
func NewSockets(plan Plan) *Sockets {
	return &Sockets{calls: calls{plan: plan}, open: map[string]bool{}, sent: map[string][]string{}}
}

// Connect opens a connection.
func (s *Sockets) Connect(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[id] = true
}

// Open reports whether a connection is open.
func (s *Sockets) Open(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[id]
}

// Sent removes and returns the messages that were sent to a connection.
func (s *Sockets) Sent(id string) (messages []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	messages = slices.Clone(s.sent[id])
	delete(s.sent, id)
	return messages
}

// Send implements port.Sockets.
func (s *Sockets) Send(ctx context.Context, id string, message []byte) error {
	return s.call(ctx, "Send", id, true, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.open[id] {
			return port.ErrGone
		}
		s.sent[id] = append(s.sent[id], string(message))
		return nil
	})
}

// Disconnect implements port.Sockets.
func (s *Sockets) Disconnect(ctx context.Context, id string) error {
	return s.call(ctx, "Disconnect", id, true, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, id)
		return nil
	})
}

// Pushes is a queue in memory, which the test empties with Take. It is safe for concurrent use.
type Pushes struct {
	calls

	mu     sync.Mutex
	queued []string
}

var _ port.Pushes = (*Pushes)(nil)

// NewPushes returns an empty queue.
func NewPushes(plan Plan) *Pushes { return &Pushes{calls: calls{plan: plan}} }

// Push implements port.Pushes.
func (p *Pushes) Push(ctx context.Context, tenant, _ string) error {
	return p.call(ctx, "Push", tenant, true, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.queued = append(p.queued, tenant)
		return nil
	})
}

// Take removes all tenants from the queue and returns each one once.
func (p *Pushes) Take() (tenants []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tenants, p.queued = p.queued, nil
	slices.Sort(tenants)
	return slices.Compact(tenants)
}
