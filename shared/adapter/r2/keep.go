package r2

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Accept implements port.Outputs. Each part of a copy requires etag, so that all parts belong
// to one object. Accept reads the head of the copy before it returns. If a copy in parts runs
// out of time, the next call resumes it.
func (o *Outputs) Accept(ctx context.Context, key, etag string) (port.Object, error) {
	source, err := o.Head(ctx, port.Uploads, key)
	if err != nil {
		return port.Object{}, err
	}
	if source.ETag != etag {
		return port.Object{}, port.ErrChanged
	}
	digest := ""
	if source.Size <= o.copyLimit {
		var copied *s3.CopyObjectOutput
		copied, err = o.s3.CopyObject(ctx, &s3.CopyObjectInput{
			Bucket: &o.accepted, Key: &key, CopySource: o.source(key), CopySourceIfMatch: &etag,
		})
		digest, err = digestOf(copied), named(err, "copy an output")
	} else {
		err = o.acceptInParts(ctx, source)
	}
	if err != nil {
		return port.Object{}, err
	}
	accepted, err := o.Head(ctx, port.Accepted, key)
	if err != nil {
		return port.Object{}, fault.Wrap(err, fault.Unavailable, "the object store does not show a copied output")
	}
	if accepted.Size != source.Size {
		return port.Object{}, fault.New(fault.Unavailable, "the object store copied %d of %d bytes", accepted.Size, source.Size)
	}
	accepted.Digest = digest
	return accepted, nil
}

// digestOf returns the SHA-256 of a copied object if the store reports it. The checksum of an
// object in parts is computed from those of its parts, so digestOf returns "" for it.
func digestOf(copied *s3.CopyObjectOutput) string {
	if copied == nil || copied.CopyObjectResult == nil || copied.CopyObjectResult.ChecksumType == types.ChecksumTypeComposite {
		return ""
	}
	sum, err := base64.StdEncoding.DecodeString(aws.ToString(copied.CopyObjectResult.ChecksumSHA256))
	if err != nil || len(sum) != sha256.Size {
		return ""
	}
	return fmt.Sprintf("sha256:%x", sum)
}

// source returns the header that names the object to copy, URL-encoded. A plus sign is encoded
// too, because stores decode it as a space.
func (o *Outputs) source(key string) *string {
	segments := strings.Split(o.uploads+"/"+key, "/")
	for i, segment := range segments {
		segments[i] = strings.ReplaceAll(url.PathEscape(segment), "+", "%2B")
	}
	return aws.String(strings.Join(segments, "/"))
}

// Delete implements port.Outputs.
func (o *Outputs) Delete(ctx context.Context, name port.Bucket, key string) error {
	bucket, err := o.bucket(name)
	if err != nil {
		return err
	}
	return o.delete(ctx, bucket, key)
}

func (o *Outputs) delete(ctx context.Context, bucket *string, key string) error {
	_, err := o.s3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: &key})
	return gone(named(err, "delete an output"))
}

// DeletePrefix implements port.Outputs. It deletes objects one by one. The bulk call requires a
// checksum that not every store supports, and a task has few objects.
func (o *Outputs) DeletePrefix(ctx context.Context, name port.Bucket, prefix string) error {
	bucket, err := o.bucket(name)
	if err != nil {
		return err
	}
	if prefix == "" || !strings.HasSuffix(prefix, "/") {
		return fault.Invalid("prefix", "a prefix is not empty and ends in a slash")
	}
	objects := s3.NewListObjectsV2Paginator(o.s3, &s3.ListObjectsV2Input{Bucket: bucket, Prefix: &prefix})
	for objects.HasMorePages() {
		page, err := objects.NextPage(ctx)
		if err != nil {
			return named(err, "list outputs")
		}
		for _, object := range page.Contents {
			if err := o.delete(ctx, bucket, *object.Key); err != nil {
				return err
			}
		}
	}
	uploads := s3.NewListMultipartUploadsPaginator(o.s3, &s3.ListMultipartUploadsInput{Bucket: bucket, Prefix: &prefix})
	for uploads.HasMorePages() {
		page, err := uploads.NextPage(ctx)
		if err != nil {
			return named(err, "list unfinished uploads")
		}
		for _, upload := range page.Uploads {
			if err := o.abort(ctx, bucket, upload); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *Outputs) abort(ctx context.Context, bucket *string, upload types.MultipartUpload) error {
	_, err := o.s3.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
		Bucket: bucket, Key: upload.Key, UploadId: upload.UploadId,
	})
	if code(err) == "NoSuchUpload" {
		return nil
	}
	return gone(named(err, "abort an upload"))
}

// gone returns nil for "not found", and other errors unchanged.
func gone(err error) error {
	if errors.Is(err, port.ErrNotFound) {
		return nil
	}
	return err
}
