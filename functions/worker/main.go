package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"

	"github.com/sortie-dev/sortie/shared/adapter/r2"
	"github.com/sortie-dev/sortie/shared/base/clock"
	sdk "github.com/sortie-dev/sortie/shared/sdk/go/worker"
)

// The exit codes.
const (
	exitDone    = 0
	exitFailed  = 1
	exitStopped = 128 + int(syscall.SIGTERM)
)

// Connect returns the uploader for a bucket.
type Connect func(BucketAuth) (Uploader, error)

// Main runs the export worker with the bucket of its environment and returns the exit code.
func Main(ctx context.Context, environ []string, stderr io.Writer) int {
	return MainWith(ctx, environ, stderr, func(bucket BucketAuth) (Uploader, error) {
		return r2.NewUploader(r2.Config{
			Endpoint: bucket.Endpoint, AccountID: bucket.AccountID, Region: bucket.Region,
			AccessKeyID: bucket.AccessKeyID, SecretAccessKey: bucket.SecretAccessKey, Uploads: bucket.Bucket,
		})
	})
}

// MainWith runs the export worker with the uploader of connect and returns the exit code. It reads the environment, exports
// until the end, a cancel, a signal or the end of ctx, and logs JSON lines to stderr.
func MainWith(ctx context.Context, environ []string, stderr io.Writer, connect Connect) int {
	terminated, stop := sdk.Terminated()
	defer stop()
	config, invalid := ParseConfig(environ)
	log := slog.New(slog.NewJSONHandler(stderr, nil)).With("task_id", config.TaskID, "batch_id", config.BatchID)
	if config.MachineID != "" {
		log = log.With("machine_id", config.MachineID)
	}
	ports := Ports{
		HTTP: httpClient(config.Options.ParallelBatchSize), Clock: clock.System{}, Jitter: rand.Float64,
		PeakMemory: sdk.PeakMemory, Log: log, Terminated: terminated,
	}
	defer ports.HTTP.CloseIdleConnections()
	var err error
	if invalid == nil && config.Bucket.HasCredentials() {
		ports.Outputs, invalid = connect(config.Bucket)
	}
	if invalid != nil {
		log.ErrorContext(ctx, "invalid environment", "problems", strings.Split(invalid.Error(), "\n"))
		err = ReportInvalid(ctx, config, ports, invalid)
	} else {
		err = Run(ctx, config, ports)
	}
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil, errors.Is(err, sdk.ErrTerminated), errors.Is(err, sdk.ErrCancelled):
		return exitStopped
	}
	return exitFailed
}

// httpClient returns a client that keeps a connection for each entity in flight.
func httpClient(batch int) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's own
	transport.MaxIdleConnsPerHost = batch + 1
	transport.ReadBufferSize, transport.WriteBufferSize = 4<<10, 4<<10
	return &http.Client{Transport: transport}
}
