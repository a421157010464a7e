package port

import "context"

// Secrets reads the named secrets of tenants. Definitions of jobs contain only the names. It is
// safe for concurrent use.
type Secrets interface {
	// Secret returns the value of a tenant's secret: 1 to limit.Secret bytes of UTF-8 without a
	// NUL. A value that was changed or deleted may be returned for another minute. It returns
	// ErrNotFound for an unknown or malformed name, and an Unavailable fault, which the caller
	// retries, if the secret cannot be read now. No error contains a value.
	Secret(ctx context.Context, tenant, name string) (string, error)
}
