package worker

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// Clock is the time of a worker.
type Clock interface {
	// Now is the present.
	Now() time.Time
	// NewTimer gives a channel that gets the time after d, and what stops it.
	NewTimer(d time.Duration) (<-chan time.Time, func())
}

// Options are what a worker may choose. The zero value is good.
type Options struct {
	// HTTP makes the calls; nil is a client of its own. Its Timeout, if it has
	// one, bounds the uploads too.
	HTTP *http.Client
	// Clock is the host's where it is nil.
	Clock Clock
	// Jitter gives numbers from 0 up to 1, from anywhere at once; nil is
	// math/rand's.
	Jitter func() float64
	// Log is told of what goes wrong on the way; nil is nobody.
	Log *slog.Logger
	// WorkerID names the worker; empty is the host's name and a random part, so
	// that two processes never have the same.
	WorkerID string
	// Terminated is closed when the process is asked to stop (SIGTERM). Where it
	// is not nil, started says that this worker handles SIGTERM.
	Terminated <-chan struct{}
	// Usage are the figures that completed reports; nil reads those of this
	// process and of the processes that it has waited for.
	Usage func() contract.TaskMetrics
	// Patience is how long completed is tried where the envelope has no
	// deadline; 0 is an hour.
	Patience time.Duration
}

// withDefaults fills in what is not chosen. The second result ends what was
// made for it.
func (o Options) withDefaults() (Options, func()) {
	closing := func() {}
	if o.HTTP == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's own
		o.HTTP, closing = &http.Client{Transport: transport}, transport.CloseIdleConnections
	}
	if o.Clock == nil {
		o.Clock = hostClock{}
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
	if o.Patience == 0 {
		o.Patience = time.Hour
	}
	return o, closing
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
