package runner

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/shared/adapter/kubernetes"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/port"
)

// kubernetesJobs returns the Jobs in SORTIE_KUBERNETES_NAMESPACES of the cluster
// SORTIE_KUBERNETES_CLUSTER, with the access of SORTIE_SECRET_KUBERNETES; nil without a
// cluster. A function is suspended between its calls and cannot watch, so it reads by
// calls.
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

// orchestrator is the name of this deployment as the value of a label, and the output
// KubernetesOrchestrator of the stack. Several deployments may share a namespace.
func orchestrator(p *process.Process) string { return strings.ReplaceAll(cluster(p), "/", ".") }

// callTime limits a call, so that a cluster that does not answer leaves the function time for
// the other runners.
const callTime = 10 * time.Second

// access keeps the client of the last document of the secret.
type access struct {
	aws   aws.Config
	clock clock.Clock

	mu     sync.Mutex
	of     secrets.Kubernetes
	latest kubernetes.Client
}

// client returns the client of a document: the same one for the same document.
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
