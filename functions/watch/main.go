package watch

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Connect returns the cluster of the settings, and a function that closes it. It makes no call.
type Connect func(Settings, *slog.Logger) (cluster Cluster, end func(), err error)

// callTime limits a report, because Sortie reads each of its machines.
const callTime = 30 * time.Second

// Main runs the agent until ctx ends, logs JSON lines to stderr and returns the exit code:
// 2 for a wrong environment, otherwise 0.
func Main(ctx context.Context, environ []string, stderr io.Writer, connect Connect) int {
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	s, err := ReadSettings(environ)
	if err != nil {
		log.Error("invalid environment", "problems", strings.Split(err.Error(), "\n"))
		return 2
	}
	cluster, end, err := connect(s, log)
	if err != nil {
		log.Error("cannot configure the cluster", "error", err)
		return 2
	}
	defer end()
	agent := New(Config{
		URL: s.URL, Name: s.Cluster, Tenant: s.Tenant, Cluster: cluster, Token: func() (string, error) { return readToken(s.TokenFile) },
		Client: &http.Client{Timeout: callTime}, Clock: clock.System{}, Log: log,
	})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Health)
	if err != nil {
		log.Error("SORTIE_HEALTH_ADDRESS cannot be used", "error", err)
		return 2
	}
	health := &http.Server{Handler: agent, ReadHeaderTimeout: time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = health.Serve(listener) // until Close
	}()
	log.Info("the agent watches", "cluster", s.Cluster, "namespaces", s.Namespaces, "health", listener.Addr().String())
	agent.Run(ctx)
	_ = health.Close()
	<-served
	return 0
}

// ServeHTTP serves /healthz: 200 if the agent is ready, otherwise 503.
func (a *Agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != "/healthz":
		w.WriteHeader(http.StatusNotFound)
	case !a.Ready():
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// readToken reads the token. The error does not contain it.
func readToken(file string) (string, error) {
	text, err := os.ReadFile(file) //nolint:gosec // G304: the operator names it
	if err != nil {
		return "", fmt.Errorf("SORTIE_TOKEN_FILE: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \n") {
		return "", fmt.Errorf("SORTIE_TOKEN_FILE: %s does not contain one token", file)
	}
	return token, nil
}
