package s3

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/versity/versitygw/s3err"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// uploadLife is how long an unfinished upload is kept: R2's default.
const uploadLife = 7 * 24 * time.Hour

// store has the objects. Its methods are the operations of the API.
type store struct {
	catalog           *catalog
	blobs             *blobs
	clock             clock.Clock
	log               *slog.Logger
	uploads, accepted string
	// owner is the id of the account that owns the buckets.
	owner string
}

// clean removes the remains of a crash, and expired uploads.
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
		// The next start removes the blobs.
		s.log.Warn("cannot remove the bytes of a deleted object", "error", err)
	}
	return nil
}

// named returns an error of the S3 API unchanged. It logs any other error and returns
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

// newID returns a random id for an object, a part or an upload.
func newID() string { return rand.Text() }

func (s *store) has(bucket string) error {
	if bucket == s.uploads || bucket == s.accepted {
		return nil
	}
	return s3err.GetBucketErr(s3err.ErrNoSuchBucket, bucket)
}
