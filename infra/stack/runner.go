package stack

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/base/setting"
)

// RunnerSettings configures the runners.
type RunnerSettings struct {
	// FlyApps are the apps for machines. Without apps the stage has no Fly machines. FlyURL is
	// the base URL of the Machines API. If empty, it is Fly's own.
	FlyApps []string
	FlyURL  string
	// KubernetesCluster is the name of the cluster in the settings of pools. If empty, there is
	// no cluster. KubernetesNamespaces are the namespaces for machines. The secret kubernetes
	// contains the credentials.
	KubernetesCluster    string
	KubernetesNamespaces []string
}

// The kinds of the secrets with the credentials for Fly and for the cluster. Only a stage with
// apps has the first, and only a stage with a cluster has the second.
const (
	flySecret        = "fly"
	kubernetesSecret = "kubernetes"
)

// label matches the name of a cluster or namespace, which is a DNS label.
var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// settings returns the keys, bound to s.
func (s *RunnerSettings) settings() []setting.Setting {
	return []setting.Setting{
		setting.List(&s.FlyApps, "flyApps", "", "Fly apps for machines; empty is "+service.DefaultApp+" for a stage with exports, otherwise none"),
		setting.URL(&s.FlyURL, "flyUrl", "", "the Machines API; empty is Fly's own"),
		setting.Pattern(&s.KubernetesCluster, "kubernetesCluster", "", "the name of a Kubernetes cluster in the settings of pools", label),
		setting.List(&s.KubernetesNamespaces, "kubernetesNamespaces", "sortie", "namespaces of the cluster for machines; the first one is that of pools without a namespace"),
	}
}

// clusterLabel matches the value of a Kubernetes label.
var clusterLabel = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// longestRegion is as long as the longest name of a region, as of 2026.
const longestRegion = "ap-southeast-1"

// contradictions returns the problems of keys that are well-formed on their own. With a
// cluster, account, region and stage together form the value of a label, which the functions
// need at their start.
func (s *RunnerSettings) contradictions(region, stage string) []error {
	var problems []error
	value := orchestratorLabel(strings.Repeat("0", 12), cmp.Or(region, longestRegion), stage)
	if s.KubernetesCluster != "" && !clusterLabel.MatchString(value) {
		problems = append(problems, fmt.Errorf("stage: with kubernetesCluster, %q (account, region and stage) is the value of a label, want at most 63 characters and a letter or digit at the end", value))
	}
	if len(s.KubernetesNamespaces) == 0 {
		problems = append(problems, errors.New("kubernetesNamespaces: want at least one"))
	}
	for _, name := range s.KubernetesNamespaces {
		if !label.MatchString(name) {
			problems = append(problems, fmt.Errorf("kubernetesNamespaces: malformed namespace %q, want 1 to 63 lower-case letters, digits and hyphens", name))
		}
	}
	return problems
}

// offers returns the variables with the runners and settings that pools can name.
func (b *builder) offers() map[string]string {
	env := map[string]string{}
	maps.Copy(env, optionalVariable("SORTIE_FLY_APPS", strings.Join(b.settings.FlyApps, ",")))
	maps.Copy(env, optionalVariable("SORTIE_KUBERNETES_CLUSTER", b.settings.KubernetesCluster))
	return env
}

// addClusterRoles adds two outputs: the roles that call the cluster, and the label of the Jobs.
// A cluster of EKS needs an access entry for each role.
func (b *builder) addClusterRoles() {
	if b.settings.KubernetesCluster == "" {
		return
	}
	var roles []string
	for _, name := range b.settings.Functions() {
		if slices.Contains(functions[name].uses, machines) {
			roles = append(roles, *b.functions[name].Role().RoleArn())
		}
	}
	b.result("KubernetesRoles", strings.Join(roles, " "), "the roles that call the Kubernetes cluster")
	b.result("KubernetesOrchestrator", orchestratorLabel(*b.stack.Account(), *b.stack.Region(), b.settings.Stage), "the label sortie/orchestrator of the Jobs")
}

// orchestratorLabel returns the value of the label sortie/orchestrator of the Jobs.
func orchestratorLabel(account, region, stage string) string {
	return strings.Join([]string{account, region, stage}, ".")
}

// machinesGrant returns the grant of a function that calls the runners.
func (b *builder) machinesGrant() grant {
	all := grant{env: map[string]string{}}
	add := func(kind string, variables map[string]string) {
		g := b.secretGrant(kind, variables)
		maps.Copy(all.env, g.env)
		all.allow = append(all.allow, g.allow...)
	}
	if s := b.settings; len(s.FlyApps) > 0 {
		add(flySecret, map[string]string{"SORTIE_FLY_APPS": strings.Join(s.FlyApps, ","), "SORTIE_FLY_URL": s.FlyURL})
	}
	if s := b.settings; s.KubernetesCluster != "" {
		add(kubernetesSecret, map[string]string{
			"SORTIE_KUBERNETES_CLUSTER": s.KubernetesCluster, "SORTIE_KUBERNETES_NAMESPACES": strings.Join(s.KubernetesNamespaces, ","),
		})
	}
	return all
}
