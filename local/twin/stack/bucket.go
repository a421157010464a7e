package stack

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/sortie-dev/sortie/local/twin/s3"
)

func (s *Stack) startBucket(ctx context.Context) error {
	previous := s.memory.address(partS3)
	if host, _, err := net.SplitHostPort(previous); err != nil || !sameHost(host, s.loopback) {
		previous = ""
	}
	bucket, err := s3.Start(ctx, s3.Config{
		Dir: filepath.Join(s.addresses.Data, "s3"), Addr: net.JoinHostPort(s.loopback, "0"), Previous: previous, Uploads: bucketUploads, Accepted: bucketAccepted,
		Owner: s.bucketKeys(secretOwner), Worker: s.bucketKeys(secretWorker), Clock: s.clock, Log: s.config.Log,
	})
	if err != nil {
		return fmt.Errorf("cannot start the object store: %w", err)
	}
	s.bucket = bucket
	s.memory.remember(partS3, strings.TrimPrefix(bucket.URL(), "http://"))
	s.addresses.S3, s.addresses.Bucket = s.bucket.URL(), bucketUploads
	return nil
}

func (s *Stack) bucketKeys(name string) s3.Keys {
	return s3.Keys{ID: s.memory.secret(name+"-id", 10), Secret: s.memory.secret(name+"-secret", 20)}
}
