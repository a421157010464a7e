package s3

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"time"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/clock"
)

// uploadLife is how long an unfinished upload is kept: R2's default.
const uploadLife = 7 * 24 * time.Hour

// store is the backend. Methods that it does not implement answer
// NotImplemented.
type store struct {
	backend.BackendUnsupported
	catalog           *catalog
	blobs             *blobs
	clock             clock.Clock
	log               *slog.Logger
	uploads, accepted string
	owner, worker     string
}

var _ backend.Backend = (*store)(nil)

// clean removes what a crash left behind, and expired uploads.
func (s *store) clean(ctx context.Context) error {
	err := s.change(ctx, func(tx *sqlite.Tx) ([]string, error) {
		var old []string
		rows := tx.Query("SELECT id FROM uploads WHERE at < ?", s.clock.Now().Add(-uploadLife).UnixMilli())
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return nil, err
			}
			old = append(old, id)
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
		var free []string
		for _, id := range old {
			more, err := dropUpload(tx, id)
			if err != nil {
				return nil, err
			}
			free = append(free, more...)
		}
		return free, nil
	})
	if err != nil {
		return err
	}
	return s.catalog.db.Read(ctx, func(tx *sqlite.Tx) error {
		return s.blobs.sweep(func(name string) (bool, error) { return knows(tx, name) })
	})
}

// change commits the writes of do and removes the blobs that they freed.
func (s *store) change(ctx context.Context, do func(*sqlite.Tx) ([]string, error)) error {
	var free []string
	err := s.catalog.db.Write(ctx, func(tx *sqlite.Tx) (err error) {
		free, err = do(tx)
		return err
	})
	if err != nil {
		return s.named(err)
	}
	if err := s.blobs.remove(free); err != nil {
		// The next start removes them.
		s.log.Warn("cannot remove the bytes of a deleted object", "error", err)
	}
	return nil
}

// named returns errors of the S3 API unchanged, and logs others and returns
// InternalError.
func (s *store) named(err error) error {
	if err == nil {
		return nil
	}
	if api, ok := errors.AsType[s3err.S3Error](err); ok {
		return api
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled) {
		return s3err.GetAPIError(s3err.ErrIncompleteBody)
	}
	s.log.Error("the object store failed", "error", err)
	return s3err.GetAPIError(s3err.ErrInternalError)
}

// newID returns the id of a holder.
func newID() string { return rand.Text() }

// String returns the name of the backend.
func (s *store) String() string { return "sortie" }

func (s *store) has(bucket string) error {
	if bucket == s.uploads || bucket == s.accepted {
		return nil
	}
	return s3err.GetBucketErr(s3err.ErrNoSuchBucket, bucket)
}

// HeadBucket returns an error if the bucket does not exist.
func (s *store) HeadBucket(_ context.Context, in *awss3.HeadBucketInput) (*awss3.HeadBucketOutput, error) {
	return &awss3.HeadBucketOutput{}, s.has(*in.Bucket)
}

// ListBuckets lists the buckets that the account can access.
func (s *store) ListBuckets(_ context.Context, in s3response.ListBucketsInput) (s3response.ListAllMyBucketsResult, error) {
	result := s3response.ListAllMyBucketsResult{Owner: s3response.CanonicalUser{ID: in.Owner}}
	for _, name := range []string{s.accepted, s.uploads} {
		if in.IsAdmin || in.Owner == s.owner || name == s.uploads {
			result.Buckets.Bucket = append(result.Buckets.Bucket, s3response.ListAllMyBucketsEntry{Name: name, BucketRegion: Region})
		}
	}
	return result, nil
}

// GetBucketAcl returns an ACL for the owner only.
func (s *store) GetBucketAcl(_ context.Context, in *awss3.GetBucketAclInput) ([]byte, error) {
	if err := s.has(*in.Bucket); err != nil {
		return nil, err
	}
	return json.Marshal(auth.ACL{Owner: s.owner})
}

// GetBucketPolicy allows the worker's account in the uploads bucket.
func (s *store) GetBucketPolicy(_ context.Context, bucket string) ([]byte, error) {
	if err := s.has(bucket); err != nil {
		return nil, err
	}
	if bucket != s.uploads {
		return nil, s3err.GetAPIError(s3err.ErrNoSuchBucketPolicy)
	}
	return workerPolicy(bucket, s.worker)
}

// GetBucketVersioning reports that versioning is off.
func (s *store) GetBucketVersioning(_ context.Context, bucket string) (s3response.GetBucketVersioningOutput, error) {
	return s3response.GetBucketVersioningOutput{}, s.has(bucket)
}

// GetObjectLockConfiguration reports that there are no locks.
func (s *store) GetObjectLockConfiguration(context.Context, string) ([]byte, error) {
	return nil, s3err.GetAPIError(s3err.ErrObjectLockConfigurationNotFound)
}

// GetBucketCors reports that there are no CORS rules.
func (s *store) GetBucketCors(context.Context, string) ([]byte, error) {
	return nil, s3err.GetAPIError(s3err.ErrNoSuchCORSConfiguration)
}

// GetBucketOwnershipControls reports that ACLs are disabled.
func (s *store) GetBucketOwnershipControls(context.Context, string) (types.ObjectOwnership, error) {
	return types.ObjectOwnershipBucketOwnerEnforced, nil
}
