package port

import "context"

type traceParentKey struct{}

// WithTraceParent returns a context whose requests to an Engine have a W3C trace context.
func WithTraceParent(ctx context.Context, parent string) context.Context {
	return context.WithValue(ctx, traceParentKey{}, parent)
}

// TraceParent returns the trace context for a request to an Engine; empty without one.
func TraceParent(ctx context.Context) string {
	parent, _ := ctx.Value(traceParentKey{}).(string)
	return parent
}
