package lambdakit

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/series"
)

// Recorder records the samples of a commit that was made at the given time. It is safe for
// concurrent use.
type Recorder func(at time.Time, samples []series.Sample)

type recorderKey struct{}

// WithRecorder returns a context in which Record uses the recorder r.
func WithRecorder(ctx context.Context, r Recorder) context.Context {
	return context.WithValue(ctx, recorderKey{}, r)
}

// Record records the samples of a commit if the context has a recorder.
func Record(ctx context.Context, at time.Time, samples []series.Sample) {
	if r, ok := ctx.Value(recorderKey{}).(Recorder); ok && len(samples) > 0 {
		r(at, samples)
	}
}

type observerKey struct{}

// WithObserver returns a context in which Observe calls the function observe.
func WithObserver(ctx context.Context, observe func(samples ...series.Sample)) context.Context {
	return context.WithValue(ctx, observerKey{}, observe)
}

// Observe is a series.Recorder. It records samples if the context has an observer. Their time
// is the end of the call.
func Observe(ctx context.Context, samples ...series.Sample) {
	if observe, ok := ctx.Value(observerKey{}).(func(samples ...series.Sample)); ok {
		observe(samples...)
	}
}
