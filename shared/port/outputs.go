package port

import (
	"context"
	"errors"
	"io"
	"time"
)

// ErrChanged is the answer to a Keep of an object that is no longer the one
// that was looked at.
var ErrChanged = errors.New("the object has changed")

// Shelf is one of the two places where outputs lie.
type Bucket string

// The two shelves. A worker's credentials reach Uploads alone, so that what is
// on Kept stays what was accepted.
const (
	Uploads  Bucket = "uploads"
	Accepted Bucket = "kept"
)

// Object is what the store tells about the bytes under a key.
type Object struct {
	Key         string
	Size        int64
	ETag        string // with its quotes, as HTTP has it
	ContentType string
	ModifiedAt  time.Time
}

// Span is a part of an object: Length bytes from Offset. The zero Span is the
// whole.
type Span struct{ Offset, Length int64 }

// Outputs is the object store, R2 over the S3 API.
//
// Reads see every write that returned before (R2 and S3 are strongly
// consistent). Failures are Unavailable faults (the caller repeats) or
// ErrNotFound. Every call may be repeated.
type Outputs interface {
	// Head looks an object up. ErrNotFound where there is none.
	Head(ctx context.Context, bucket Bucket, key string) (Object, error)
	// Keep copies the object from Uploads to the same key on Kept if its ETag
	// still is etag, inside the store, whatever its size. ErrChanged where it
	// is another, ErrNotFound where there is none. A large object may take more
	// time than a call has: the next one goes on with what is copied.
	Accept(ctx context.Context, key, etag string) (Object, error)
	// Put writes a small object (at most 8 MiB) in place of any that is there.
	Put(ctx context.Context, bucket Bucket, key, contentType string, content []byte) error
	// Open reads a part. The caller closes the reader. It streams: no part of
	// the object is held in memory beyond one buffer.
	Open(ctx context.Context, bucket Bucket, key string, span Span) (io.ReadCloser, Object, error)
	// PresignGet makes a URL that serves the object from Kept for ttl (1 s to
	// 7 days) under the file name and content type. It makes no call.
	PresignGet(ctx context.Context, key, fileName, contentType string, ttl time.Duration) (string, error)
	// PresignPut makes a URL that takes one PUT to Uploads for ttl.
	PresignPut(ctx context.Context, key, contentType string, ttl time.Duration) (string, error)
	// Delete removes an object; nil where there is none.
	Delete(ctx context.Context, bucket Bucket, key string) error
	// DeletePrefix removes every object under the prefix, which is not empty
	// and ends in "/", and aborts the uploads begun there.
	DeletePrefix(ctx context.Context, bucket Bucket, prefix string) error
}
