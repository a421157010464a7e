package port

import "context"

type traceParentKey struct{}

// WithTraceParent returns a context whose Engine requests have the W3C trace context parent.
func WithTraceParent(ctx context.Context, parent string) context.Context {
	return context.WithValue(ctx, traceParentKey{}, parent)
}

// TraceParent returns the trace context for Engine requests; empty without one.
func TraceParent(ctx context.Context) string {
	parent, _ := ctx.Value(traceParentKey{}).(string)
	return parent
}
