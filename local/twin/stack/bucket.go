package stack

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/sortie-dev/sortie/local/twin/s3"
)

func (s *Stack) startBucket(ctx context.Context) error {
	listener, err := s.memory.listen(partS3, "127.0.0.1:0")
	if err != nil {
		return err
	}
	// The server listens itself. This listener only finds a free port.
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return fmt.Errorf("cannot release the port of the object store: %w", err)
	}
	s.bucket, err = s3.Start(ctx, s3.Config{
		Dir: filepath.Join(s.addresses.Data, "s3"), Addr: addr, Uploads: bucketUploads, Accepted: bucketAccepted,
		Owner: s.bucketKeys(secretOwner), Worker: s.bucketKeys(secretWorker), Clock: s.clock, Log: s.config.Log,
	})
	if err != nil {
		return fmt.Errorf("cannot start the object store: %w", err)
	}
	s.addresses.S3, s.addresses.Bucket = s.bucket.URL(), bucketUploads
	return nil
}

func (s *Stack) bucketKeys(name string) s3.Keys {
	return s3.Keys{ID: s.memory.secret(name+"-id", 10), Secret: s.memory.secret(name+"-secret", 20)}
}
