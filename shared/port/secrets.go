package port

import "context"

// Secrets reads the named secrets of tenants: values that jobs refer to by name, so
// that no definition contains them. It is safe for concurrent use.
type Secrets interface {
	// Secret returns the value of a tenant's secret: 1 to limit.Secret bytes of
	// UTF-8 without a NUL. A value that was changed or deleted may be returned for
	// a minute more. Secret returns ErrNotFound for a name without a secret, also
	// for a malformed one, and an Unavailable fault, which the caller retries, if
	// the secret cannot be read now. No error contains a value.
	Secret(ctx context.Context, tenant, name string) (string, error)
}
