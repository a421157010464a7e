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
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// buckets is the object store of the world, in memory.
type buckets struct {
	w       *world
	shelves map[orchestrator.Shelf]map[string][]byte
}

func newBuckets(w *world) *buckets {
	return &buckets{w, map[orchestrator.Shelf]map[string][]byte{orchestrator.Uploads: {}, orchestrator.Kept: {}}}
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

// Head is orchestrator.Outputs.
func (b *buckets) Head(_ context.Context, shelf orchestrator.Shelf, key string) (orchestrator.Object, error) {
	if err := b.passing("head"); err != nil {
		return orchestrator.Object{}, err
	}
	return b.head(shelf, key)
}

func (b *buckets) head(shelf orchestrator.Shelf, key string) (orchestrator.Object, error) {
	body, ok := b.shelves[shelf][key]
	if !ok {
		return orchestrator.Object{}, orchestrator.ErrNotFound
	}
	return orchestrator.Object{
		Key: key, Size: int64(len(body)), ETag: fmt.Sprintf(`"%x"`, sha256.Sum256(body)), ContentType: "application/xml",
		ModifiedAt: b.w.time.Now(),
	}, nil
}

// Keep is orchestrator.Outputs.
func (b *buckets) Keep(_ context.Context, key, etag string) (orchestrator.Object, error) {
	if err := b.passing("keep"); err != nil {
		return orchestrator.Object{}, err
	}
	object, err := b.head(orchestrator.Uploads, key)
	if err != nil {
		return object, err
	}
	if object.ETag != etag {
		return object, orchestrator.ErrChanged
	}
	b.w.meddle(strings.Split(key, "/")[1])
	b.shelves[orchestrator.Kept][key] = b.shelves[orchestrator.Uploads][key]
	return object, b.passing("the answer to keep")
}

// Put is orchestrator.Outputs.
func (b *buckets) Put(_ context.Context, shelf orchestrator.Shelf, key, _ string, content []byte) error {
	if err := b.passing("put"); err != nil {
		return err
	}
	b.shelves[shelf][key] = content
	return b.passing("the answer to put")
}

// Open is orchestrator.Outputs.
func (b *buckets) Open(_ context.Context, shelf orchestrator.Shelf, key string, _ orchestrator.Span) (io.ReadCloser, orchestrator.Object, error) {
	object, err := b.head(shelf, key)
	return io.NopCloser(bytes.NewReader(b.shelves[shelf][key])), object, err
}

// PresignGet is orchestrator.Outputs.
func (b *buckets) PresignGet(context.Context, string, string, string, time.Duration) (string, error) {
	return "", errNoURLs
}

// PresignPut is orchestrator.Outputs.
func (b *buckets) PresignPut(_ context.Context, key, _ string, _ time.Duration) (string, error) {
	return "http://bucket/" + key, nil
}

// Delete is orchestrator.Outputs.
func (b *buckets) Delete(_ context.Context, shelf orchestrator.Shelf, key string) error {
	if err := b.passing("delete"); err != nil {
		return err
	}
	delete(b.shelves[shelf], key)
	return nil
}

// DeletePrefix is orchestrator.Outputs.
func (b *buckets) DeletePrefix(_ context.Context, shelf orchestrator.Shelf, prefix string) error {
	if err := b.passing("delete prefix"); err != nil {
		return err
	}
	for key := range b.shelves[shelf] {
		if strings.HasPrefix(key, prefix) {
			delete(b.shelves[shelf], key)
		}
	}
	return nil
}
