package orchestrator

import (
	"context"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Ports are what the use cases stand on. A handler that needs only some of
// them leaves the others nil; the doc of a use case says which it needs where
// they are not all of Store, Clock and Log.
type Ports struct {
	Store      port.Store
	Executions port.Executions
	Runner     port.Runner
	Outputs    port.Outputs
	Signer     port.Signer
	Publisher  port.Publisher
	Clock      clock.Clock
	Log        *slog.Logger
	// Roll gives random numbers, 0 <= n < 1.
	Rand func() float64
	// Probe calls this Sortie as a worker would, at its public address; an error
	// says that it could not be reached. nil where who sweeps is the process that
	// receives.
	Probe func(ctx context.Context) error
	// Hex gives n random bytes in hexadecimal.
	Hex func(n int) string
}

// Config is what the use cases are told. Zero values are not defaults: whoever
// wires a process sets every field.
type Config struct {
	// Policy is what a run is held to that asks for nothing else.
	Policy run.Policy
	// Pool names the pool of every run, and MaxMachines is its limit; 0 is
	// no limit.
	Pool        string
	MaxMachines int
	// Image, Region, CPUs and MemoryMB (a multiple of 256) make the machine.
	Image    string
	Region   string
	CPUs     int
	MemoryMB int
	// PublicURL is where workers reach this Sortie, SourceURL where they read.
	PublicURL string
	SourceURL string
	// Bucket is what the worker gets to write with. CurrentBucket, where it is
	// set, is asked at each launch instead, so that the keys may change while
	// the process lives.
	Bucket        WorkerBucket
	CurrentBucket func(ctx context.Context) (WorkerBucket, error)
	// TokenTTL is how long a worker's token is good, at most 2 hours; one whose
	// run has a longer start limit covers that.
	TokenTTL time.Duration
	// RedirectOver is the size in bytes above which a download is redirected
	// to the bucket; 0 never redirects. PresignFor is how long such a URL is
	// good.
	RedirectOver int64
	PresignFor   time.Duration
	// DownloadRetention is how long an output stays after its last byte was
	// sent.
	DownloadRetention time.Duration
	// SweepInterval is how often NoteReception is called; 0 is once a minute.
	SweepInterval time.Duration
	// Deletions is how many expired outputs a sweep deletes at once; 0 is one
	// after the other, without a goroutine.
	Deletions int
	// LaunchWait is how long a launch waits to see its machine run, ExitWait
	// how long a worker that has reported may take to exit by itself,
	// DestroyWait how long one call waits for a machine to be gone. 1 s to 60 s.
	LaunchWait, ExitWait, DestroyWait time.Duration
}

// WorkerBucket is the bucket of the export contract and the credentials to it.
type WorkerBucket struct {
	AccountID       string
	AccessKeyID     string
	SecretAccessKey string
	Bucket          string
	// Endpoint is set where R2 is not Cloudflare's, and Region where that store
	// has regions.
	Endpoint string
	Region   string
}

// Service has the use cases. It is safe for use by many goroutines.
type Service struct {
	ports    Ports
	config   Config
	changes  *changes
	verified *verified
}

// New makes the service of one process.
func New(ports Ports, config Config) *Service {
	return &Service{ports: ports, config: config, changes: newChanges(), verified: newVerified()}
}

// now is the wall clock's time alone: what is compared with it was stored.
func (s *Service) now() time.Time { return s.ports.Clock.Now().UTC().Round(0) }
