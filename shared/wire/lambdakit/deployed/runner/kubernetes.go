package runner

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/shared/adapter/kubernetes"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// kubernetesJobs returns the Jobs in the namespaces SORTIE_KUBERNETES_NAMESPACES of the cluster
// SORTIE_KUBERNETES_CLUSTER, with the credentials of SORTIE_SECRET_KUBERNETES. It returns nil
// without a cluster. A function is suspended between its calls and cannot watch, so it lists.
func kubernetesJobs(p *process.Process) port.Runner {
	name, secret := p.Option("SORTIE_KUBERNETES_CLUSTER", ""), p.Option("SORTIE_SECRET_KUBERNETES", "")
	namespaces := p.List("SORTIE_KUBERNETES_NAMESPACES", "sortie")
	if name == "" {
		return nil
	}
	source, err := secrets.Open[secrets.Kubernetes](p.AWS(), secret, secrets.Config{Clock: p.Clock(), Log: p.Log})
	p.Check(err)
	a := &access{aws: p.AWS(), clock: p.Clock()}
	jobs, err := kubernetes.NewCurrent(kubernetes.Config{
		Cluster: name, Orchestrator: orchestrator(p), Namespaces: namespaces, Clock: p.Clock(), Log: p.Log,
	}, func(ctx context.Context) (kubernetes.Client, error) {
		document, err := source.Get(ctx)
		if err != nil {
			return nil, err
		}
		return a.client(document)
	})
	p.Check(err)
	return jobs
}

// orchestrator returns the name of this deployment as a label value. It is the output
// KubernetesOrchestrator of the stack. Several deployments may share a namespace.
func orchestrator(p *process.Process) string { return strings.ReplaceAll(cluster(p), "/", ".") }

// callTime is the timeout of one call. A cluster that does not answer then leaves the function
// time for the other runners.
const callTime = 10 * time.Second

// access caches the client for the last document of the secret.
type access struct {
	aws   aws.Config
	clock clock.Clock

	mu     sync.Mutex
	of     secrets.Kubernetes
	latest kubernetes.Client
}

// client returns the client for a document. It returns the cached client if the document has
// not changed.
func (a *access) client(document secrets.Kubernetes) (kubernetes.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.latest != nil && a.of == document {
		return a.latest, nil
	}
	config, err := kubernetes.ConfigOf(document.Kubeconfig, document.EKS != "")
	if err != nil {
		return nil, err
	}
	config.Timeout = callTime
	var client kubernetes.Client
	if document.EKS == "" {
		client, err = kubernetes.ConnectWith(config)
	} else {
		client, err = kubernetes.ConnectByToken(config, kubernetes.EKSTokens(a.aws, document.EKS), a.clock)
	}
	if err != nil {
		return nil, err
	}
	a.of, a.latest = document, client
	return client, nil
}
