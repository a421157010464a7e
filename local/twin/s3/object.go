package s3

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// PutObject stores a body if it is complete and the conditions are met.
func (s *store) PutObject(ctx context.Context, in s3response.PutObjectInput) (s3response.PutObjectOutput, error) {
	written, err := s.take(in.Body, in.ContentLength)
	if err != nil {
		return s3response.PutObjectOutput{}, err
	}
	o := object{
		bucket: *in.Bucket, key: *in.Key, id: newID(), size: written.size, etag: written.md5, at: s.clock.Now(),
		headers: headers{
			ContentType: aws.ToString(in.ContentType), ContentDisposition: aws.ToString(in.ContentDisposition),
			ContentEncoding: aws.ToString(in.ContentEncoding), ContentLanguage: aws.ToString(in.ContentLanguage),
			CacheControl: aws.ToString(in.CacheControl), Expires: aws.ToString(in.Expires), Metadata: in.Metadata,
		},
	}
	err = s.change(ctx, func(tx *sqlite.Tx) ([]string, error) {
		old, exists, err := find(tx, o.bucket, o.key)
		if err != nil {
			return nil, err
		}
		if err := backend.EvaluateObjectPutPreconditions(old.etag, in.IfMatch, in.IfNoneMatch, exists); err != nil {
			return nil, err
		}
		return put(tx, o, []piece{{written.name, 0, written.size}})
	})
	if err != nil {
		s.drop(written)
		return s3response.PutObjectOutput{}, err
	}
	return s3response.PutObjectOutput{ETag: quoted(o.etag), Size: &o.size}, nil
}

// take writes a body to a blob. It returns IncompleteBody if the length differs from the
// announced one.
func (s *store) take(body io.Reader, length *int64) (blob, error) {
	written, err := s.blobs.write(body)
	if err != nil {
		return blob{}, s.named(err)
	}
	if length != nil && written.size != *length {
		s.drop(written)
		return blob{}, s3err.GetAPIError(s3err.ErrIncompleteBody)
	}
	return written, nil
}

// drop removes a blob that was not added to the catalog.
func (s *store) drop(written blob) {
	if err := s.blobs.remove([]string{written.name}); err != nil {
		s.log.Warn("cannot remove the bytes of a failed upload", "error", err)
	}
}

func quoted(etag string) string { return `"` + etag + `"` }

// HeadObject returns an object's metadata.
func (s *store) HeadObject(ctx context.Context, in *awss3.HeadObjectInput) (*awss3.HeadObjectOutput, error) {
	var o object
	err := s.catalog.db.Read(ctx, func(tx *sqlite.Tx) (err error) {
		o, err = s.existing(tx, *in.Bucket, *in.Key)
		return err
	})
	if err != nil {
		return nil, s.named(err)
	}
	if err := backend.EvaluatePreconditions(o.etag, o.at, conditions(in.IfMatch, in.IfNoneMatch, in.IfModifiedSince, in.IfUnmodifiedSince)); err != nil {
		return nil, err
	}
	offset, length, part, err := backend.ParseObjectRange(o.size, aws.ToString(in.Range))
	if err != nil {
		return nil, err
	}
	return &awss3.HeadObjectOutput{
		AcceptRanges: aws.String("bytes"), ContentLength: &length, ContentRange: contentRange(part, offset, length, o.size),
		ETag: aws.String(quoted(o.etag)), LastModified: &o.at, Metadata: o.headers.Metadata,
		ContentType: some(o.headers.ContentType), ContentDisposition: some(o.headers.ContentDisposition),
		ContentEncoding: some(o.headers.ContentEncoding), ContentLanguage: some(o.headers.ContentLanguage),
		CacheControl: some(o.headers.CacheControl), ExpiresString: some(o.headers.Expires), StorageClass: types.StorageClassStandard,
	}, nil
}

