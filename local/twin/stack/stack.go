package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/local/twin/s3"
	"github.com/sortie-dev/sortie/shared/adapter/container"
	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/adapter/kubernetes"
	"github.com/sortie-dev/sortie/shared/adapter/nats"
	"github.com/sortie-dev/sortie/shared/adapter/otlp"
	"github.com/sortie-dev/sortie/shared/adapter/prometheus"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/adapter/timer"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/activity"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/app/sensors"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/private"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// The names of the parts with an address, and of the secrets of a folder.
const (
	partAPI, partMachines, partSource, partS3 = "api", "machines", "source", "s3"
	secretOwner, secretWorker, secretMachines = "s3-owner", "s3-worker", "machines-token"
	// secretProof is the key with which a server proves its identity to clients.
	secretProof = "proof"

	bucketUploads, bucketAccepted = limit.UploadsBucket, limit.AcceptedBucket
)

// The files of a data folder. RecordsFile has the records, KeysFile the keys that sign tokens,
// EventKeysFile the keys that sign events, SecretsFolder the named secrets of tenants.
const (
	RecordsFile   = "sortie.db"
	KeysFile      = "keys.pem"
	EventKeysFile = "event-keys.pem"
	SecretsFolder = "secrets"
)

// Stack is the running system. Start creates it.
type Stack struct {
	config    Config
	clock     clock.Clock
	memory    *memory
	token     string
	owner     access.Token
	addresses Addresses
	// loopback is the address of this host at which the parts listen.
	loopback string

	db         *sqlite.DB
	store      *sqlite.Store
	bucket     *s3.Server
	machines   *flymachines.Server
	system     *app.System
	sensors    *sensors.Polls
	metrics    *prometheus.Registry
	traces     *otlp.Exporter // nil exports nothing
	engine     *engine.Engine
	containers *container.Runner  // nil without addresses
	kubernetes *kubernetes.Runner // nil without a cluster
	schedules  *timer.Schedules
	eventKeys  *keyfile.EventKeys
	feed       *sqlite.Feed
	relay      *delivery.Relay
	tally      *activity.Tally
	publisher  *nats.Publisher // nil without a bus
	bus        *delivery.Bus   // nil without a bus
	streams    *stream.Streams
	wakes      *deliverer
	delivery   *delivery.Deliverer
	dispatch   *delivery.Dispatch
	webhooks   *delivery.Webhooks
	replays    *delivery.Replays
	serversMu  sync.Mutex // guards servers; gates for containers are added later
	servers    []*http.Server

	// fullSince is the time of the last warning that the limit of the records cannot be kept.
	// Only the sweep's goroutine uses it.
	fullSince time.Time

	stopLoops context.CancelFunc
	loops     sync.WaitGroup
	fatal     chan error
	stopOnce  sync.Once
	stopped   error
}

// Start starts the system, resumes the folder's runs, and returns when it serves. ctx limits
// only the start. If Start fails, it stops the parts that it has started.
func Start(ctx context.Context, c Config) (*Stack, error) {
	if c.SweepInterval == 0 {
		c.SweepInterval = time.Second
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	loopback, err := checkListen(ctx, c.Addr)
	if err != nil {
		return nil, err
	}
	s := &Stack{config: c, clock: c.Clock, loopback: loopback, fatal: make(chan error, 8)}
	loops, stopLoops := context.WithCancel(context.WithoutCancel(ctx))
	s.stopLoops = stopLoops
	for _, part := range []func(context.Context) error{
		s.openData, s.startBucket, s.compact, s.startMachines, s.startSource, s.openContainers, s.openKubernetes, s.startService,
	} {
		if err := part(ctx); err != nil {
			return nil, errors.Join(err, s.Stop(ctx))
		}
	}
	err = s.memory.save()
	if err == nil {
		err = s.ignoreData()
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop(ctx))
	}
	s.startLoops(loops)
	return s, nil
}

// Addresses returns the addresses of the parts.
func (s *Stack) Addresses() Addresses { return s.addresses }

// Failed returns a channel that receives the failure of an essential part.
func (s *Stack) Failed() <-chan error { return s.fatal }

// Stats returns statistics of the writes to the records since the start.
func (s *Stack) Stats() sqlite.Stats { return s.db.Stats() }

// Size returns the size of the records.
func (s *Stack) Size(ctx context.Context) (sqlite.Size, error) { return s.db.Size(ctx) }

// Machines returns the Fly Machines API of this stack, for its faults and logs.
func (s *Stack) Machines() *flymachines.Server { return s.machines }

// Stop stops the machines, then everything else. When ctx ends, it kills the machines. The next
// Start resumes all runs. A second call returns the result of the first.
func (s *Stack) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() { s.stopped = s.stop(ctx) })
	return s.stopped
}

func (s *Stack) stop(ctx context.Context) error {
	s.stopLoops()
	s.loops.Wait()
	if s.publisher != nil {
		s.publisher.Close()
	}
	failed := []error{s.stopContainers(ctx)}
	if s.machines != nil {
		failed = append(failed, s.machines.Stop(ctx))
	}
	if s.streams != nil {
		within, cancel := context.WithTimeout(ctx, shutdownGrace)
		failed = append(failed, s.endStreams(within))
		cancel()
	}
	s.serversMu.Lock()
	servers := s.servers
	s.serversMu.Unlock()
	for i := range servers {
		failed = append(failed, shutdown(servers[len(servers)-1-i]))
	}
	if s.bucket != nil {
		within, cancel := context.WithTimeout(ctx, shutdownLimit)
		failed = append(failed, s.bucket.Stop(within))
		cancel()
	}
	if s.kubernetes != nil {
		s.kubernetes.Close()
	}
	if s.db != nil {
		failed = append(failed, s.db.Close())
	}
	if s.traces != nil {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
		s.traces.Flush(within)
		cancel()
	}
	return errors.Join(failed...)
}

