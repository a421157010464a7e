package runs

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sortie-dev/sortie/shared/app/host"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Config configures the use cases. Zero values are not defaults, except where a
// field says so.
type Config struct {
	// Policy applies to runs whose request does not set another one.
	Policy spec.Policy
	// Pool is the pool of every run. MaxMachines is its limit; 0 is no limit.
	Pool        string
	MaxMachines int
	// QueueLimit is the number of queued runs of the pool above which new ones are
	// refused; 0 is no limit.
	QueueLimit int
	// Runners has the runners, and the values of their settings, that pools can name.
	Runners platform.RunnerOffer
	// CheckPodSpec returns the faults of the pod specification of a job for the cluster, each
	// with its field. A nil function accepts every specification.
	CheckPodSpec func(document json.RawMessage) []*fault.Fault
	// CheckPodDefaults checks the pod specification of a pool in the same way.
	CheckPodDefaults func(document json.RawMessage) []*fault.Fault
	// CheckImage returns an Image fault if the runner of a pool, empty for the default one, has no
	// image of the name. A nil function accepts every image.
	CheckImage func(ctx context.Context, runner, image string) error
	// HasSecret reports whether a tenant has a secret, for warnings about jobs. nil warns of none.
	HasSecret func(ctx context.Context, tenant, name string) bool
	// MaxEvents is the number of events that the history of an execution can have;
	// 0 is run.MaxEvents.
	MaxEvents int
	// Image, Region, CPUs and MemoryMB (a multiple of 256) describe the machine.
	Image    string
	Region   string
	CPUs     int
	MemoryMB int
	// Host has the images that are programs of the server's host.
	Host host.Programs
	// BucketCredentials is spec.BucketVariables, or spec.BucketEnvelope, which no job can
	// override; empty is spec.BucketVariables.
	BucketCredentials string
	// PublicURL is the address of this API for workers, SourceURL the address of
	// the entity API that they read; empty refuses exports.
	PublicURL string
	SourceURL string
	// Hooks has the addresses that hooks may call besides public ones.
	Hooks guard.Policy
	// MetricLabels are the keys of the labels of runs that metrics have.
	MetricLabels []string
	// ModelKeys are the keys whose models are trusted.
	ModelKeys catalog.Keys
	// Engines has the addresses that replicas of engines may have besides public ones.
	// MockEngine allows pools of the mock engine.
	Engines    guard.Policy
	MockEngine bool
	// FreePort returns a port of this host that no program listens on, for the replica of an
	// engine in a machine of Runners.Hosted; nil without such machines.
	FreePort func() (int, error)
	// Loopback is the address of such a replica; empty is 127.0.0.1.
	Loopback string
	// Budgets are the limits of tenants, projects and sessions without their own; nil is
	// budget.Standard.
	Budgets *budget.Defaults
	// Answers is how long the answers of inference tasks are stored.
	Answers inference.Retention
	// MostWithin is the longest deadline of an inference task whose caller waits; 0 is
	// inference.MostWaited.
	MostWithin time.Duration
	// TokenTTL is the life of a worker's token, at most 2 hours. A token covers
	// the start limit of its run even if that is longer.
	TokenTTL time.Duration
	// RedirectOver is the size in bytes above which a download is redirected to
	// the bucket; 0 never redirects. PresignFor is the life of such a URL.
	RedirectOver int64
	PresignFor   time.Duration
	// DigestRead is the size in bytes up to which an output is read to verify the digest
	// that its worker reported, if the object store does not report one; 0 reads none.
	DigestRead int64
	// ArtifactLimit is the maximum size in bytes of an artifact that is not JSON; 0 allows only
	// empty ones.
	ArtifactLimit int64
	// DownloadRetention is the retention of an output after its last byte was sent.
	DownloadRetention time.Duration
	// EventRetention is the retention of published events in the streams of tenants.
	EventRetention time.Duration
	// StreamLife is the longest time that a reader follows events, StreamReaders the
	// number of streams that a tenant can have open at a server.
	StreamLife    time.Duration
	StreamReaders int
	// ForwardLimit is the number of running attempts whose heartbeats are forwarded to their
	// executions. Sweeps find overdue heartbeats of further attempts. 0 forwards none; nil is
	// no limit.
	//
	// Step Functions accepts 500 SendTaskHeartbeat calls a second in large regions and
	// 300 in others. With an interval of 30 s and a limit of 90 s, an attempt makes one
	// call in 52.5 s: 10,800 attempts make 206 calls a second, 18,000 make 343, which
	// leaves 31 % of either quota for bursts.
	ForwardLimit *int
	// SweepInterval is the interval between calls of RecordReception; 0 is one
	// minute.
	SweepInterval time.Duration
	// ExpiryPause is the time for which a process that found no expired records does not search
	// again; 0 is until the next sweep. Clients do not see expired records meanwhile.
	ExpiryPause time.Duration
	// SweepWorkers is the number of records or machines that a sweep handles concurrently; 0
	// and 1 handle them one by one, without a goroutine.
	SweepWorkers int
	// LaunchWait is the time for which a launch waits until its machine runs. ExitWait is the
	// time that a worker may take to exit after its report. DestroyWait is the time for which
	// one call waits until a machine is gone. Each is 1 s to 60 s.
	LaunchWait, ExitWait, DestroyWait time.Duration
}

// StandardPool returns the default pool as it is without a record, without a tenant.
func (c Config) StandardPool() platform.Pool {
	return platform.Pool{ID: c.Pool, Limit: c.MaxMachines, QueueLimit: c.QueueLimit}
}

// WithRunners returns the settings with the runners against which placements of pools are checked.
func (c Config) WithRunners(offer platform.RunnerOffer) Config {
	c.Runners = offer
	return c
}

// WithMostWithin returns the settings of a process that accepts no longer deadlines of inference
// tasks.
func (c Config) WithMostWithin(most time.Duration) Config {
	c.MostWithin = most
	return c
}

// WithArtifactLimit returns the settings of a process that accepts no larger artifacts.
func (c Config) WithArtifactLimit(most int64) Config {
	c.ArtifactLimit = min(c.ArtifactLimit, most)
	return c
}

// WithExpiryPause returns the settings with ExpiryPause.
func (c Config) WithExpiryPause(pause time.Duration) Config {
	c.ExpiryPause = pause
	return c
}

// Hex returns n random bytes in hexadecimal.
type Hex func(n int) string

// Rand returns a random number, 0 <= n < 1.
type Rand func() float64

// Random is the source of random numbers and ids.
type Random interface {
	// Float64 implements Rand, Hex the function type Hex.
	Float64() float64
	Hex(n int) string
}
