package r2

import (
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// partSize is the size of one request's body. partsInFlight is the number of concurrent parts.
const (
	partSize      = 8 * mebi
	partsInFlight = 2
)

// uploadCalls are the S3 operations that an Uploader uses.
type uploadCalls interface {
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	UploadPart(context.Context, *s3.UploadPartInput, ...func(*s3.Options)) (*s3.UploadPartOutput, error)
	multipart
}

// Uploader writes to the bucket Uploads. It is safe for concurrent use.
type Uploader struct {
	s3     uploadCalls
	bucket string
}

// NewUploader returns an uploader to cfg.Uploads. It makes no call. The error
// names every problem of the configuration.
func NewUploader(cfg Config) (*Uploader, error) {
	if err := cfg.check(false); err != nil {
		return nil, err
	}
	return &Uploader{s3: cfg.client(newResolver(cfg.current()), func(o *s3.Options) { o.Retryer = patient() }), bucket: cfg.Uploads}, nil
}

// wholeAgain is how often an upload that the store has aborted is restarted.
const wholeAgain = 2

// Upload writes size bytes of body under the key. It sends up to 8 MiB in one request,
// otherwise parts of at least 8 MiB, two at a time. It retries each request for about two
// minutes. The object appears complete or not at all. The error is an Unavailable fault. The
// call is idempotent.
func (u *Uploader) Upload(ctx context.Context, key string, body io.ReaderAt, size int64, contentType string) error {
	for again := 0; ; again++ {
		err := u.upload(ctx, key, readable{body}, size, contentType)
		// A repeated completion whose first response was lost also returns NoSuchUpload.
		if code(err) != "NoSuchUpload" || again == wholeAgain {
			return err
		}
	}
}

func (u *Uploader) upload(ctx context.Context, key string, body io.ReaderAt, size int64, contentType string) error {
	if size <= partSize {
		put := &s3.PutObjectInput{
			Bucket: &u.bucket, Key: &key, ContentLength: &size,
			Body: io.NewSectionReader(body, 0, size),
		}
		if contentType != "" {
			put.ContentType = &contentType
		}
		_, err := u.s3.PutObject(ctx, put)
		return named(err, "take an upload")
	}
	each := max(partSize, (size+maxParts-1)/maxParts)
	transfer := transfer{s3: u.s3, bucket: u.bucket, key: key, contentType: contentType, inFlight: partsInFlight}
	return transfer.run(ctx, size, each, func(ctx context.Context, part part) (*string, error) {
		sent, err := u.s3.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: &u.bucket, Key: &key, UploadId: &part.upload, PartNumber: &part.number,
			ContentLength: &part.size, Body: io.NewSectionReader(body, part.offset, part.size),
		})
		if err != nil {
			return nil, named(err, "take an upload")
		}
		return sent.ETag, nil
	})
}
