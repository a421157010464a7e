package runs_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// outputs is a bucket in memory.
type outputs struct {
	h       *fixture
	buckets map[port.Bucket]map[string]string
	// after runs once after the next Head of an upload.
	after func()
	// digest is the digest that Accept reports.
	digest string
	// lost is the number of deletions to fail next.
	lost int
	// away makes Head fail.
	away bool
	// presigned is the life of the last presigned URL for a PUT.
	presigned time.Duration
}

func newOutputs(h *fixture) *outputs {
	return &outputs{h: h, buckets: map[port.Bucket]map[string]string{port.Uploads: {}, port.Accepted: {}}}
}

// Head implements port.Outputs.
func (o *outputs) Head(_ context.Context, bucket port.Bucket, key string) (port.Object, error) {
	if o.away {
		return port.Object{}, fault.New(fault.Unavailable, "the object store does not answer")
	}
	object, err := o.head(bucket, key)
	if do := o.after; do != nil && bucket == port.Uploads {
		o.after = nil
		do()
	}
	return object, err
}

func (o *outputs) head(bucket port.Bucket, key string) (port.Object, error) {
	body, ok := o.buckets[bucket][key]
	if !ok {
		return port.Object{}, port.ErrNotFound
	}
	return port.Object{Key: key, Size: int64(len(body)), ETag: fmt.Sprintf("%q", body), ContentType: "application/xml"}, nil
}

// Accept implements port.Outputs.
func (o *outputs) Accept(_ context.Context, key, etag string) (port.Object, error) {
	object, err := o.head(port.Uploads, key)
	if err != nil {
		return object, err
	}
	if object.ETag != etag {
		return port.Object{}, port.ErrChanged
	}
	o.buckets[port.Accepted][key] = o.buckets[port.Uploads][key]
	object.Digest = o.digest
	return object, nil
}

// Put implements port.Outputs.
func (o *outputs) Put(_ context.Context, bucket port.Bucket, key, _ string, content []byte) error {
	o.buckets[bucket][key] = string(content)
	return nil
}

// Upload implements port.Outputs.
func (o *outputs) Upload(_ context.Context, bucket port.Bucket, key, _ string, content io.ReaderAt, size int64) error {
	text, err := io.ReadAll(io.NewSectionReader(content, 0, size))
	o.buckets[bucket][key] = string(text)
	return err
}

// Replace implements port.Outputs.
func (o *outputs) Replace(ctx context.Context, bucket port.Bucket, key, kind string, content []byte, etag string) error {
	if object, _ := o.head(bucket, key); object.ETag != etag { //nolint:errcheck // no object has no ETag
		return port.ErrChanged
	}
	return o.Put(ctx, bucket, key, kind, content)
}

// Open implements port.Outputs.
func (o *outputs) Open(_ context.Context, bucket port.Bucket, key string, _ port.Span) (io.ReadCloser, port.Object, error) {
	object, err := o.head(bucket, key)
	return io.NopCloser(bytes.NewBufferString(o.buckets[bucket][key])), object, err
}

// PresignGet implements port.Outputs.
func (o *outputs) PresignGet(_ context.Context, key, _, _ string, _ time.Duration) (string, error) {
	return "http://bucket/" + key, nil
}

// PresignPut implements port.Outputs.
func (o *outputs) PresignPut(_ context.Context, key, _ string, ttl time.Duration) (string, error) {
	o.presigned = ttl
	return "http://bucket/" + key, nil
}

// Delete implements port.Outputs.
func (o *outputs) Delete(_ context.Context, bucket port.Bucket, key string) error {
	if o.lost > 0 {
		o.lost--
		return fault.New(fault.Unavailable, "the deletion was lost")
	}
	delete(o.buckets[bucket], key)
	return nil
}

// DeletePrefix implements port.Outputs.
func (o *outputs) DeletePrefix(_ context.Context, bucket port.Bucket, prefix string) error {
	if o.lost > 0 {
		o.lost--
		return fault.New(fault.Unavailable, "the deletion was lost")
	}
	for key := range o.buckets[bucket] {
		if strings.HasPrefix(key, prefix) {
			delete(o.buckets[bucket], key)
		}
	}
	return nil
}
