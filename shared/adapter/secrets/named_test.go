package secrets_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// manager is Secrets Manager with any number of secrets.
type manager struct {
	mu     sync.Mutex
	values map[string]string
	reads  int
	down   bool
}

type secretInput struct {
	SecretId, Name, SecretString string //nolint:revive,staticcheck // the API's spelling
	ForceDeleteWithoutRecovery   bool
	NextToken                    string
	Filters                      []struct{ Values []string }
}

var errNoSecret = awstest.Refusal{Code: "ResourceNotFoundException", Message: "no such secret"}

func newManager(t *testing.T) (*manager, aws.Config) {
	t.Helper()
	m := &manager{values: map[string]string{}}
	existing := func(do func(secretInput) any) awstest.Call {
		return m.call(func(in secretInput) (any, error) {
			if _, ok := m.values[in.SecretId]; !ok {
				return nil, errNoSecret
			}
			return do(in), nil
		})
	}
	return m, awstest.Serve(t, map[string]awstest.Call{
		"GetSecretValue": existing(func(in secretInput) any {
			m.reads++
			return map[string]string{"Name": in.SecretId, "SecretString": m.values[in.SecretId]}
		}),
		"PutSecretValue": existing(func(in secretInput) any {
			m.values[in.SecretId] = in.SecretString
			return struct{}{}
		}),
		"DescribeSecret": existing(func(in secretInput) any {
			if strings.HasSuffix(in.SecretId, "/deleted") {
				return map[string]any{"Name": in.SecretId, "DeletedDate": 1}
			}
			return map[string]any{"Name": in.SecretId}
		}),
		"DeleteSecret": existing(func(in secretInput) any {
			if in.ForceDeleteWithoutRecovery {
				delete(m.values, in.SecretId)
			}
			return struct{}{}
		}),
		"CreateSecret": m.call(func(in secretInput) (any, error) {
			m.values[in.Name] = in.SecretString
			return struct{}{}, nil
		}),
		"ListSecrets": m.call(m.list),
	})
}

// call decodes the input. The operations exclude each other.
func (m *manager) call(do func(secretInput) (any, error)) awstest.Call {
	return func(input json.RawMessage) (any, error) {
		var in secretInput
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.down {
			return nil, awstest.Refusal{Code: "InternalServiceError", Message: "s3cret not now", Status: 500}
		}
		return do(in)
	}
}

// list returns pages of two names.
func (m *manager) list(in secretInput) (any, error) {
	type entry struct{ Name string }
	var page []entry
	names := slices.Sorted(maps.Keys(m.values))
	for i, name := range names {
		if name <= in.NextToken || !strings.HasPrefix(name, in.Filters[0].Values[0]) {
			continue
		}
		page = append(page, entry{name})
		if len(page) == 2 && i < len(names)-1 {
			return map[string]any{"SecretList": page, "NextToken": name}, nil
		}
	}
	return map[string]any{"SecretList": page}, nil
}

func put(t *testing.T, cfg aws.Config, tenant, name, value string) {
	t.Helper()
	if err := secrets.PutNamed(context.Background(), cfg, "prod", tenant, name, value); err != nil {
		t.Error(err)
	}
}

func TestNamedSecrets(t *testing.T) {
	t.Parallel()
	porttest.Secrets(t, func(t *testing.T) porttest.SecretsHarness {
		_, cfg := newManager(t)
		now := clock.NewVirtual(time.Unix(0, 0))
		return porttest.SecretsHarness{
			Secrets: secrets.OpenNamed(cfg, "prod", now),
			Put:     func(tenant, name, value string) { put(t, cfg, tenant, name, value) },
			Delete: func(tenant, name string) {
				if err := secrets.DeleteNamed(context.Background(), cfg, "prod", tenant, name); err != nil {
					t.Error(err)
				}
			},
			Minute: func() { now.Advance(time.Minute) },
		}
	})
}