// The limits of a stop. Open requests have shutdownGrace to complete. Then their contexts end,
// which unblocks waiting requests. At shutdownLimit all connections are closed.
const (
	shutdownGrace = 700 * time.Millisecond
	shutdownLimit = 3 * time.Second
	// flushLimit limits the export of the last traces.
	flushLimit = 2 * time.Second
)

func shutdown(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownLimit)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return server.Close()
	}
	return nil
}

func (s *Stack) openData(ctx context.Context) error {
	dir, err := filepath.Abs(s.config.DataDir)
	if err != nil {
		return fmt.Errorf("cannot resolve the data folder: %w", err)
	}
	if err := private.Folder(dir); err != nil {
		return fmt.Errorf("cannot use the data folder: %w", err)
	}
	s.addresses.Data = dir
	if s.memory, err = loadMemory(dir); err != nil {
		return err
	}
	if err := checkRecords(dir); err != nil {
		return fmt.Errorf("cannot use the data folder %s: %w", dir, err)
	}
	if err := private.Close(filepath.Join(dir, RecordsFile)); err != nil { // earlier versions created it with another mode
		return fmt.Errorf("cannot open the records: %w", err)
	}
	if s.db, err = sqlite.Open(ctx, filepath.Join(dir, RecordsFile)); err != nil {
		return fmt.Errorf("cannot open the records in %s: %w", dir, err)
	}
	if err := checkTables(ctx, dir, s.db); err != nil {
		return fmt.Errorf("cannot use the data folder %s: %w", dir, err)
	}
	// Refuse a folder of a newer version before anything resumes.
	if s.store, err = sqlite.NewStore(ctx, s.db, s.clock); err == nil {
		err = engine.Migrate(ctx, s.db)
	}
	if err == nil {
		err = s.chooseTenant(ctx)
	}
	if err != nil {
		return fmt.Errorf("cannot use the records in %s: %w", dir, err)
	}
	return removePartial(dir)
}

// ignoreData excludes the data folder from version control.
func (s *Stack) ignoreData() error {
	err := private.Create(filepath.Join(s.addresses.Data, ".gitignore"), []byte("*\n"))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot exclude the data folder from version control: %w", err)
	}
	return nil
}

// earlierTenant is the tenant of all runs in a folder of version 0.1.
const earlierTenant = "local"

// chooseTenant sets the folder's tenant. Records of version 0.1 keep their tenant, so that
// clients still find them.
func (s *Stack) chooseTenant(ctx context.Context) error {
	if s.memory.Tenant != "" {
		return nil
	}
	runs, _, err := s.store.List(ctx, earlierTenant, port.Page{Limit: 1})
	if s.memory.Tenant = access.Default; len(runs) > 0 {
		s.memory.Tenant = earlierTenant
	}
	return err
}

func (s *Stack) startSource(context.Context) error {
	s.addresses.Source = s.config.SourceURL
	if s.addresses.Source == "" {
		s.addresses.Source = s.config.Settings.Service.SourceURL
	}
	if s.addresses.Source != "" {
		return nil
	}
	url, err := s.serve(partSource, samples.Sample().Handler(s.clock))
	s.addresses.Source = url
	return err
}

// serve listens on loopback for a part and serves its handler until the stack
// stops.
func (s *Stack) serve(part string, handler http.Handler) (url string, err error) {
	listener, err := s.memory.listen(part, net.JoinHostPort(s.loopback, "0"))
	if err != nil {
		return "", err
	}
	return s.serveOn(listener, httpkit.LoopbackHost(handler)), nil
}

func (s *Stack) serveOn(listener net.Listener, handler http.Handler) (url string) {
	requests, endRequests := context.WithCancel(context.Background())
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return requests },
		ErrorLog:    slog.NewLogLogger(s.config.Log.Handler(), slog.LevelWarn),
	}
	server.RegisterOnShutdown(func() {
		over, _ := s.clock.NewTimer(shutdownGrace)
		<-over
		endRequests()
	})
	s.serversMu.Lock()
	s.servers = append(s.servers, server)
	s.serversMu.Unlock()
	go func() {
		if err := server.Serve(httpkit.Listener(listener, uuid.NewString)); !errors.Is(err, http.ErrServerClosed) {
			s.fatal <- fmt.Errorf("a server failed: %w", err)
		}
	}()
	return "http://" + s.reachable(listener.Addr())
}

// Token returns the data folder's own client token.
func (s *Stack) Token() string { return s.token }

// chance is the host's source of random numbers and ids.
type chance struct{}

// Float64 returns a random number, 0 <= n < 1.
func (chance) Float64() float64 { return rand.Float64() } //nolint:gosec // jitter is not secret

// Hex returns n random bytes in hexadecimal.
func (chance) Hex(n int) string { return randomHex(n) }
