// Package kubernetes reads the settings of the Kubernetes cluster for pools with the runner
// "kubernetes". Without SORTIE_KUBERNETES_CONFIG there is no cluster.
package kubernetes

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/sortie-dev/sortie/shared/base/setting"
)

// InCluster is the value of Config.File for the cluster that the server itself runs in.
const InCluster = "in-cluster"

// Config configures the cluster.
type Config struct {
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
func (c Config) Kubeconfig() string {
	if c.File == InCluster {
		return ""
	}
	return c.File
}

// The variables.
const (
	fileName       = "SORTIE_KUBERNETES_CONFIG"
	contextName    = "SORTIE_KUBERNETES_CONTEXT"
	clusterName    = "SORTIE_KUBERNETES_CLUSTER"
	namespacesName = "SORTIE_KUBERNETES_NAMESPACES"
)

// name matches the name of a cluster or of a namespace: a DNS label.
var name = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func settings(c *Config) []setting.Setting {
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

// Settings returns the settings of this package, for documentation.
func Settings() []setting.Setting { return settings(&Config{}) }

// Read reads the variables. An empty value counts as absent. Without a cluster the Config is
// zero, and setting another variable is a problem. The error joins all problems, each with its
// variable.
func Read(lookup setting.Lookup) (Config, error) {
	var c Config
	given, err := setting.Read(lookup, settings(&c))
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
		return Config{}, err
	}
	return c, err
}
