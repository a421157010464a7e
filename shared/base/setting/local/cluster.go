package local

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/sortie-dev/sortie/shared/base/setting"
)

// InCluster is the value of Cluster.File for the cluster that the server itself runs in.
const InCluster = "in-cluster"

// Cluster configures the Kubernetes cluster of pools with the runner "kubernetes". The zero value
// has none.
type Cluster struct {
	// File is the path of a kubeconfig file, or InCluster; empty means no cluster.
	File string
	// Context is the name of a context in the file; empty means its current context.
	Context string
	// Cluster is the name by which pools refer to the cluster.
	Cluster string
	// Namespaces are the namespaces in which machines can be created. The first one is the
	// default of pools.
	Namespaces []string
}

// Kubeconfig returns the path of the kubeconfig file; empty for InCluster.
func (c Cluster) Kubeconfig() string {
	if c.File == InCluster {
		return ""
	}
	return c.File
}

// The variables of the cluster.
const (
	fileName       = "SORTIE_KUBERNETES_CONFIG"
	contextName    = "SORTIE_KUBERNETES_CONTEXT"
	clusterName    = "SORTIE_KUBERNETES_CLUSTER"
	namespacesName = "SORTIE_KUBERNETES_NAMESPACES"
)

// name matches the name of a cluster or of a namespace: a DNS label.
var name = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func clusterSettings(c *Cluster) []setting.Setting {
	return []setting.Setting{
		setting.Text(&c.File, fileName, "", "a kubeconfig file of the cluster, or `in-cluster`"),
		setting.Text(&c.Context, contextName, "", "the context in the kubeconfig file; empty is its current one"),
		setting.Pattern(&c.Cluster, clusterName, "local", "the name of the cluster in the settings of pools", name),
		setting.Func(namespacesName, "sortie", "the namespaces that can have machines, with commas between them; the first one is that of pools without a namespace", func(text string) (err error) {
			if c.Namespaces, err = setting.ParseList(text); err != nil {
				return err
			}
			for _, n := range c.Namespaces {
				if !name.MatchString(n) {
					return fmt.Errorf("malformed namespace %q, want 1 to 63 lower-case letters, digits and hyphens, the first and the last no hyphen", n)
				}
			}
			return nil
		}),
	}
}

// ClusterSettings returns the settings of the cluster, for documentation.
func ClusterSettings() []setting.Setting { return clusterSettings(&Cluster{}) }

// ReadCluster reads the variables of the cluster. An empty value counts as absent. Without a cluster the Cluster is
// zero, and setting another variable is a problem. The error joins all problems, each with its
// variable.
func ReadCluster(lookup setting.Lookup) (Cluster, error) {
	var c Cluster
	given, err := setting.Read(lookup, clusterSettings(&c))
	if !given[fileName] {
		for _, other := range []string{contextName, clusterName, namespacesName} {
			if given[other] {
				err = errors.Join(err, fmt.Errorf("%s: there is no cluster, want %s too", other, fileName))
			}
		}
	}
	if c.File == InCluster && c.Context != "" {
		err = errors.Join(err, fmt.Errorf("%s: %s has no contexts, want a kubeconfig file in %s or no context", contextName, InCluster, fileName))
	}
	if c.File == "" {
		return Cluster{}, err
	}
	return c, err
}
