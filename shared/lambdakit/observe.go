package lambdakit

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/series"
)

// Recorder records the samples of a commit that was made at a time. It is safe for
// concurrent use.
type Recorder func(at time.Time, samples []series.Sample)

type recorderKey struct{}

// WithRecorder returns a context with the recorder for Record.
func WithRecorder(ctx context.Context, r Recorder) context.Context {
	return context.WithValue(ctx, recorderKey{}, r)
}

// Record records samples if the context has a recorder.
func Record(ctx context.Context, at time.Time, samples []series.Sample) {
	if r, ok := ctx.Value(recorderKey{}).(Recorder); ok && len(samples) > 0 {
		r(at, samples)
	}
}

type observerKey struct{}

// WithObserver returns a context with the recorder for Observe.
func WithObserver(ctx context.Context, observe func(samples ...series.Sample)) context.Context {
	return context.WithValue(ctx, observerKey{}, observe)
}

// Observe is a series.Recorder. It records samples of the time at which the call ends, if
// the context has an observer.
func Observe(ctx context.Context, samples ...series.Sample) {
	if observe, ok := ctx.Value(observerKey{}).(func(samples ...series.Sample)); ok {
		observe(samples...)
	}
}
