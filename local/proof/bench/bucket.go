package main

import (
	"context"
	"errors"
	"os"

	"github.com/sortie-dev/sortie/local/twin/s3"
)

// bucketServer is an object store for a worker without a stack.
type bucketServer struct {
	server *s3.Server
	folder string
	// env is the worker's environment for the store.
	env []string
}

func beginBucket() (*bucketServer, error) {
	folder, err := os.MkdirTemp("", "sortie-bench-")
	if err != nil {
		return nil, err
	}
	keys := s3.Keys{ID: "worker", Secret: "worker-secret"}
	server, err := s3.Start(context.Background(), s3.Config{
		Dir: folder, Uploads: "uploads", Accepted: "kept", Owner: s3.Keys{ID: "owner", Secret: "owner-secret"}, Worker: keys,
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return &bucketServer{server, folder, []string{
		"R2_ENDPOINT=" + server.URL(), "R2_ACCOUNT_ID=local", "R2_BUCKET=uploads",
		"R2_ACCESS_KEY_ID=" + keys.ID, "R2_SECRET_ACCESS_KEY=" + keys.Secret,
	}}, nil
}

func (b *bucketServer) end() error {
	return errors.Join(b.server.Stop(context.Background()), os.RemoveAll(b.folder))
}
