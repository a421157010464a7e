package worker

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Options configure a worker. The zero value is valid.
type Options struct {
	// HTTP makes the calls and the uploads. Its Timeout limits both. 0 is best, because the SDK
	// sets a timeout for each call. nil selects a client that is closed with the Task.
	HTTP *http.Client
	// Clock is the time source; nil selects the system clock.
	Clock clock.Clock
	// Jitter returns numbers in [0, 1) and must be safe for concurrent use; nil
	// selects math/rand/v2.Float64.
	Jitter func() float64
	// Log receives failed and retried calls; nil discards them. No secret is
	// logged.
	Log *slog.Logger
	// WorkerID names this worker in every call. It must differ between processes.
	// Empty selects the host name with a random suffix.
	WorkerID string
	// Terminated is closed when the process is signalled to stop; the function
	// Terminated returns such a channel. If it is not nil, started announces
	// handlesSigterm.
	Terminated <-chan struct{}
	// SendsOutput means that the work writes its output to Task.Stdout and Task.Stderr, so that
	// clients can read it while the work runs.
	SendsOutput bool
	// Usage returns the resource figures that completed reports; nil selects the
	// function Usage.
	Usage func() contract.TaskMetrics
	// ReportTimeout limits the retries of started, completed and the callback if the envelope
	// has no deadline; 0 selects an hour.
	ReportTimeout time.Duration
	// ResultTimeout limits the retries of started, of completed and of each upload, counted
	// from the first try; 0 means until the attempt's deadline. It is for platforms that store
	// the exit code and start the attempt again.
	ResultTimeout time.Duration
}

// withDefaults replaces zero values with defaults. The returned function releases the resources
// that it has created.
func (o Options) withDefaults() (Options, func()) {
	release := func() {}
	if o.HTTP == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's own
		o.HTTP, release = &http.Client{Transport: transport}, transport.CloseIdleConnections
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Jitter == nil {
		o.Jitter = mathrand.Float64
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.WorkerID == "" {
		o.WorkerID = newWorkerID()
	}
	if o.Usage == nil {
		o.Usage = Usage
	}
	if o.ReportTimeout == 0 {
		o.ReportTimeout = time.Hour
	}
	return o, release
}

func newWorkerID() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "worker"
	}
	if len(host) > 63 {
		host = host[:63]
	}
	var random [4]byte
	_, _ = rand.Read(random[:])
	return host + "-" + hex.EncodeToString(random[:])
}