// GetObject returns an object or a range of it.
func (s *store) GetObject(ctx context.Context, in *awss3.GetObjectInput) (*awss3.GetObjectOutput, error) {
	head := &awss3.HeadObjectInput{
		Bucket: in.Bucket, Key: in.Key, Range: in.Range, IfMatch: in.IfMatch, IfNoneMatch: in.IfNoneMatch,
		IfModifiedSince: in.IfModifiedSince, IfUnmodifiedSince: in.IfUnmodifiedSince,
	}
	for {
		told, err := s.HeadObject(ctx, head)
		if err != nil {
			return nil, err
		}
		body, etag, err := s.open(ctx, *in.Bucket, *in.Key, aws.ToString(in.Range))
		if err != nil {
			return nil, s.named(err)
		}
		if quoted(etag) != *told.ETag { // the object was replaced in between
			if err := body.Close(); err != nil {
				return nil, s.named(err)
			}
			continue
		}
		return &awss3.GetObjectOutput{
			Body: body, AcceptRanges: told.AcceptRanges, ContentLength: told.ContentLength, ContentRange: told.ContentRange,
			ETag: told.ETag, LastModified: told.LastModified, Metadata: told.Metadata, ContentType: told.ContentType,
			ContentDisposition: told.ContentDisposition, ContentEncoding: told.ContentEncoding,
			ContentLanguage: told.ContentLanguage, CacheControl: told.CacheControl, ExpiresString: told.ExpiresString,
			StorageClass: told.StorageClass,
		}, nil
	}
}

func (s *store) open(ctx context.Context, bucket, key, span string) (io.ReadCloser, string, error) {
	var o object
	pieces, err := s.blobs.pin(func() (pieces []piece, err error) {
		err = s.catalog.db.Read(ctx, func(tx *sqlite.Tx) error {
			if o, err = s.existing(tx, bucket, key); err != nil {
				return err
			}
			pieces, err = held(tx, o.id)
			return err
		})
		if err != nil {
			return nil, err
		}
		offset, length, _, err := backend.ParseObjectRange(o.size, span)
		return cut(pieces, offset, length), err
	})
	if err != nil {
		return nil, "", err
	}
	return &reader{blobs: s.blobs, all: pieces, rest: pieces}, o.etag, nil
}

// existing is like find, but returns NoSuchKey or NoSuchBucket for a missing object.
func (s *store) existing(tx *sqlite.Tx, bucket, key string) (object, error) {
	if err := s.has(bucket); err != nil {
		return object{}, err
	}
	o, exists, err := find(tx, bucket, key)
	if err == nil && !exists {
		err = s3err.GetAPIError(s3err.ErrNoSuchKey)
	}
	return o, err
}

func contentRange(part bool, offset, length, size int64) *string {
	if !part {
		return nil
	}
	return aws.String(fmt.Sprintf("bytes %d-%d/%s", offset, offset+length-1, strconv.FormatInt(size, 10)))
}

func some(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// DeleteObject removes an object if the condition is met. It returns no error for a missing
// object.
func (s *store) DeleteObject(ctx context.Context, in *awss3.DeleteObjectInput) (*awss3.DeleteObjectOutput, error) {
	return &awss3.DeleteObjectOutput{}, s.change(ctx, func(tx *sqlite.Tx) ([]string, error) {
		old, exists, err := find(tx, *in.Bucket, *in.Key)
		if err != nil || !exists {
			return nil, err
		}
		if in.IfMatch != nil && *in.IfMatch != "*" && !backend.AreEtagsSame(*in.IfMatch, old.etag) {
			return nil, s3err.GetPreconditionFailedErr(s3err.ConditionIfMatch)
		}
		return remove(tx, *in.Bucket, *in.Key)
	})
}

// DeleteObjects removes several objects.
func (s *store) DeleteObjects(ctx context.Context, in *awss3.DeleteObjectsInput) (s3response.DeleteResult, error) {
	var result s3response.DeleteResult
	if in.Delete == nil {
		return result, s3err.GetAPIError(s3err.ErrMalformedXML)
	}
	err := s.change(ctx, func(tx *sqlite.Tx) ([]string, error) {
		var free []string
		result = s3response.DeleteResult{}
		for _, each := range in.Delete.Objects {
			more, err := remove(tx, *in.Bucket, aws.ToString(each.Key))
			if err != nil {
				return nil, err
			}
			free = append(free, more...)
			result.Deleted = append(result.Deleted, types.DeletedObject{Key: each.Key})
		}
		return free, nil
	})
	return result, err
}
