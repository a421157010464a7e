package secrets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// NamedTTL is how long the value of a named secret is used before it is read again.
const NamedTTL = time.Minute

// Jobs is the prefix of the names of named secrets in a stage.
const Jobs = "jobs/"

// Named reads the named secrets of a stage: sortie/STAGE/jobs/TENANT/NAME. It is safe
// for concurrent use.
type Named struct {
	client *secretsmanager.Client
	stage  string
	clock  clock.Clock

	mu     sync.Mutex
	values map[string]named
}

type named struct {
	value  string
	readAt time.Time
}

var _ port.Secrets = (*Named)(nil)

// OpenNamed returns the named secrets of a stage. It makes no call.
func OpenNamed(cfg aws.Config, stage string, c clock.Clock) *Named {
	return &Named{client: secretsmanager.NewFromConfig(cfg), stage: stage, clock: c, values: map[string]named{}}
}

// Secret implements port.Secrets.
func (n *Named) Secret(ctx context.Context, tenant, name string) (string, error) {
	id, err := jobSecret(n.stage, tenant, name)
	if err != nil {
		return "", fmt.Errorf("%w: %w", port.ErrNotFound, err)
	}
	now := n.clock.Now()
	n.mu.Lock()
	maps.DeleteFunc(n.values, func(_ string, v named) bool { return !now.Before(v.readAt.Add(NamedTTL)) })
	known, ok := n.values[id]
	n.mu.Unlock()
	if ok {
		return known.value, nil
	}
	answer, err := n.client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &id})
	if _, absent := errors.AsType[*types.ResourceNotFoundException](err); absent {
		return "", fmt.Errorf("%w: secret %s", port.ErrNotFound, id)
	}
	if err == nil && !limit.ValidSecret(aws.ToString(answer.SecretString)) {
		err = fmt.Errorf("invalid value of %s", id)
	}
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "the secret %q cannot be read now", name)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.values[id] = named{*answer.SecretString, now}
	return *answer.SecretString, nil
}

// Has reports whether a tenant has a named secret, without reading its value. One that cannot be
// looked up now counts as present.
func (n *Named) Has(ctx context.Context, tenant, name string) bool {
	id, err := jobSecret(n.stage, tenant, name)
	if err != nil {
		return false
	}
	found, err := n.client.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: &id})
	_, absent := errors.AsType[*types.ResourceNotFoundException](err)
	return !absent && (err != nil || found.DeletedDate == nil)
}

// jobSecret returns the name of a named secret in Secrets Manager.
func jobSecret(stage, tenant, name string) (string, error) {
	for _, part := range []string{tenant, name} {
		if !limit.ValidName(part) {
			return "", fmt.Errorf("malformed name %q, want 1 to 63 lower-case letters, digits and hyphens", part)
		}
	}
	return Name(stage, Jobs+tenant+"/"+name), nil
}
