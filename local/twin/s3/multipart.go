package s3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// minPart is the smallest part except the last: 5 MiB, as in S3 and R2.
const minPart = 5 << 20

// part is a row of parts.
type part struct {
	upload string
	number int32
	id     string
	size   int64
	etag   string
	at     time.Time
}

// CreateMultipartUpload starts a multipart upload.
func (s *store) CreateMultipartUpload(ctx context.Context, in s3response.CreateMultipartUploadInput) (s3response.InitiateMultipartUploadResult, error) {
	text, err := json.Marshal(headers{
		ContentType: aws.ToString(in.ContentType), ContentDisposition: aws.ToString(in.ContentDisposition),
		ContentEncoding: aws.ToString(in.ContentEncoding), ContentLanguage: aws.ToString(in.ContentLanguage),
		CacheControl: aws.ToString(in.CacheControl), Expires: aws.ToString(in.Expires), Metadata: in.Metadata,
	})
	if err != nil {
		return s3response.InitiateMultipartUploadResult{}, s.named(err)
	}
	id, now := uuid.NewString(), s.clock.Now()
	err = s.change(ctx, func(tx *sqlite.Tx) ([]string, error) {
		_, err := tx.Exec("INSERT INTO uploads (id, bucket, key, headers, at) VALUES (?, ?, ?, ?, ?)",
			id, *in.Bucket, *in.Key, string(text), now.UnixMilli())
		return nil, err
	})
	return s3response.InitiateMultipartUploadResult{Bucket: *in.Bucket, Key: *in.Key, UploadId: id}, err
}

// upload returns the headers of an unfinished upload, or NoSuchUpload.
func upload(tx *sqlite.Tx, bucket, key, id string) (headers, error) {
	var text string
	err := tx.QueryRow("SELECT headers FROM uploads WHERE id = ? AND bucket = ? AND key = ?", id, bucket, key).Scan(&text)
	if errors.Is(err, sqlite.ErrNoRow) {
		return headers{}, s3err.GetNoSuchUploadErr(id)
	}
	var h headers
	if err == nil {
		err = json.Unmarshal([]byte(text), &h)
	}
	return h, err
}

// UploadPart stores a part. It replaces an earlier part with the same number.
func (s *store) UploadPart(ctx context.Context, in *awss3.UploadPartInput) (*awss3.UploadPartOutput, error) {
	err := s.catalog.db.Read(ctx, func(tx *sqlite.Tx) error {
		_, err := upload(tx, *in.Bucket, *in.Key, *in.UploadId)
		return err
	})
	if err != nil {
		return nil, s.named(err)
	}
	written, err := s.take(in.Body, in.ContentLength)
	if err != nil {
		return nil, err
	}
	p := part{upload: *in.UploadId, number: *in.PartNumber, id: newID(), size: written.size, etag: written.md5, at: s.clock.Now()}
	err = s.change(ctx, func(tx *sqlite.Tx) ([]string, error) {
		return putPart(tx, *in.Bucket, *in.Key, p, []piece{{written.name, 0, written.size}})
	})
	if err != nil {
		s.drop(written)
		return nil, err
	}
	return &awss3.UploadPartOutput{ETag: aws.String(quoted(p.etag))}, nil
}

func putPart(tx *sqlite.Tx, bucket, key string, p part, pieces []piece) (free []string, err error) {
	if _, err := upload(tx, bucket, key, p.upload); err != nil {
		return nil, err
	}
	if err := savePieces(tx, p.id, pieces); err != nil {
		return nil, err
	}
	var old string
	err = tx.QueryRow("DELETE FROM parts WHERE upload = ? AND number = ? RETURNING id", p.upload, p.number).Scan(&old)
	switch {
	case err == nil:
		free, err = release(tx, old)
	case errors.Is(err, sqlite.ErrNoRow):
		err = nil
	}
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec("INSERT INTO parts (upload, number, id, size, etag, at) VALUES (?, ?, ?, ?, ?, ?)",
		p.upload, p.number, p.id, p.size, p.etag, p.at.UnixMilli())
	return free, err
}

// parts returns the parts of an upload in order.
func parts(tx *sqlite.Tx, upload string) ([]part, error) {
	var all []part
	rows := tx.Query("SELECT number, id, size, etag, at FROM parts WHERE upload = ? ORDER BY number", upload)
	for rows.Next() {
		p := part{upload: upload}
		var at int64
		if err := rows.Scan(&p.number, &p.id, &p.size, &p.etag, &at); err != nil {
			return nil, err
		}
		p.at = time.UnixMilli(at).UTC()
		all = append(all, p)
	}
	return all, rows.Err()
}

