package s3

import (
	"context"
	"crypto/md5" //nolint:gosec // only to make an opaque ETag of the shape that S3 has
	"encoding/hex"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// copyLimit is the largest copy: 5 GiB, as in S3 and R2.
const copyLimit = 5 << 30

func conditions(match, noneMatch *string, modified, unmodified *time.Time) backend.PreConditions {
	return backend.PreConditions{IfMatch: match, IfNoneMatch: noneMatch, IfModSince: modified, IfUnmodeSince: unmodified}
}

// CopyObject copies an object if the source's conditions are met.
func (s *store) CopyObject(ctx context.Context, in s3response.CopyObjectInput) (s3response.CopyObjectOutput, error) {
	bucket, key, _, err := backend.ParseCopySource(*in.CopySource)
	if err != nil {
		return s3response.CopyObjectOutput{}, err
	}
	replace := in.MetadataDirective == types.MetadataDirectiveReplace
	if bucket == *in.Bucket && key == *in.Key && !replace {
		return s3response.CopyObjectOutput{}, s3err.GetAPIError(s3err.ErrInvalidCopyDest)
	}
	now, id := s.clock.Now(), newID()
	var to object
	err = s.change(ctx, func(tx *sqlite.Tx) ([]string, error) {
		from, err := s.source(tx, bucket, key, conditions(in.CopySourceIfMatch, in.CopySourceIfNoneMatch,
			in.CopySourceIfModifiedSince, in.CopySourceIfUnmodifiedSince))
		if err != nil {
			return nil, err
		}
		pieces, err := held(tx, from.id)
		if err != nil {
			return nil, err
		}
		to = from
		to.bucket, to.key, to.id, to.at = *in.Bucket, *in.Key, id, now
		if replace {
			to.headers = headers{
				ContentType: aws.ToString(in.ContentType), ContentDisposition: aws.ToString(in.ContentDisposition),
				ContentEncoding: aws.ToString(in.ContentEncoding), ContentLanguage: aws.ToString(in.ContentLanguage),
				CacheControl: aws.ToString(in.CacheControl), Expires: aws.ToString(in.Expires), Metadata: in.Metadata,
			}
		}
		// Hold before release: both may use the same blobs.
		if err := savePieces(tx, id, pieces); err != nil {
			return nil, err
		}
		return put(tx, to, nil)
	})
	if err != nil {
		return s3response.CopyObjectOutput{}, err
	}
	return s3response.CopyObjectOutput{CopyObjectResult: &s3response.CopyObjectResult{
		ETag: aws.String(quoted(to.etag)), LastModified: &to.at,
	}}, nil
}

// source returns the object to copy.
func (s *store) source(tx *sqlite.Tx, bucket, key string, wanted backend.PreConditions) (object, error) {
	from, err := s.existing(tx, bucket, key)
	if err != nil {
		return object{}, err
	}
	return from, backend.EvaluatePreconditions(from.etag, from.at, wanted)
}

// UploadPartCopy copies a range of an object into a part.
func (s *store) UploadPartCopy(ctx context.Context, in *awss3.UploadPartCopyInput) (s3response.CopyPartResult, error) {
	bucket, key, _, err := backend.ParseCopySource(*in.CopySource)
	if err != nil {
		return s3response.CopyPartResult{}, err
	}
	p := part{upload: *in.UploadId, number: *in.PartNumber, id: newID(), at: s.clock.Now()}
	err = s.change(ctx, func(tx *sqlite.Tx) ([]string, error) {
		from, err := s.source(tx, bucket, key, conditions(in.CopySourceIfMatch, in.CopySourceIfNoneMatch,
			in.CopySourceIfModifiedSince, in.CopySourceIfUnmodifiedSince))
		if err != nil {
			return nil, err
		}
		offset, length, err := backend.ParseCopySourceRange(from.size, aws.ToString(in.CopySourceRange))
		if err != nil {
			return nil, err
		}
		if p.size = min(length, from.size-offset); p.size > copyLimit {
			return nil, s3err.GetCopySourceObjectTooLargeErr(copyLimit)
		}
		pieces, err := held(tx, from.id)
		if err != nil {
			return nil, err
		}
		sum := md5.Sum(fmt.Appendf(nil, "%s %d %d", from.etag, offset, p.size)) //nolint:gosec // see the import
		p.etag = hex.EncodeToString(sum[:])
		return putPart(tx, *in.Bucket, *in.Key, p, cut(pieces, offset, p.size))
	})
	if err != nil {
		return s3response.CopyPartResult{}, err
	}
	return s3response.CopyPartResult{ETag: aws.String(quoted(p.etag)), LastModified: p.at}, nil
}
