// Package program is the export worker with its bucket wired in: a whole
// program, for the container image's main and for any other program that runs
// itself again as the worker.
//
// It wires and decides nothing. See package worker for what it does.
package program

import (
	"context"
	"io"

	"github.com/sortie-dev/sortie/functions/worker"
	"github.com/sortie-dev/sortie/shared/adapter/r2"
)

// Main runs the export worker in this process until it ends, and gives the
// exit code: see worker.Main.
func Main(ctx context.Context, environ []string, stderr io.Writer) int {
	return worker.Main(ctx, environ, stderr, func(bucket worker.BucketAuth) (worker.Uploader, error) {
		return r2.NewUploader(r2.Config{
			Endpoint: bucket.Endpoint, AccountID: bucket.AccountID, Region: bucket.Region,
			AccessKeyID: bucket.AccessKeyID, SecretAccessKey: bucket.SecretAccessKey, Uploads: bucket.Bucket,
		})
	})
}
