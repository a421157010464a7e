package harness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// buckets is an object store in memory that loses calls.
type buckets struct {
	W       *Base
	Buckets map[port.Bucket]map[string][]byte
}

func newBuckets(w *Base) *buckets {
	return &buckets{w, map[port.Bucket]map[string][]byte{port.Uploads: {}, port.Accepted: {}}}
}

func (b *buckets) maybeLost(ctx context.Context, call string) error {
	b.W.MaybeInterrupt()
	if err := Interrupted(ctx); err != nil {
		return err
	}
	if b.W.Down(bucketOutage) || b.W.Injects("lost call", b.W.Plan.LostCalls) {
		b.W.Note("bucket call lost: %s", call)
		return fault.New(fault.Unavailable, "no response from the object store")
	}
	return nil
}

// Head implements port.Outputs.
func (b *buckets) Head(ctx context.Context, bucket port.Bucket, key string) (port.Object, error) {
	if err := b.maybeLost(ctx, "head"); err != nil {
		return port.Object{}, err
	}
	return b.head(bucket, key)
}

func (b *buckets) head(bucket port.Bucket, key string) (port.Object, error) {
	body, ok := b.Buckets[bucket][key]
	if !ok {
		return port.Object{}, port.ErrNotFound
	}
	return port.Object{
		Key: key, Size: int64(len(body)), ETag: fmt.Sprintf(`"%x"`, sha256.Sum256(body)), ContentType: "application/xml",
		ModifiedAt: b.W.Time.Now,
	}, nil
}

// Accept implements port.Outputs.
func (b *buckets) Accept(ctx context.Context, key, etag string) (port.Object, error) {
	if err := b.maybeLost(ctx, "accept"); err != nil {
		return port.Object{}, err
	}
	object, err := b.head(port.Uploads, key)
	if err != nil {
		return object, err
	}
	if object.ETag != etag {
		return object, port.ErrChanged
	}
	b.W.Watch.DuringCall(strings.Split(key, "/")[1])
	b.Buckets[port.Accepted][key] = b.Buckets[port.Uploads][key]
	return object, b.maybeLost(ctx, "response to accept")
}

// Put implements port.Outputs.
func (b *buckets) Put(ctx context.Context, bucket port.Bucket, key, _ string, content []byte) error {
	if err := b.maybeLost(ctx, "put"); err != nil {
		return err
	}
	b.Buckets[bucket][key] = content
	return b.maybeLost(ctx, "response to put")
}

// Replace implements port.Outputs.
func (b *buckets) Replace(ctx context.Context, bucket port.Bucket, key, kind string, content []byte, etag string) error {
	if object, _ := b.head(bucket, key); object.ETag != etag { //nolint:errcheck // no object has no ETag
		return port.ErrChanged
	}
	return b.Put(ctx, bucket, key, kind, content)
}

// Open implements port.Outputs.
func (b *buckets) Open(_ context.Context, bucket port.Bucket, key string, _ port.Span) (io.ReadCloser, port.Object, error) {
	object, err := b.head(bucket, key)
	return io.NopCloser(bytes.NewReader(b.Buckets[bucket][key])), object, err
}

// PresignGet implements port.Outputs.
func (b *buckets) PresignGet(_ context.Context, key, _, _ string, _ time.Duration) (string, error) {
	return "http://bucket/" + key, nil
}

// PresignPut implements port.Outputs.
func (b *buckets) PresignPut(_ context.Context, key, _ string, _ time.Duration) (string, error) {
	return "http://bucket/" + key, nil
}

// Delete implements port.Outputs.
func (b *buckets) Delete(ctx context.Context, bucket port.Bucket, key string) error {
	if err := b.maybeLost(ctx, "delete"); err != nil {
		return err
	}
	delete(b.Buckets[bucket], key)
	return nil
}

// DeletePrefix implements port.Outputs.
func (b *buckets) DeletePrefix(ctx context.Context, bucket port.Bucket, prefix string) error {
	if err := b.maybeLost(ctx, "delete prefix"); err != nil {
		return err
	}
	for key := range b.Buckets[bucket] {
		if strings.HasPrefix(key, prefix) {
			delete(b.Buckets[bucket], key)
		}
	}
	return nil
}
