package port

import (
	"context"
	"errors"
	"io"
	"time"
)

// ErrChanged is returned by Accept and Replace if the ETag of the object is not the expected
// one.
var ErrChanged = errors.New("the object has changed")

// Bucket is one of the two buckets of outputs.
type Bucket string

// The two buckets. The credentials of a worker grant access only to Uploads, so an object in
// Accepted never changes.
const (
	Uploads  Bucket = "uploads"
	Accepted Bucket = "kept"
)

// Object is the metadata of an object.
type Object struct {
	Key         string
	Size        int64
	ETag        string // with its quotes, as in HTTP
	ContentType string
	ModifiedAt  time.Time
	// Digest is "sha256:" and the hexadecimal SHA-256 of the bytes. Only Accept returns it, and
	// only if the store reports one for the whole object.
	Digest string
}

// Span is a part of an object: Length bytes from Offset. The zero Span is the
// whole object.
type Span struct{ Offset, Length int64 }

// Outputs is the object store: R2, through the S3 API.
//
// Reads are strongly consistent, as in R2 and S3. Failures are Unavailable faults, which the
// caller retries, or ErrNotFound. Every call is idempotent.
type Outputs interface {
	// Head returns an object's metadata, or ErrNotFound.
	Head(ctx context.Context, bucket Bucket, key string) (Object, error)
	// Accept copies the object from Uploads to the same key in Accepted, if its ETag is still
	// etag. The copy is made inside the store, whatever the size. It returns ErrChanged if the
	// ETag differs and ErrNotFound if there is no object. A large object may need more time
	// than one call has; the next call resumes the copy.
	Accept(ctx context.Context, key, etag string) (Object, error)
	// Put writes a small object (at most 8 MiB). It replaces an existing one.
	Put(ctx context.Context, bucket Bucket, key, contentType string, content []byte) error
	// Upload writes an object of size bytes from content, with only a bounded part of it in
	// memory. It replaces an existing object. The object appears complete or not at all.
	Upload(ctx context.Context, bucket Bucket, key, contentType string, content io.ReaderAt, size int64) error
	// Replace is Put on the condition that the object's ETag is etag; an empty etag means that
	// no object exists. Otherwise it returns ErrChanged and writes nothing. If a try inside the
	// call got no answer, the call may return ErrChanged although it wrote its content; the
	// caller reads the object to find out.
	Replace(ctx context.Context, bucket Bucket, key, contentType string, content []byte, etag string) error
	// Open reads a part of an object as a stream, with one buffer in memory. The caller closes
	// the reader.
	Open(ctx context.Context, bucket Bucket, key string, span Span) (io.ReadCloser, Object, error)
	// PresignGet returns a URL that serves the object from Accepted for ttl (1 s to 7 days),
	// with the given Content-Disposition and Content-Type instead of the object's own. It makes
	// no request.
	PresignGet(ctx context.Context, key, disposition, contentType string, ttl time.Duration) (string, error)
	// PresignPut returns a URL that accepts PUT requests to Uploads for ttl.
	PresignPut(ctx context.Context, key, contentType string, ttl time.Duration) (string, error)
	// Delete removes an object. It returns nil if it does not exist.
	Delete(ctx context.Context, bucket Bucket, key string) error
	// DeletePrefix removes every object under the prefix and aborts the multipart uploads under
	// it. The prefix is not empty and ends in "/".
	DeletePrefix(ctx context.Context, bucket Bucket, prefix string) error
}
