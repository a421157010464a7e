package s3

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3response"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// page is a page of a listing.
type page struct {
	objects  []s3response.Object
	prefixes []types.CommonPrefix
	more     bool
	// last is the marker of the next page.
	last string
}

// list reads the keys with the prefix after the marker, in byte order. Keys
// that share a prefix up to the delimiter count as one.
func (s *store) list(ctx context.Context, bucket, prefix, delimiter, marker string, limit int32) (page, error) {
	var p page
	err := s.catalog.db.Read(ctx, func(tx *sqlite.Tx) error {
		if err := s.has(bucket); err != nil {
			return err
		}
		rows := tx.Query("SELECT "+objectColumns+" FROM objects WHERE bucket = ? AND key > ? AND key >= ? ORDER BY key", bucket, marker, prefix)
		defer rows.Close()
		for rows.Next() {
			o, err := scanObject(rows.Scan)
			if err != nil {
				return err
			}
			if !strings.HasPrefix(o.key, prefix) {
				return nil // no later key has the prefix
			}
			name, common := o.key, false
			if delimiter != "" {
				if i := strings.Index(o.key[len(prefix):], delimiter); i >= 0 {
					name, common = o.key[:len(prefix)+i+len(delimiter)], true
				}
			}
			if common && name == p.last || common && marker != "" && name == marker {
				continue
			}
			if len(p.objects)+len(p.prefixes) == int(limit) {
				p.more = true
				return nil
			}
			if p.last = name; common {
				p.prefixes = append(p.prefixes, types.CommonPrefix{Prefix: &name})
				continue
			}
			p.objects = append(p.objects, s3response.Object{
				Key: &o.key, Size: &o.size, ETag: aws.String(quoted(o.etag)), LastModified: &o.at,
				StorageClass: types.ObjectStorageClassStandard,
			})
		}
		return rows.Err()
	})
	return p, s.named(err)
}

// ListObjectsV2 lists objects, page by page.
func (s *store) ListObjectsV2(ctx context.Context, in *awss3.ListObjectsV2Input) (s3response.ListObjectsV2Result, error) {
	marker := max(aws.ToString(in.ContinuationToken), aws.ToString(in.StartAfter))
	p, err := s.list(ctx, *in.Bucket, aws.ToString(in.Prefix), aws.ToString(in.Delimiter), marker, *in.MaxKeys)
	if err != nil {
		return s3response.ListObjectsV2Result{}, err
	}
	count := int32(len(p.objects) + len(p.prefixes)) //nolint:gosec // at most MaxKeys
	result := s3response.ListObjectsV2Result{
		Name: in.Bucket, Prefix: in.Prefix, StartAfter: in.StartAfter, ContinuationToken: in.ContinuationToken,
		MaxKeys: in.MaxKeys, Delimiter: in.Delimiter, KeyCount: &count,
		IsTruncated: &p.more, Contents: p.objects, CommonPrefixes: p.prefixes, EncodingType: in.EncodingType,
	}
	if p.more {
		result.NextContinuationToken = &p.last
	}
	return result, nil
}

// ListObjects implements the older form of ListObjectsV2.
func (s *store) ListObjects(ctx context.Context, in *awss3.ListObjectsInput) (s3response.ListObjectsResult, error) {
	p, err := s.list(ctx, *in.Bucket, aws.ToString(in.Prefix), aws.ToString(in.Delimiter), aws.ToString(in.Marker), *in.MaxKeys)
	if err != nil {
		return s3response.ListObjectsResult{}, err
	}
	result := s3response.ListObjectsResult{
		Name: in.Bucket, Prefix: in.Prefix, Marker: in.Marker, MaxKeys: in.MaxKeys, Delimiter: in.Delimiter,
		IsTruncated: &p.more, Contents: p.objects, CommonPrefixes: p.prefixes, EncodingType: in.EncodingType,
	}
	if p.more {
		result.NextMarker = &p.last
	}
	return result, nil
}

// ListMultipartUploads lists unfinished uploads.
func (s *store) ListMultipartUploads(ctx context.Context, in *awss3.ListMultipartUploadsInput) (s3response.ListMultipartUploadsResult, error) {
	prefix, marker := aws.ToString(in.Prefix), aws.ToString(in.KeyMarker)
	after := aws.ToString(in.UploadIdMarker)
	var all []s3response.Upload
	err := s.catalog.db.Read(ctx, func(tx *sqlite.Tx) error {
		if err := s.has(*in.Bucket); err != nil {
			return err
		}
		rows := tx.Query("SELECT key, id, at FROM uploads WHERE bucket = ? AND key >= ? ORDER BY key, at, id", *in.Bucket, max(prefix, marker))
		for rows.Next() {
			var u s3response.Upload
			var at int64
			if err := rows.Scan(&u.Key, &u.UploadID, &at); err != nil {
				return err
			}
			// The uploads of the marker's key are listed again only with an upload id marker.
			if !strings.HasPrefix(u.Key, prefix) || after == "" && marker != "" && u.Key == marker {
				continue
			}
			u.Initiated, u.StorageClass = time.UnixMilli(at).UTC(), types.StorageClassStandard
			all = append(all, u)
		}
		return rows.Err()
	})
	if err != nil {
		return s3response.ListMultipartUploadsResult{}, s.named(err)
	}
	found, err := backend.ListMultipartUploads(all, prefix, aws.ToString(in.Delimiter), marker, after, int(aws.ToInt32(in.MaxUploads)))
	if err != nil {
		return s3response.ListMultipartUploadsResult{}, err
	}
	return s3response.ListMultipartUploadsResult{
		Bucket: *in.Bucket, Prefix: prefix, KeyMarker: marker, UploadIDMarker: after, Delimiter: aws.ToString(in.Delimiter),
		MaxUploads: int(aws.ToInt32(in.MaxUploads)), IsTruncated: found.IsTruncated, Uploads: found.Uploads,
		CommonPrefixes: found.CommonPrefixes, NextKeyMarker: found.NextKeyMarker, NextUploadIDMarker: found.NextUploadIDMarker,
	}, nil
}

// ListParts lists the parts of an unfinished upload.
func (s *store) ListParts(ctx context.Context, in *awss3.ListPartsInput) (s3response.ListPartsResult, error) {
	result := s3response.ListPartsResult{
		Bucket: *in.Bucket, Key: *in.Key, UploadID: *in.UploadId, MaxParts: int(aws.ToInt32(in.MaxParts)),
		StorageClass: types.StorageClassStandard,
	}
	err := s.catalog.db.Read(ctx, func(tx *sqlite.Tx) error {
		if _, err := upload(tx, *in.Bucket, *in.Key, *in.UploadId); err != nil {
			return err
		}
		all, err := parts(tx, *in.UploadId)
		for _, p := range all {
			result.Parts = append(result.Parts, s3response.Part{
				PartNumber: int(p.number), ETag: quoted(p.etag), Size: p.size, LastModified: p.at,
			})
		}
		return err
	})
	return result, s.named(err)
}
