// Package program connects the agent to its cluster, for the main of the container image and
// for programs that run themselves again as the agent. See package watch.
package program

import (
	"context"
	"io"
	"log/slog"

	"github.com/sortie-dev/sortie/functions/watch"
	"github.com/sortie-dev/sortie/shared/adapter/kubernetes"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Main runs the agent until ctx ends and returns its exit code; see watch.Main.
func Main(ctx context.Context, environ []string, stderr io.Writer) int {
	return watch.Main(ctx, environ, stderr, func(s watch.Settings, log *slog.Logger) (watch.Cluster, func(), error) {
		client, err := kubernetes.Connect(s.Kubeconfig, "")
		if err != nil {
			return nil, nil, err
		}
		r, err := kubernetes.New(kubernetes.Config{
			Client: client, Cluster: s.Cluster, Orchestrator: s.Orchestrator, Namespaces: s.Namespaces, Clock: clock.System{}, Log: log,
		})
		if err != nil {
			return nil, nil, err
		}
		return r, r.Close, nil
	})
}
