package platform

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/label"
)

// KubernetesSettings are the settings of RunnerKubernetes. Empty strings mean those of the
// deployment.
type KubernetesSettings struct {
	// Cluster is the name of a cluster in the deployment.
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// PodDefaults is a pod specification (a JSON object). The specifications of jobs are
	// applied over it.
	PodDefaults json.RawMessage `json:"podDefaults,omitempty"`
	// Labels are added to Sortie's own labels of the Jobs. Controllers of the cluster read
	// them, for example the queue name of Kueue.
	Labels map[string]string `json:"labels,omitempty"`
}

const (
	maxPodDefaults = 32 << 10
	maxLabels      = 16
)

var namespaceName = limit.DNSLabel()

func (s *KubernetesSettings) check(o RunnerOffer) []*fault.Fault {
	var cluster, namespace, pod *fault.Fault
	if s.Cluster != "" {
		cluster = offered("settings.cluster", "cluster", s.Cluster, o.Clusters)
	}
	if s.Namespace != "" && !namespaceName.Matches(s.Namespace) {
		namespace = fault.Invalid("settings.namespace", "malformed namespace %q, want 1 to 63 lower-case letters, digits and hyphens, the first and the last no hyphen",
			limit.Cut(s.Namespace, limit.FileName))
	}
	switch {
	case len(s.PodDefaults) > maxPodDefaults:
		pod = fault.Invalid("settings.podDefaults", "%d bytes, want at most %d", len(s.PodDefaults), maxPodDefaults)
	case s.PodDefaults != nil && (!json.Valid(s.PodDefaults) || bytes.TrimSpace(s.PodDefaults)[0] != '{'):
		pod = fault.Invalid("settings.podDefaults", "malformed pod specification, want a JSON object")
	}
	return append([]*fault.Fault{cluster, namespace, pod}, checkLabels(s.Labels)...)
}

// checkLabels returns a fault for each label that is malformed or reserved. Labels without a
// prefix belong to runs, those of kubernetes.io to the cluster.
func checkLabels(labels map[string]string) (found []*fault.Fault) {
	if len(labels) > maxLabels {
		return []*fault.Fault{fault.Invalid("settings.labels", "%d labels, want at most %d", len(labels), maxLabels)}
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		field, value := "settings.labels."+limit.Cut(key, limit.FileName), labels[key]
		prefix, _, prefixed := strings.Cut(key, "/")
		switch {
		case !prefixed, !label.ValidKey(key):
			found = append(found, fault.Invalid(field, "malformed key, want a domain, a slash and 1 to 63 letters, digits, '-', '_' and '.', such as kueue.x-k8s.io/queue-name"))
		case prefix == "sortie", prefix == "kubernetes.io", strings.HasSuffix(prefix, ".kubernetes.io"):
			found = append(found, fault.Invalid(field, "a label of Sortie or of the cluster itself, want one of another domain"))
		case !label.ValidValue(value):
			found = append(found, fault.Invalid(field, "malformed value %q, want at most 63 letters, digits, '-', '_' and '.'", limit.Cut(value, limit.FileName)))
		}
	}
	return found
}
