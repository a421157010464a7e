package fake

import (
	"context"
	"crypto/md5" //nolint:gosec // ETags of object stores are MD5 sums
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Outputs is an object store in memory. It serves its presigned URLs as an
// http.RoundTripper. It is safe for concurrent use.
type Outputs struct {
	calls
	clock clock.Clock

	mu      sync.Mutex
	buckets map[port.Bucket]map[string]object
	uploads []string
	cut     int64
}

type object struct {
	port.Object
	content string
}

var _ port.Outputs = (*Outputs)(nil)

// NewOutputs returns a store with two empty buckets.
func NewOutputs(clk clock.Clock, plan Plan) *Outputs {
	return &Outputs{
		calls: calls{plan: plan}, clock: clk, cut: -1,
		buckets: map[port.Bucket]map[string]object{port.Uploads: {}, port.Accepted: {}},
	}
}

// Store puts an object into a bucket, as a worker does. No plan applies.
func (o *Outputs) Store(bucket port.Bucket, key, contentType, content string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.store(bucket, key, contentType, content)
}

// store is Store without the locking. The caller holds the mutex.
func (o *Outputs) store(bucket port.Bucket, key, contentType, content string) {
	sum := md5.Sum([]byte(content)) //nolint:gosec // not a security measure
	o.buckets[bucket][key] = object{content: content, Object: port.Object{
		Key: key, Size: int64(len(content)), ETag: `"` + hex.EncodeToString(sum[:]) + `"`, ContentType: contentType,
		ModifiedAt: o.clock.Now().UTC(),
	}}
}

// BeginUpload starts a multipart upload to Uploads and does not complete it.
func (o *Outputs) BeginUpload(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.uploads = append(o.uploads, key)
}

// Unfinished returns the number of incomplete multipart uploads with the prefix.
func (o *Outputs) Unfinished(prefix string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range o.uploads {
		if strings.HasPrefix(key, prefix) {
			n++
		}
	}
	return n
}

// BreakAfter makes every read fail after n bytes. A negative n makes reads succeed again.
func (o *Outputs) BreakAfter(n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cut = n
}

// Clear deletes all objects.
func (o *Outputs) Clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, objects := range o.buckets {
		clear(objects)
	}
}

// Count returns the number of objects in a bucket.
func (o *Outputs) Count(bucket port.Bucket) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.buckets[bucket])
}

// Keys returns the keys of the objects in a bucket, in order.
func (o *Outputs) Keys(bucket port.Bucket) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.buckets[bucket]))
}

// Content returns the bytes of an object, or "" if it does not exist.
func (o *Outputs) Content(bucket port.Bucket, key string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buckets[bucket][key].content
}

func (o *Outputs) get(bucket port.Bucket, key string) (object, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if found, ok := o.buckets[bucket][key]; ok {
		return found, nil
	}
	return object{}, port.ErrNotFound
}

// Head implements port.Outputs.
func (o *Outputs) Head(ctx context.Context, bucket port.Bucket, key string) (port.Object, error) {
	return result(ctx, &o.calls, "Head", key, false, func() (port.Object, error) {
		found, err := o.get(bucket, key)
		return found.Object, err
	})
}

// Accept implements port.Outputs.
func (o *Outputs) Accept(ctx context.Context, key, etag string) (port.Object, error) {
	return result(ctx, &o.calls, "Accept", key, true, func() (port.Object, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		found, ok := o.buckets[port.Uploads][key]
		switch {
		case !ok:
			return port.Object{}, port.ErrNotFound
		case found.ETag != etag:
			return port.Object{}, port.ErrChanged
		}
		found.ModifiedAt = o.clock.Now().UTC()
		if kept, ok := o.buckets[port.Accepted][key]; ok && kept.ETag == etag {
			found.ModifiedAt = kept.ModifiedAt
		}
		o.buckets[port.Accepted][key] = found
		return found.Object, nil
	})
}

// Put implements port.Outputs.
func (o *Outputs) Put(ctx context.Context, bucket port.Bucket, key, contentType string, content []byte) error {
	return o.call(ctx, "Put", key, true, func() error {
		o.Store(bucket, key, contentType, string(content))
		return nil
	})
}

// Upload implements port.Outputs.
func (o *Outputs) Upload(ctx context.Context, bucket port.Bucket, key, contentType string, content io.ReaderAt, size int64) error {
	return o.call(ctx, "Upload", key, true, func() error {
		text, err := io.ReadAll(io.NewSectionReader(content, 0, size))
		if err == nil && int64(len(text)) < size {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("cannot read the content: %w", err)
		}
		o.Store(bucket, key, contentType, string(text))
		return nil
	})
}

// Replace implements port.Outputs.
func (o *Outputs) Replace(ctx context.Context, bucket port.Bucket, key, contentType string, content []byte, etag string) error {
	return o.call(ctx, "Replace", key, true, func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.buckets[bucket][key].ETag != etag {
			return port.ErrChanged
		}
		o.store(bucket, key, contentType, string(content))
		return nil
	})
}

// Open implements port.Outputs.
func (o *Outputs) Open(ctx context.Context, bucket port.Bucket, key string, span port.Span) (io.ReadCloser, port.Object, error) {
	if span.Offset < 0 || span.Length < 0 {
		return nil, port.Object{}, fault.New(fault.InvalidRequest, "span %+v: want no negative number", span)
	}
	found, err := result(ctx, &o.calls, "Open", key, false, func() (object, error) { return o.get(bucket, key) })
	if err != nil {
		return nil, port.Object{}, err
	}
	content := found.content[min(span.Offset, found.Size):]
	if span.Length > 0 {
		content = content[:min(span.Length, int64(len(content)))]
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var body io.Reader = strings.NewReader(content)
	if o.cut >= 0 {
		body = io.MultiReader(io.LimitReader(body, o.cut), brokenReader{})
	}
	return io.NopCloser(body), found.Object, nil
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Delete implements port.Outputs.
func (o *Outputs) Delete(ctx context.Context, bucket port.Bucket, key string) error {
	return o.call(ctx, "Delete", key, true, func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.buckets[bucket], key)
		return nil
	})
}

// DeletePrefix implements port.Outputs.
func (o *Outputs) DeletePrefix(ctx context.Context, bucket port.Bucket, prefix string) error {
	return o.call(ctx, "DeletePrefix", prefix, true, func() error {
		if !strings.HasSuffix(prefix, "/") {
			return errors.New("prefix " + prefix + ": want one that ends in a slash")
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		maps.DeleteFunc(o.buckets[bucket], func(key string, _ object) bool { return strings.HasPrefix(key, prefix) })
		left := o.uploads[:0]
		for _, key := range o.uploads {
			if bucket != port.Uploads || !strings.HasPrefix(key, prefix) {
				left = append(left, key)
			}
		}
		o.uploads = left
		return nil
	})
}
