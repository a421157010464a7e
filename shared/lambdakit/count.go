package lambdakit

import "context"

// Counter takes what is to be measured: n of a name, in the words of a metric
// ("RelayFailures"). It is safe for use by many goroutines.
type Counter func(name string, n int)

type counterKey struct{}

// WithCounter gives what is done under the context a counter.
func WithCounter(ctx context.Context, c Counter) context.Context {
	return context.WithValue(ctx, counterKey{}, c)
}

// Count adds n to the metric; nothing where nobody counts, as in one process on
// a laptop.
func Count(ctx context.Context, name string, n int) {
	if c, ok := ctx.Value(counterKey{}).(Counter); ok {
		c(name, n)
	}
}
