package r2

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
)

// abortLimit limits the duration of the clean-up after a failed transfer.
const abortLimit = 10 * time.Second

// multipart are the S3 operations that start and end a transfer in parts.
type multipart interface {
	CreateMultipartUpload(context.Context, *s3.CreateMultipartUploadInput, ...func(*s3.Options)) (*s3.CreateMultipartUploadOutput, error)
	CompleteMultipartUpload(context.Context, *s3.CompleteMultipartUploadInput, ...func(*s3.Options)) (*s3.CompleteMultipartUploadOutput, error)
	AbortMultipartUpload(context.Context, *s3.AbortMultipartUploadInput, ...func(*s3.Options)) (*s3.AbortMultipartUploadOutput, error)
}

// transfer creates one object from parts. The object appears complete or not at
// all.
type transfer struct {
	s3                       multipart
	bucket, key, contentType string
	// inFlight is the number of concurrent parts.
	inFlight int
}

// part is one part of a transfer.
type part struct {
	upload       string
	number       int32 // from 1
	offset, size int64
}

// send transfers a part and returns its ETag.
type send func(context.Context, part) (*string, error)

// run creates an object of the size. It aborts the upload if a part fails.
func (t transfer) run(ctx context.Context, total, size int64, send send) error {
	upload, err := t.begin(ctx)
	if err != nil {
		return err
	}
	if err := t.finish(ctx, upload, total, size, nil, send); err != nil {
		t.abort(ctx, upload)
		return err
	}
	return nil
}

func (t transfer) begin(ctx context.Context) (upload string, err error) {
	create := &s3.CreateMultipartUploadInput{Bucket: &t.bucket, Key: &t.key}
	if t.contentType != "" {
		create.ContentType = &t.contentType
	}
	begun, err := t.s3.CreateMultipartUpload(ctx, create)
	if err != nil {
		return "", named(err, "begin an upload")
	}
	return *begun.UploadId, nil
}

// finish sends the parts whose ETags are unknown, and completes the object.
func (t transfer) finish(ctx context.Context, upload string, total, size int64, there map[int32]*string, send send) error {
	parts := make([]types.CompletedPart, (total+size-1)/size)
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(t.inFlight)
	for i := range parts {
		if sending.Err() != nil {
			break
		}
		part := part{upload: upload, number: int32(i + 1), offset: int64(i) * size}
		part.size = min(size, total-part.offset)
		parts[i] = types.CompletedPart{PartNumber: &part.number, ETag: there[part.number]}
		if parts[i].ETag != nil {
			continue
		}
		group.Go(func() (err error) {
			parts[i].ETag, err = send(sending, part)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return named(err, "finish an upload")
	}
	_, err := t.s3.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &t.bucket, Key: &t.key, UploadId: &upload,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	return named(err, "finish an upload")
}

// abort deletes the parts, even after ctx has ended. If it fails, the next
// DeletePrefix or the bucket's lifecycle rule deletes them.
func (t transfer) abort(ctx context.Context, upload string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortLimit)
	defer cancel()
	_, _ = t.s3.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &t.bucket, Key: &t.key, UploadId: &upload})
}
