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
