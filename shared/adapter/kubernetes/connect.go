package kubernetes

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// Client-side limits of the calls to a cluster, per second and in a burst. The defaults of
// client-go, 5 and 10, delay every start.
const (
	CallsPerSecond = 50
	CallBurst      = 100
)

// Connect returns a client of the cluster in a context of a kubeconfig file. An empty context
// is the file's current one. With an empty file it connects to the cluster in which this
// process runs, with its service account. It makes no call.
func Connect(kubeconfig, context string) (Client, error) {
	config, err := rest.InClusterConfig()
	if kubeconfig != "" {
		config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot configure the client of Kubernetes: %w", err)
	}
	return ConnectWith(config)
}

// ConnectWith is like Connect, for a configuration.
func ConnectWith(config *rest.Config) (Client, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.UserAgent = CallsPerSecond, CallBurst, "sortie"
	config.WarningHandlerWithContext = rest.NoWarnings{} // they would go to the standard error
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{next} })
	client, err := newCalls(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make the client of Kubernetes: %w", err)
	}
	return client, nil
}

// counted counts the requests for the run of their context.
type counted struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	port.CountCall(r.Context(), platform.RunnerKubernetes)
	return c.next.RoundTrip(r)
}
