package simulation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// buckets is the object store of the world, in memory.
type buckets struct {
	w       *world
	buckets map[port.Bucket]map[string][]byte
}

func newBuckets(w *world) *buckets {
	return &buckets{w, map[port.Bucket]map[string][]byte{port.Uploads: {}, port.Accepted: {}}}
}

// errNoURLs: nobody in the simulation follows a URL.
var errNoURLs = errors.New("the simulation has no presigned URLs")

func (b *buckets) passing(call string) error {
	if b.w.chance(b.w.plan.lostCalls) {
		b.w.note("bucket call lost: %s", call)
		return fault.New(fault.Unavailable, "the object store did not answer")
	}
	return nil
}

// Head implements port.Outputs.
func (b *buckets) Head(_ context.Context, shelf port.Bucket, key string) (port.Object, error) {
	if err := b.passing("head"); err != nil {
		return port.Object{}, err
	}
	return b.head(shelf, key)
}

func (b *buckets) head(shelf port.Bucket, key string) (port.Object, error) {
	body, ok := b.buckets[shelf][key]
	if !ok {
		return port.Object{}, port.ErrNotFound
	}
	return port.Object{
		Key: key, Size: int64(len(body)), ETag: fmt.Sprintf(`"%x"`, sha256.Sum256(body)), ContentType: "application/xml",
		ModifiedAt: b.w.time.Now(),
	}, nil
}

// Accept implements port.Outputs.
func (b *buckets) Accept(_ context.Context, key, etag string) (port.Object, error) {
	if err := b.passing("keep"); err != nil {
		return port.Object{}, err
	}
	object, err := b.head(port.Uploads, key)
	if err != nil {
		return object, err
	}
	if object.ETag != etag {
		return object, port.ErrChanged
	}
	b.w.meddle(strings.Split(key, "/")[1])
	b.buckets[port.Accepted][key] = b.buckets[port.Uploads][key]
	return object, b.passing("the answer to keep")
}

// Put implements port.Outputs.
func (b *buckets) Put(_ context.Context, shelf port.Bucket, key, _ string, content []byte) error {
	if err := b.passing("put"); err != nil {
		return err
	}
	b.buckets[shelf][key] = content
	return b.passing("the answer to put")
}

// Open implements port.Outputs.
func (b *buckets) Open(_ context.Context, shelf port.Bucket, key string, _ port.Span) (io.ReadCloser, port.Object, error) {
	object, err := b.head(shelf, key)
	return io.NopCloser(bytes.NewReader(b.buckets[shelf][key])), object, err
}

// PresignGet implements port.Outputs.
func (b *buckets) PresignGet(context.Context, string, string, string, time.Duration) (string, error) {
	return "", errNoURLs
}

// PresignPut implements port.Outputs.
func (b *buckets) PresignPut(_ context.Context, key, _ string, _ time.Duration) (string, error) {
	return "http://bucket/" + key, nil
}

// Delete implements port.Outputs.
func (b *buckets) Delete(_ context.Context, shelf port.Bucket, key string) error {
	if err := b.passing("delete"); err != nil {
		return err
	}
	delete(b.buckets[shelf], key)
	return nil
}

// DeletePrefix implements port.Outputs.
func (b *buckets) DeletePrefix(_ context.Context, shelf port.Bucket, prefix string) error {
	if err := b.passing("delete prefix"); err != nil {
		return err
	}
	for key := range b.buckets[shelf] {
		if strings.HasPrefix(key, prefix) {
			delete(b.buckets[shelf], key)
		}
	}
	return nil
}
