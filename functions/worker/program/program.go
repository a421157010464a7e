// Package program connects the export worker to its bucket, for the main of the container image
// and for programs that run themselves again as the worker. See package worker.
package program

import (
	"context"
	"io"

	"github.com/sortie-dev/sortie/functions/worker"
	"github.com/sortie-dev/sortie/shared/adapter/r2"
)

// Main runs the export worker and returns its exit code; see worker.Main.
func Main(ctx context.Context, environ []string, stderr io.Writer) int {
	return worker.Main(ctx, environ, stderr, func(bucket worker.BucketAuth) (worker.Uploader, error) {
		return r2.NewUploader(r2.Config{
			Endpoint: bucket.Endpoint, AccountID: bucket.AccountID, Region: bucket.Region,
			AccessKeyID: bucket.AccessKeyID, SecretAccessKey: bucket.SecretAccessKey, Uploads: bucket.Bucket,
		})
	})
}
