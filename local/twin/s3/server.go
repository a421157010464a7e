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

	"github.com/versity/versitygw/s3api"
	"github.com/versity/versitygw/s3api/middlewares"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/clock"
)

// Region is the region of signatures; it is R2's.
const Region = "auto"

// Keys are an account's credentials.
type Keys struct{ ID, Secret string }

// Config configures a server.
type Config struct {
	// Dir is the folder of the objects. Start creates it if it is missing. One
	// server at a time uses it.
	Dir string
	// Previous is an address that is tried first, that of the last start; empty means
	// none. If another process uses it, Addr applies.
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
	url    string
	api    *s3api.S3ApiServer
	db     *sqlite.DB
	served chan error

	once    sync.Once
	stopped error
}

// Start opens the store, removes what a crash left behind, and returns when the
// server accepts requests. Several servers with different folders may run in
// one process.
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
	// Without the space for a copy, the file does not shrink.
	if _, err := db.Compact(ctx); err != nil {
		cfg.Log.WarnContext(ctx, "cannot compact the catalog of objects; the next start tries again", "error", err.Error())
	}
	blobs, err := openBlobs(filepath.Join(cfg.Dir, blobsFolder))
	if err != nil {
		return nil, err
	}
	store := &store{
		catalog: catalog, blobs: blobs, clock: cfg.Clock, log: cfg.Log,
		uploads: cfg.Uploads, accepted: cfg.Accepted, owner: cfg.Owner.ID, worker: cfg.Worker.ID,
	}
	if err := store.clean(ctx); err != nil {
		return nil, err
	}
	return listen(ctx, cfg, store, db)
}

// listen finds a free address and serves there. The library takes an address
// instead of a listener and does not report its port, so listen reserves a
// port, frees it, and retries if another process takes it first.
func listen(ctx context.Context, cfg Config, store *store, db *sqlite.DB) (*Server, error) {
	const attempts = 20
	var last error
	for i := range attempts {
		addr := cfg.Previous
		if i > 0 || addr == "" {
			var err error
			if addr, err = freeAddr(ctx, cfg.Addr); err != nil {
				return nil, err
			}
		}
		listening := make(chan struct{})
		api, err := s3api.New(
			store, middlewares.RootUserConfig{Access: cfg.Owner.ID, Secret: cfg.Owner.Secret}, Region,
			accounts{owner: cfg.Owner, worker: cfg.Worker}, nil, nil, nil, nil,
			s3api.WithQuiet(), s3api.WithKeepAlive(), s3api.WithDisableACL(),
			s3api.WithConcurrencyLimiter(4096, 4096), s3api.WithMpMaxParts(10_000),
			s3api.WithOnListen(func() { close(listening) }),
		)
		if err != nil {
			return nil, err
		}
		server := &Server{url: "http://" + addr, api: api, db: db, served: make(chan error, 1)}
		go func() { server.served <- api.ServeMultiPort([]string{addr}) }()
		select {
		case <-listening:
			return server, nil
		case last = <-server.served:
		}
		if addr == cfg.Addr { // a port that was requested by number
			return nil, last
		}
	}
	return nil, last
}

// freeAddr replaces port 0 by a port that is free now.
func freeAddr(ctx context.Context, addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port != "0" {
		return addr, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", err
	}
	addr = listener.Addr().String()
	return addr, listener.Close()
}

// URL returns the endpoint, "http://127.0.0.1:PORT".
func (s *Server) URL() string { return s.url }

// Shrink returns free pages of the catalog to the disk, at most limit of them.
func (s *Server) Shrink(ctx context.Context, limit int) error {
	_, err := s.db.Shrink(ctx, limit)
	return err
}

// Stop ends the server and closes its files. Active requests may continue until
// ctx ends, for ten seconds at most. A second Stop returns the same result.
func (s *Server) Stop(ctx context.Context) error {
	s.once.Do(func() {
		down := make(chan struct{})
		go func() {
			defer close(down)
			// The errors are that requests did not end in time or that the
			// listener is closed: neither is a failure to stop.
			s.api.ShutDown() //nolint:errcheck,gosec // see above
			<-s.served       //nolint:errcheck // see above
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
