package stack

import (
	"context"
	"fmt"

	"github.com/sortie-dev/sortie/shared/adapter/kubernetes"
)

// openKubernetes creates the runner of the configured cluster. It does not call the cluster, so
// the system starts while the cluster is unreachable.
func (s *Stack) openKubernetes(context.Context) error {
	c := s.config.Settings.Kubernetes
	if c.File == "" {
		return nil
	}
	client, err := kubernetes.Connect(c.Kubeconfig(), c.Context)
	if err == nil {
		s.kubernetes, err = kubernetes.New(kubernetes.Config{
			Client: client, Cluster: c.Cluster, Orchestrator: s.memory.secret("kubernetes", 6), Namespaces: c.Namespaces,
			KeepFor: s.config.KeepMachines, Clock: s.clock, Log: s.config.Log,
		})
	}
	if err != nil {
		return fmt.Errorf("SORTIE_KUBERNETES_CONFIG %s: %w", c.File, err)
	}
	return nil
}
