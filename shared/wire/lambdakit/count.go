package lambdakit

import "context"

// Counter adds n to the metric with a name such as "RelayFailures". It is safe for concurrent
// use.
type Counter func(name string, n int)

type counterKey struct{}

// WithCounter returns a context in which Count uses the counter c.
func WithCounter(ctx context.Context, c Counter) context.Context {
	return context.WithValue(ctx, counterKey{}, c)
}

// Count adds n to the metric if the context has a counter.
func Count(ctx context.Context, name string, n int) {
	if c, ok := ctx.Value(counterKey{}).(Counter); ok {
		c(name, n)
	}
}
