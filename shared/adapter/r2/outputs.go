package r2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// calls are the S3 operations that Outputs uses.
type calls interface {
	HeadObject(context.Context, *s3.HeadObjectInput, ...func(*s3.Options)) (*s3.HeadObjectOutput, error)
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	CopyObject(context.Context, *s3.CopyObjectInput, ...func(*s3.Options)) (*s3.CopyObjectOutput, error)
	DeleteObject(context.Context, *s3.DeleteObjectInput, ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
	ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
	ListMultipartUploads(context.Context, *s3.ListMultipartUploadsInput, ...func(*s3.Options)) (*s3.ListMultipartUploadsOutput, error)
	ListParts(context.Context, *s3.ListPartsInput, ...func(*s3.Options)) (*s3.ListPartsOutput, error)
	UploadPart(context.Context, *s3.UploadPartInput, ...func(*s3.Options)) (*s3.UploadPartOutput, error)
	UploadPartCopy(context.Context, *s3.UploadPartCopyInput, ...func(*s3.Options)) (*s3.UploadPartCopyOutput, error)
	multipart
}

// Outputs implements port.Outputs. It is safe for concurrent use.
type Outputs struct {
	s3                calls
	presign           *presigner
	uploads, accepted string
	copyLimit         int64
}

var _ port.Outputs = (*Outputs)(nil)

// New returns an Outputs. It makes no call. The error names every problem of
// the configuration.
func New(cfg Config) (*Outputs, error) {
	if err := cfg.check(true); err != nil {
		return nil, err
	}
	if cfg.CopyLimit == 0 {
		cfg.CopyLimit = copyAtOnce
	}
	endpoints := newResolver(cfg.current())
	return &Outputs{
		s3: cfg.client(endpoints), presign: newPresigner(endpoints, cfg.Clock),
		uploads: cfg.Uploads, accepted: cfg.Accepted, copyLimit: cfg.CopyLimit,
	}, nil
}

func (o *Outputs) bucket(name port.Bucket) (*string, error) {
	switch name {
	case port.Uploads:
		return &o.uploads, nil
	case port.Accepted:
		return &o.accepted, nil
	}
	return nil, fmt.Errorf("unknown bucket %q", name)
}

// Head implements port.Outputs.
func (o *Outputs) Head(ctx context.Context, name port.Bucket, key string) (port.Object, error) {
	bucket, err := o.bucket(name)
	if err != nil {
		return port.Object{}, err
	}
	head, err := o.s3.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: &key})
	if err != nil {
		return port.Object{}, named(err, "look an output up")
	}
	return port.Object{
		Key: key, Size: aws.ToInt64(head.ContentLength), ETag: aws.ToString(head.ETag),
		ContentType: aws.ToString(head.ContentType), ModifiedAt: aws.ToTime(head.LastModified).UTC(),
	}, nil
}

// Put implements port.Outputs with one request.
func (o *Outputs) Put(ctx context.Context, name port.Bucket, key, contentType string, content []byte) error {
	bucket, err := o.bucket(name)
	if err != nil {
		return err
	}
	_, err = o.s3.PutObject(ctx, &s3.PutObjectInput{
		Bucket: bucket, Key: &key, ContentType: &contentType, Body: bytes.NewReader(content),
	})
	return named(err, "write an object")
}

// Upload implements port.Outputs like Uploader.Upload.
func (o *Outputs) Upload(ctx context.Context, name port.Bucket, key, contentType string, content io.ReaderAt, size int64) error {
	bucket, err := o.bucket(name)
	if err != nil {
		return err
	}
	return (&Uploader{o.s3, *bucket}).Upload(ctx, key, content, size, contentType)
}

// Replace implements port.Outputs with a conditional request.
func (o *Outputs) Replace(ctx context.Context, name port.Bucket, key, contentType string, content []byte, etag string) error {
	bucket, err := o.bucket(name)
	if err != nil {
		return err
	}
	input := &s3.PutObjectInput{Bucket: bucket, Key: &key, ContentType: &contentType, Body: bytes.NewReader(content), IfMatch: &etag}
	if etag == "" {
		input.IfMatch, input.IfNoneMatch = nil, aws.String("*")
	}
	_, err = o.s3.PutObject(ctx, input)
	if code(err) == "ConditionalRequestConflict" { // S3: a concurrent request writes the object
		return port.ErrChanged
	}
	if err = named(err, "write an object"); errors.Is(err, port.ErrNotFound) { // it was deleted
		return port.ErrChanged
	}
	return err
}

// Open implements port.Outputs. A span that ends beyond the object is shortened. A span that
// starts beyond it is empty. A Length of 0 reads to the end.
func (o *Outputs) Open(ctx context.Context, name port.Bucket, key string, span port.Span) (io.ReadCloser, port.Object, error) {
	bucket, err := o.bucket(name)
	if err != nil {
		return nil, port.Object{}, err
	}
	if span.Offset < 0 || span.Length < 0 {
		return nil, port.Object{}, fault.Invalid("range", "span with a negative offset or length")
	}
	got, err := o.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: &key, Range: byteRange(span)})
	if status(err) == http.StatusRequestedRangeNotSatisfiable {
		object, err := o.Head(ctx, name, key)
		return http.NoBody, object, err
	}
	if err != nil {
		return nil, port.Object{}, named(err, "read an output")
	}
	object := port.Object{
		Key: key, Size: aws.ToInt64(got.ContentLength), ETag: aws.ToString(got.ETag),
		ContentType: aws.ToString(got.ContentType), ModifiedAt: aws.ToTime(got.LastModified).UTC(),
	}
	if got.ContentRange != nil {
		_, whole, _ := strings.Cut(*got.ContentRange, "/")
		if object.Size, err = strconv.ParseInt(whole, 10, 64); err != nil {
			return nil, port.Object{}, errors.Join(named(err, "read the size of an output"), got.Body.Close())
		}
	}
	return &body{got.Body}, object, nil
}

// byteRange returns the Range header of the span, or nil for the whole object.
func byteRange(span port.Span) *string {
	switch {
	case span == port.Span{}:
		return nil
	case span.Length == 0, span.Offset+span.Length < 0: // to the end, or further than numbers go
		return aws.String(fmt.Sprintf("bytes=%d-", span.Offset))
	}
	return aws.String(fmt.Sprintf("bytes=%d-%d", span.Offset, span.Offset+span.Length-1))
}

// body converts read errors in the middle of an object to faults.
type body struct{ from io.ReadCloser }

func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fault.Wrap(err, fault.Unavailable, "the object store stopped in the middle of an output")
	}
	return n, err
}

func (b *body) Close() error { return b.from.Close() }
