package orchestrator

import (
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

// Ports are what the use cases stand on. A handler that needs only some of
// them leaves the others nil; the doc of a use case says which it needs where
// they are not all of Store, Clock and Log.
type Ports struct {
	Store      Store
	Executions Executions
	Runner     Runner
	Outputs    Outputs
	Signer     Signer
	Clock      Clock
	Log        *slog.Logger
	// Roll gives random numbers, 0 <= n < 1.
	Roll func() float64
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
	// Bucket is what the worker gets to write with.
	Bucket WorkerBucket
	// RedirectOver is the size in bytes above which a download is redirected
	// to the bucket; 0 never redirects. PresignFor is how long such a URL is
	// good.
	RedirectOver int64
	PresignFor   time.Duration
	// DownloadRetention is how long an output stays after its last byte was
	// sent.
	DownloadRetention time.Duration
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
	// Endpoint is set where R2 is not Cloudflare's.
	Endpoint string
}

// Identity is who calls.
type Identity struct {
	Tenant    string
	Workspace string
	Subject   string
	Scopes    []string
}

// Service has the use cases. It is safe for use by many goroutines.
type Service struct {
	ports   Ports
	config  Config
	changes *changes
}

// New makes the service of one process.
func New(ports Ports, config Config) *Service {
	return &Service{ports: ports, config: config, changes: newChanges()}
}

// now is the wall clock's time alone: what is compared with it was stored.
func (s *Service) now() time.Time { return s.ports.Clock.Now().UTC().Round(0) }
