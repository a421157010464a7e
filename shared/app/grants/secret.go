package grants

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/redact"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Variables returns the environment of the run's program with the current values of
// its secrets. The error is a SecretMissing fault for an unknown secret.
func Variables(ctx context.Context, secrets port.Secrets, r run.Run) (map[string]string, error) {
	if r.Work.Program == nil {
		return nil, nil
	}
	env := map[string]string{}
	for name, variable := range r.Work.Program.Env {
		env[name] = variable.Value
		if variable.SecretRef == "" {
			continue
		}
		value, known, err := secretOf(ctx, secrets, r, name)
		if err != nil {
			return nil, err
		}
		if !known {
			return nil, fault.New(fault.SecretMissing, "env.%s: unknown secret %q", name, variable.SecretRef)
		}
		env[name] = value
	}
	return env, nil
}

// WorkerSecrets returns the secrets that workers get at their launch, to mask them in logs.
type WorkerSecrets struct {
	bucket  BucketSource
	secrets port.Secrets
}

// NewWorkerSecrets returns the secrets of workers: the keys of their bucket, and those of their
// jobs.
func NewWorkerSecrets(bucket BucketSource, secrets port.Secrets) WorkerSecrets {
	return WorkerSecrets{bucket, secrets}
}

// Redactor returns the redactor for the logs of a run. It masks the current bucket keys and the
// current secrets of the run's program. A bucket key that was replaced since the launch is
// masked only in a printed environment; a replaced secret is not masked.
func (s WorkerSecrets) Redactor(ctx context.Context, r run.Run) (*redact.Redactor, error) {
	bucket, err := s.bucket(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the worker's keys: %w", err)
	}
	values, err := secretValues(ctx, s.secrets, r)
	if err != nil {
		return nil, err
	}
	return redact.New(limit.Issuer, bucket.AccessKeyID, bucket.SecretAccessKey).Naming(values...), nil
}

// secretValues returns the current values of the secrets of the run's program. A secret
// that was deleted has none.
func secretValues(ctx context.Context, secrets port.Secrets, r run.Run) ([]string, error) {
	if r.Work.Program == nil {
		return nil, nil
	}
	var values []string
	for name, variable := range r.Work.Program.Env {
		if variable.SecretRef == "" {
			continue
		}
		value, known, err := secretOf(ctx, secrets, r, name)
		if err != nil {
			return nil, err
		}
		if known {
			values = append(values, value)
		}
	}
	return values, nil
}

// secretOf returns the value of the secret of an environment variable. known is false
// for a secret that does not exist.
func secretOf(ctx context.Context, secrets port.Secrets, r run.Run, name string) (value string, known bool, err error) {
	value, err = secrets.Secret(ctx, r.Tenant, r.Work.Program.Env[name].SecretRef)
	if errors.Is(err, port.ErrNotFound) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("cannot read the secret of env.%s: %w", name, err)
	}
	return value, true, nil
}
