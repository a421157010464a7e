package s3

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Region is the region of signatures; it is R2's.
const Region = "auto"

// stopLimit is how long Stop waits for active requests.
const stopLimit = 10 * time.Second

// Keys are an account's credentials.
type Keys struct{ ID, Secret string }

// Config configures a server.
type Config struct {
	// Dir is the folder of the objects. Start creates it if it is missing. One
	// server at a time uses it.
	Dir string
	// Previous is the address of the last start, which is tried first; empty means no such
	// address. Addr applies if another process uses it.
	Previous string
	// Addr is the loopback address to listen on; empty means "127.0.0.1:0", and
	// port 0 means any free port.
	Addr string
	// Uploads and Accepted are the names of the two buckets.
	Uploads, Accepted string
	// Owner can access both buckets, Worker only the one for uploads. They
	// differ.
	Owner, Worker Keys
	// Clock dates objects; nil means the host's clock.
	Clock clock.Clock
	// Log receives failures that are not the client's; nil discards them.
	Log *slog.Logger
}

// Server is a running store. It is safe for concurrent use.
type Server struct {
	url      string
	app      *fiber.App
	listener net.Listener
	db       *sqlite.DB
	served   chan error

	once    sync.Once
	stopped error
}

// Start opens the store, removes the remains of a crash, and returns when the server accepts
// requests. Several servers with different folders can run in one process.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	server, err := start(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot start the object store: %w", err)
	}
	return server, nil
}

func start(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := checkCatalog(cfg.Dir); err != nil {
		return nil, err
	}
	db, err := sqlite.Open(ctx, filepath.Join(cfg.Dir, catalogFile))
	if err != nil {
		return nil, err
	}
	server, err := serve(ctx, cfg, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return server, nil
}

// complete sets defaults and reports every problem at once.
func (c *Config) complete() error {
	var problems []error
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	if host, _, err := net.SplitHostPort(c.Addr); err != nil {
		problems = append(problems, err)
	} else if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		problems = append(problems, fmt.Errorf("%s is not on loopback", c.Addr))
	}
	if c.Dir == "" || c.Uploads == "" || c.Accepted == "" || c.Uploads == c.Accepted {
		problems = append(problems, errors.New("missing directory or bucket, want a directory and two buckets"))
	}
	if c.Owner.ID == "" || c.Owner.Secret == "" || c.Worker.ID == "" || c.Worker.Secret == "" || c.Owner.ID == c.Worker.ID {
		problems = append(problems, errors.New("missing keys, want those of two accounts"))
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return errors.Join(problems...)
}

func serve(ctx context.Context, cfg Config, db *sqlite.DB) (*Server, error) {
	if err := checkTables(ctx, cfg.Dir, db); err != nil {
		return nil, err
	}
	catalog, err := openCatalog(ctx, db)
	if err != nil {
		return nil, err
	}
	// Compact needs disk space for a copy. Without it, the file keeps its size.
	if _, err := db.Compact(ctx); err != nil {
		cfg.Log.WarnContext(ctx, "cannot compact the catalog of objects; the next start tries again", "error", err.Error())
	}
	blobs, err := openBlobs(filepath.Join(cfg.Dir, blobsFolder))
	if err != nil {
		return nil, err
	}
	store := &store{
		catalog: catalog, blobs: blobs, clock: cfg.Clock, log: cfg.Log,
		uploads: cfg.Uploads, accepted: cfg.Accepted, owner: cfg.Owner.ID,
	}
	if err := store.clean(ctx); err != nil {
		return nil, err
	}
	return listen(ctx, cfg, store, db)
}

// listen serves at the previous address, or at another one if that is in use.
func listen(ctx context.Context, cfg Config, store *store, db *sqlite.DB) (*Server, error) {
	var listener net.Listener
	err := errors.New("no address")
	for _, addr := range []string{cfg.Previous, cfg.Addr} {
		if addr == "" {
			continue
		}
		if listener, err = new(net.ListenConfig).Listen(ctx, "tcp", addr); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	server := &Server{
		url: "http://" + listener.Addr().String(), app: newApp(store, accounts{owner: cfg.Owner, worker: cfg.Worker}), listener: listener,
		db: db, served: make(chan error, 1),
	}
	ready := make(chan struct{})
	server.app.Hooks().OnListen(func(fiber.ListenData) error {
		close(ready)
		return nil
	})
	go func() {
		server.served <- server.app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true})
	}()
	select {
	case <-ready:
		return server, nil
	case err := <-server.served:
		return nil, err
	}
}

// URL returns the endpoint, "http://127.0.0.1:PORT".
func (s *Server) URL() string { return s.url }

// Shrink returns at most limit free pages of the catalog to the disk.
func (s *Server) Shrink(ctx context.Context, limit int) error {
	_, err := s.db.Shrink(ctx, limit)
	return err
}

// Stop ends the server and closes its files. Active requests may continue until ctx ends, and
// for at most ten seconds. A second Stop returns the same result.
func (s *Server) Stop(ctx context.Context) error {
	s.once.Do(func() {
		down := make(chan struct{})
		go func() {
			defer close(down)
			// Ignore the errors: a request that did not end in time and a closed listener are
			// no failures to stop. A shutdown before the app accepts connections does not close
			// the listener.
			s.app.ShutdownWithTimeout(stopLimit) //nolint:errcheck,gosec // see above
			s.listener.Close()                   //nolint:errcheck,gosec // see above
			<-s.served                           //nolint:errcheck // see above
		}()
		select {
		case <-down:
		case <-ctx.Done():
		}
		if err := s.db.Close(); err != nil {
			s.stopped = fmt.Errorf("cannot stop the object store: %w", err)
		}
	})
	return s.stopped
}
