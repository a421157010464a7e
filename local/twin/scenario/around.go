package scenario

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/functions/fire"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// wakeUps are the timers of the jobs. They are lost with the process.
type wakeUps struct {
	w *world
	// newest maps each job to the number of its newest wake-up.
	newest map[job.Ref]int
	count  int
}

// Set implements port.Schedules.
func (s *wakeUps) Set(_ context.Context, ref job.Ref, at time.Time) error {
	s.count++
	s.newest[ref] = s.count
	s.deliver(ref, s.count, at.Sub(hostClock{s.w}.Now()))
	return nil
}

// Remove implements port.Schedules.
func (s *wakeUps) Remove(_ context.Context, ref job.Ref) error {
	delete(s.newest, ref)
	return nil
}

// Precision implements port.Schedules.
func (s *wakeUps) Precision() time.Duration { return 0 }

// deliver delivers a wake-up after a delay, and again after one that fails.
func (s *wakeUps) deliver(ref job.Ref, number int, wait time.Duration) {
	w, p := s.w, s.w.process
	w.time.Push(wait, true, func() {
		if s.newest[ref] != number || w.process != p || p.killed {
			return
		}
		w.time.Spawn(true, func() {
			w.call(func(ctx context.Context) {
				input, err := json.Marshal(ref)
				if err == nil {
					_, err = fire.Handler(p.system.Firing)(ctx, input)
				}
				if err != nil && s.newest[ref] == number {
					s.deliver(ref, number, 5*time.Second)
				}
			})
		})
	})
}

// secrets gives every secret a made-up value.
type secrets struct{}

// Secret implements port.Secrets.
func (secrets) Secret(context.Context, string, string) (string, error) { return "secret", nil }

// noHooks are receivers that take every message. Hooks that decide are refused by Read.
type noHooks struct{}

// Ask implements runs.Hooks.
func (noHooks) Ask(context.Context, run.Run, spec.Hook, spec.Constraint) (spec.HookAnswer, error) {
	return spec.HookAnswer{}, nil
}

// Notify implements runs.Hooks.
func (noHooks) Notify(context.Context, run.Run, spec.Hook, string) (answer, failure string, err error) {
	return "200 OK", "", nil
}

// objects is an object store in memory.
type objects struct {
	buckets map[port.Bucket]map[string][]byte
}

func newObjects() *objects {
	return &objects{map[port.Bucket]map[string][]byte{port.Uploads: {}, port.Accepted: {}}}
}

// Head implements port.Outputs.
func (o *objects) Head(_ context.Context, bucket port.Bucket, key string) (port.Object, error) {
	body, ok := o.buckets[bucket][key]
	if !ok {
		return port.Object{}, port.ErrNotFound
	}
	return port.Object{Key: key, Size: int64(len(body)), ETag: fmt.Sprintf(`"%x"`, sha256.Sum256(body)), ContentType: "text/plain"}, nil
}

// Accept implements port.Outputs.
func (o *objects) Accept(ctx context.Context, key, etag string) (port.Object, error) {
	object, err := o.Head(ctx, port.Uploads, key)
	switch {
	case err != nil:
		return object, err
	case object.ETag != etag:
		return object, port.ErrChanged
	}
	o.buckets[port.Accepted][key] = o.buckets[port.Uploads][key]
	return object, nil
}

// Put implements port.Outputs.
func (o *objects) Put(_ context.Context, bucket port.Bucket, key, _ string, content []byte) error {
	o.buckets[bucket][key] = content
	return nil
}

// Upload implements port.Outputs.
func (o *objects) Upload(_ context.Context, bucket port.Bucket, key, _ string, content io.ReaderAt, size int64) error {
	body, err := io.ReadAll(io.NewSectionReader(content, 0, size))
	o.buckets[bucket][key] = body
	return err
}

// Replace implements port.Outputs.
func (o *objects) Replace(ctx context.Context, bucket port.Bucket, key, kind string, content []byte, etag string) error {
	if object, _ := o.Head(ctx, bucket, key); object.ETag != etag { //nolint:errcheck // no object has no ETag
		return port.ErrChanged
	}
	return o.Put(ctx, bucket, key, kind, content)
}

// Open implements port.Outputs.
func (o *objects) Open(ctx context.Context, bucket port.Bucket, key string, _ port.Span) (io.ReadCloser, port.Object, error) {
	object, err := o.Head(ctx, bucket, key)
	return io.NopCloser(bytes.NewReader(o.buckets[bucket][key])), object, err
}

// PresignGet implements port.Outputs.
func (o *objects) PresignGet(_ context.Context, key, _, _ string, _ time.Duration) (string, error) {
	return "http://bucket/" + key, nil
}

// PresignPut implements port.Outputs.
func (o *objects) PresignPut(_ context.Context, key, _ string, _ time.Duration) (string, error) {
	return "http://bucket/" + key, nil
}

// Delete implements port.Outputs.
func (o *objects) Delete(_ context.Context, bucket port.Bucket, key string) error {
	delete(o.buckets[bucket], key)
	return nil
}

// DeletePrefix implements port.Outputs.
func (o *objects) DeletePrefix(_ context.Context, bucket port.Bucket, prefix string) error {
	maps.DeleteFunc(o.buckets[bucket], func(key string, _ []byte) bool { return strings.HasPrefix(key, prefix) })
	return nil
}
