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
	"time"

	sdk "github.com/sortie-dev/sortie/shared/worker"
)

// The exit codes.
const (
	exitDone    = 0
	exitFailed  = 1
	exitStopped = 128 + int(syscall.SIGTERM)
)

// Connect opens the bucket.
type Connect func(BucketAuth) (Uploader, error)

// Main is the whole program: it reads the environment, runs until the end, the
// context's end, a cancel or a signal, logs JSON lines to stderr and gives the exit
// code.
func Main(ctx context.Context, environ []string, stderr io.Writer, connect Connect) int {
	terminated, stop := sdk.Terminated()
	defer stop()
	config, invalid := ParseConfig(environ)
	log := slog.New(slog.NewJSONHandler(stderr, nil)).With("task_id", config.TaskID, "batch_id", config.BatchID)
	if config.MachineID != "" {
		log = log.With("machine_id", config.MachineID)
	}
	ports := Ports{
		HTTP: httpClient(config.Options.ParallelBatchSize), Clock: hostClock{}, Jitter: rand.Float64,
		PeakMemory: sdk.PeakMemory, Log: log, Terminated: terminated,
	}
	defer ports.HTTP.CloseIdleConnections()
	var err error
	if invalid == nil && config.Bucket.Open() {
		ports.Outputs, invalid = connect(config.Bucket)
	}
	if invalid != nil {
		log.ErrorContext(ctx, "the environment is not valid", "problems", strings.Split(invalid.Error(), "\n"))
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

// httpClient keeps a connection for each entity in flight.
func httpClient(batch int) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's own
	transport.MaxIdleConnsPerHost = batch + 1
	transport.ReadBufferSize, transport.WriteBufferSize = 4<<10, 4<<10
	return &http.Client{Transport: transport}
}

// hostClock is the host's clock.
type hostClock struct{}

func (hostClock) Now() time.Time { return time.Now() }

func (hostClock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
