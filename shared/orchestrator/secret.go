package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// variables returns the environment of the run's program with the current values of
// its secrets. The error is a SecretMissing fault for an unknown secret.
func variables(ctx context.Context, secrets port.Secrets, r run.Run) (map[string]string, error) {
	if r.Work.Program == nil {
		return nil, nil
	}
	env := map[string]string{}
	for name, variable := range r.Work.Program.Env {
		env[name] = variable.Value
		if variable.SecretRef == "" {
			continue
		}
		value, err := secrets.Secret(ctx, r.Tenant, variable.SecretRef)
		if errors.Is(err, port.ErrNotFound) {
			return nil, fault.Wrap(err, fault.SecretMissing, "env.%s: unknown secret %q", name, variable.SecretRef)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the secret of env.%s: %w", name, err)
		}
		env[name] = value
	}
	return env, nil
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
		value, err := secrets.Secret(ctx, r.Tenant, variable.SecretRef)
		switch {
		case errors.Is(err, port.ErrNotFound):
		case err != nil:
			return nil, fmt.Errorf("cannot read the secret of env.%s: %w", name, err)
		default:
			values = append(values, value)
		}
	}
	return values, nil
}