func TestNamedSecretIsReadOnceAMinute(t *testing.T) {
	t.Parallel()
	m, cfg := newManager(t)
	now := clock.NewVirtual(time.Unix(0, 0))
	n := secrets.OpenNamed(cfg, "prod", now)
	put(t, cfg, "default", "key", "value")
	for i, row := range []struct {
		after time.Duration
		reads int
	}{{0, 1}, {secrets.NamedTTL - 1, 1}, {1, 2}, {0, 2}} {
		now.Advance(row.after)
		if value, err := n.Secret(t.Context(), "default", "key"); err != nil || value != "value" || m.reads != row.reads {
			t.Errorf("read %d: got %q (%v) after %d calls, want %d", i, value, err, m.reads, row.reads)
		}
	}
}

func TestUnreadableNamedSecretIsUnavailable(t *testing.T) {
	t.Parallel()
	m, cfg := newManager(t)
	n := secrets.OpenNamed(cfg, "prod", clock.NewVirtual(time.Unix(0, 0)))
	m.values["sortie/prod/jobs/default/binary"] = "s3cret\x00"
	for _, down := range []bool{false, true} {
		m.down = down
		value, err := n.Secret(t.Context(), "default", "binary")
		if value != "" || !fault.Is(err, fault.Unavailable) || errors.Is(err, port.ErrNotFound) || strings.Contains(fault.Of(err).Message, "s3cret") {
			t.Errorf("down %v: got %q, %v, want Unavailable without the value", down, value, err)
		}
	}
}

// TestNamedSecretIsLookedUp checks that a secret is found without a read of its value.
func TestNamedSecretIsLookedUp(t *testing.T) {
	t.Parallel()
	m, cfg := newManager(t)
	n := secrets.OpenNamed(cfg, "prod", clock.NewVirtual(time.Unix(0, 0)))
	for _, name := range []string{"known", "deleted"} {
		m.values["sortie/prod/jobs/default/"+name] = "s3cret"
	}
	for row, want := range map[[2]string]bool{
		{"default", "known"}: true, {"default", "deleted"}: false, {"default", "unknown"}: false, {"other", "known"}: false, {"default", "../clients"}: false,
	} {
		if got := n.Has(t.Context(), row[0], row[1]); got != want {
			t.Errorf("%v: got %v, want %v", row, got, want)
		}
	}
	m.down = true
	if !n.Has(t.Context(), "default", "unknown") || m.reads > 0 {
		t.Errorf("got an unknown secret, or %d reads, want one that may exist", m.reads)
	}
}

func TestNamedSecretsAreListed(t *testing.T) {
	t.Parallel()
	m, cfg := newManager(t)
	for _, name := range []string{"c", "a", "b"} {
		put(t, cfg, "default", name, "value")
	}
	put(t, cfg, "default2", "d", "value")
	m.values["sortie/prod/clients"] = "{}"
	if names, err := secrets.ListNamed(t.Context(), cfg, "prod", "default"); err != nil || !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("got %v, %v, want a, b and c", names, err)
	}
	if err := secrets.DeleteNamed(t.Context(), cfg, "prod", "default", "e"); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("delete of an unknown secret: got %v, want ErrNotFound", err)
	}
}

func TestInvalidNamedSecretIsNotStored(t *testing.T) {
	t.Parallel()
	m, cfg := newManager(t)
	for _, row := range [][3]string{
		{"default", "../clients", "s3cret"},
		{"a/b", "key", "s3cret"},
		{"default", "key", ""},
		{"default", "key", "s3cret\x00"},
		{"default", "key", strings.Repeat("s3cret", limit.Secret)},
	} {
		err := secrets.PutNamed(t.Context(), cfg, "prod", row[0], row[1], row[2])
		if err == nil || strings.Contains(err.Error(), "s3cret") || len(m.values) > 0 {
			t.Errorf("%s/%s: got %v and %d secrets, want an error without the value", row[0], row[1], err, len(m.values))
		}
	}
}