// CompleteMultipartUpload creates an object from the listed parts.
func (s *store) CompleteMultipartUpload(ctx context.Context, in *awss3.CompleteMultipartUploadInput) (s3response.CompleteMultipartUploadResult, string, error) {
	if in.MultipartUpload == nil || len(in.MultipartUpload.Parts) == 0 {
		return s3response.CompleteMultipartUploadResult{}, "", s3err.GetAPIError(s3err.ErrMalformedXML)
	}
	o := object{bucket: *in.Bucket, key: *in.Key, id: newID(), at: s.clock.Now()}
	err := s.change(ctx, func(tx *sqlite.Tx) ([]string, error) {
		var err error
		if o.headers, err = upload(tx, o.bucket, o.key, *in.UploadId); err != nil {
			return nil, err
		}
		old, exists, err := find(tx, o.bucket, o.key)
		if err != nil {
			return nil, err
		}
		if err := backend.EvaluateObjectPutPreconditions(old.etag, in.IfMatch, in.IfNoneMatch, exists); err != nil {
			return nil, err
		}
		pieces, err := assemble(tx, in, &o)
		if err != nil {
			return nil, err
		}
		// Hold the pieces before their parts are released.
		if err := savePieces(tx, o.id, pieces); err != nil {
			return nil, err
		}
		free, err := dropUpload(tx, *in.UploadId)
		if err != nil {
			return nil, err
		}
		more, err := put(tx, o, nil)
		return append(free, more...), err
	})
	if err != nil {
		return s3response.CompleteMultipartUploadResult{}, "", err
	}
	return s3response.CompleteMultipartUploadResult{Bucket: in.Bucket, Key: in.Key, ETag: aws.String(quoted(o.etag))}, "", nil
}

// assemble checks the listed parts against the stored ones. It sets the size and ETag of o and
// returns its pieces.
func assemble(tx *sqlite.Tx, in *awss3.CompleteMultipartUploadInput, o *object) ([]piece, error) {
	there, err := parts(tx, *in.UploadId)
	if err != nil {
		return nil, err
	}
	byNumber := map[int32]part{}
	for _, p := range there {
		byNumber[p.number] = p
	}
	last := int32(0)
	for _, named := range in.MultipartUpload.Parts {
		if aws.ToInt32(named.PartNumber) <= last {
			return nil, s3err.GetAPIError(s3err.ErrInvalidPartOrder)
		}
		last = *named.PartNumber
	}
	var all []piece
	o.size = 0
	for _, named := range in.MultipartUpload.Parts {
		p, ok := byNumber[*named.PartNumber]
		if !ok || !backend.AreEtagsSame(aws.ToString(named.ETag), p.etag) {
			return nil, s3err.GetInvalidPartErr(*in.UploadId, *named.PartNumber, aws.ToString(named.ETag))
		}
		if p.number != last && p.size < minPart {
			return nil, s3err.GetEntityTooSmallErr(p.size, minPart)
		}
		pieces, err := held(tx, p.id)
		if err != nil {
			return nil, err
		}
		all = append(all, pieces...)
		o.size += p.size
	}
	etag, err := backend.ComputeMultipartETagFromPartETags(in.MultipartUpload.Parts)
	if err != nil {
		return nil, fmt.Errorf("cannot compute the ETag: %w", err)
	}
	o.etag = *backend.TrimEtag(&etag)
	return all, nil
}

// AbortMultipartUpload removes an upload.
func (s *store) AbortMultipartUpload(ctx context.Context, in *awss3.AbortMultipartUploadInput) error {
	return s.change(ctx, func(tx *sqlite.Tx) ([]string, error) {
		if _, err := upload(tx, *in.Bucket, *in.Key, *in.UploadId); err != nil {
			return nil, err
		}
		return dropUpload(tx, *in.UploadId)
	})
}

// dropUpload removes an upload and its parts. It returns the blobs that are no longer used.
func dropUpload(tx *sqlite.Tx, id string) (free []string, err error) {
	all, err := parts(tx, id)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec("DELETE FROM parts WHERE upload = ?", id); err != nil {
		return nil, err
	}
	for _, p := range all {
		more, err := release(tx, p.id)
		if err != nil {
			return nil, err
		}
		free = append(free, more...)
	}
	_, err = tx.Exec("DELETE FROM uploads WHERE id = ?", id)
	return free, err
}
