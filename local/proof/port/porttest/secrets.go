package porttest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// SecretsHarness is an adapter of port.Secrets without secrets.
type SecretsHarness struct {
	port.Secrets
	// Put stores a value, Delete removes it.
	Put    func(tenant, name, value string)
	Delete func(tenant, name string)
	// Minute advances the time by a minute. It is nil if changes take effect immediately.
	Minute func()
}

// Secrets is the conformance suite of port.Secrets.
func Secrets(t *testing.T, open func(t *testing.T) SecretsHarness) {
	t.Helper()
	t.Run("values", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		long := strings.Repeat("x", limit.Secret)
		for name, value := range map[string]string{
			"0": "plain", "api-key": "with spaces, \"quotes\" and\nlines\n", "utf-8": "žluťoučký 🐎", strings.Repeat("n", 63): long,
		} {
			s.Put("default", name, value)
			s.wants(t, "default", name, value)
		}
	})
	t.Run("unknown names", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.Put("default", "known", "value")
		for _, name := range []string{"", "unknown", "know", "known2", "Known", "known/", "../default/known", "..", ".", "default/known", "a b", strings.Repeat("n", 64)} {
			s.wantsNone(t, "default", name)
		}
	})
	t.Run("tenants are separate", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.Put("one", "key", "of one")
		s.Put("two", "key", "of two")
		s.wants(t, "one", "key", "of one")
		s.wants(t, "two", "key", "of two")
		for _, tenant := range []string{"", "three", "On", "one/two", "..", "*"} {
			s.wantsNone(t, tenant, "key")
		}
	})
	t.Run("a change is effective within a minute", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.Put("default", "key", "first")
		s.wants(t, "default", "key", "first")
		s.Put("default", "key", "second")
		s.pass()
		s.wants(t, "default", "key", "second")
		s.Delete("default", "key")
		s.pass()
		s.wantsNone(t, "default", "key")
		s.Put("default", "key", "third")
		s.wants(t, "default", "key", "third")
	})
	t.Run("concurrent reads", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.Put("default", "key", "value")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { s.wants(t, "default", "key", "value") })
		}
		all.Wait()
	})
}

func (s SecretsHarness) pass() {
	if s.Minute != nil {
		s.Minute()
	}
}

func (s SecretsHarness) wants(t *testing.T, tenant, name, want string) {
	t.Helper()
	if got, err := s.Secret(context.Background(), tenant, name); err != nil || got != want {
		t.Errorf("%s/%s: got a value of %d bytes, %v, want %d bytes", tenant, name, len(got), err, len(want))
	}
}

func (s SecretsHarness) wantsNone(t *testing.T, tenant, name string) {
	t.Helper()
	got, err := s.Secret(context.Background(), tenant, name)
	if got != "" || !errors.Is(err, port.ErrNotFound) || fault.Is(err, fault.Unavailable) {
		t.Errorf("%s/%s: got %d bytes, %v, want ErrNotFound", tenant, name, len(got), err)
	}
}
