package watch

import (
	"errors"
	"regexp"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/setting"
)

// Settings are the environment of the agent.
type Settings struct {
	URL, TokenFile, Tenant            string
	Cluster, Orchestrator, Kubeconfig string
	Namespaces                        []string
	Health                            string
}

var (
	label   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	address = regexp.MustCompile(`^[^\s]*:[0-9]{1,5}$`)
)

func (s *Settings) settings() []setting.Setting {
	return []setting.Setting{
		setting.URL(&s.URL, "SORTIE_URL", "", "the address of Sortie; required"),
		setting.Text(&s.TokenFile, "SORTIE_TOKEN_FILE", "/var/run/secrets/sortie/token", "a file with a client token with the scope `machines:report`; it is read for each report"),
		setting.Pattern(&s.Tenant, "SORTIE_TENANT", "default", "the tenant of the token; the machines of others are not reported", label),
		setting.Pattern(&s.Cluster, "SORTIE_KUBERNETES_CLUSTER", "", "Sortie's name of the cluster; required", label),
		setting.Pattern(&s.Orchestrator, "SORTIE_ORCHESTRATOR", "", "the label `sortie/orchestrator` of the Jobs; required", label),
		setting.List(&s.Namespaces, "SORTIE_KUBERNETES_NAMESPACES", "sortie", "the namespaces with machines"),
		setting.Text(&s.Kubeconfig, "SORTIE_KUBERNETES_CONFIG", "", "a kubeconfig file; empty is the cluster that the agent runs in"),
		setting.Pattern(&s.Health, "SORTIE_HEALTH_ADDRESS", ":8081", "the address of `/healthz`", address),
	}
}

// Documented returns the variables, for documentation.
func Documented() []setting.Setting { return new(Settings).settings() }

// ReadSettings reads the environment. The error joins all problems, each with its variable.
func ReadSettings(environ []string) (Settings, error) {
	var s Settings
	values := map[string]string{}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		values[name] = value
	}
	_, err := setting.Read(setting.Map(values), s.settings())
	for name, value := range map[string]string{"SORTIE_URL": s.URL, "SORTIE_KUBERNETES_CLUSTER": s.Cluster, "SORTIE_ORCHESTRATOR": s.Orchestrator} {
		if value == "" {
			err = errors.Join(err, errors.New(name+" is not set"))
		}
	}
	return s, err
}
