package fake

import (
	"context"
	"sync"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/port"
)

// Secrets stores secrets in memory. It is safe for concurrent use.
type Secrets struct {
	calls
	lock   sync.Mutex
	values map[[2]string]string
}

var _ port.Secrets = (*Secrets)(nil)

// NewSecrets returns Secrets without secrets.
func NewSecrets(plan Plan) *Secrets {
	return &Secrets{calls: calls{plan: plan}, values: map[[2]string]string{}}
}

// Put stores a secret; it panics if its name or value is invalid.
func (s *Secrets) Put(tenant, name, value string) {
	if !limit.ValidName(tenant) || !limit.ValidName(name) || !limit.ValidSecret(value) {
		panic("invalid secret " + tenant + "/" + name)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.values[[2]string{tenant, name}] = value
}

// Delete removes a secret.
func (s *Secrets) Delete(tenant, name string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.values, [2]string{tenant, name})
}

// Secret implements port.Secrets.
func (s *Secrets) Secret(ctx context.Context, tenant, name string) (string, error) {
	return result(ctx, &s.calls, "Secret", name, false, func() (string, error) {
		s.lock.Lock()
		defer s.lock.Unlock()
		value, ok := s.values[[2]string{tenant, name}]
		if !ok {
			return "", port.ErrNotFound
		}
		return value, nil
	})
}
