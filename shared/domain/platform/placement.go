// Package platform describes where the work of a pool runs: in machines of a runner, with its
// settings, or on the replicas of an inference server.
package platform

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/label"
)

// The names of runners.
const (
	RunnerFly        = "fly"        // Fly Machines, or their local API
	RunnerKubernetes = "kubernetes" // Kubernetes Jobs
	RunnerContainer  = "container"  // a container engine on the server's host
	RunnerProcess    = "process"    // processes of the server's host
)

// Runners lists the names of all runners.
func Runners() []string {
	return []string{RunnerFly, RunnerKubernetes, RunnerContainer, RunnerProcess}
}

// Placement is where the machines of a pool are created: a runner and its settings. The zero
// value is the default runner of the deployment. Only the settings of Runner may be set; nil
// means the settings of the deployment.
type Placement struct {
	Runner     string              `json:"runner,omitempty"`
	Fly        *FlySettings        `json:"fly,omitempty"`
	Kubernetes *KubernetesSettings `json:"kubernetes,omitempty"`
	Container  *ContainerSettings  `json:"container,omitempty"`
}

// FlySettings are the settings of RunnerFly. Empty lists mean those of the deployment.
type FlySettings struct {
	// Apps are the apps in which machines are created.
	Apps []string `json:"apps,omitempty"`
	// Regions are tried in this order, after the region of the job.
	Regions []string `json:"regions,omitempty"`
}

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

// ContainerSettings are the settings of RunnerContainer. Empty strings mean those of the
// deployment.
type ContainerSettings struct {
	// Socket is the absolute path of the engine's socket. The deployment must allow it.
	Socket string `json:"socket,omitempty"`
	// Network is the name of the engine's network that the containers join.
	Network string `json:"network,omitempty"`
}

// Equal reports whether both placements are the same.
func (p Placement) Equal(other Placement) bool { return reflect.DeepEqual(p, other) }

// RunnerOffer lists the runners and values that pools of a deployment can use.
type RunnerOffer struct {
	// Runners are the names of the runners. The first one is the default.
	Runners []string
	// FlyApps, Clusters and Sockets are the allowed values of settings.
	FlyApps, Clusters, Sockets []string
	// Hosted are the runners whose machines share the network of this host, so that their
	// programs can be called at the loopback address. Addressed are the runners that report
	// addresses of their machines.
	Hosted, Addressed []string
}

// Shares reports whether machines with the placement share the network of this host.
func (o RunnerOffer) Shares(where Placement) bool {
	return slices.Contains(o.Hosted, cmp.Or(where.Runner, o.Default()))
}

// Reaches reports whether programs in machines with the placement can be called.
func (o RunnerOffer) Reaches(where Placement) bool {
	return o.Shares(where) || slices.Contains(o.Addressed, cmp.Or(where.Runner, o.Default()))
}

// Default returns the runner of pools that name none; empty if the deployment has no runner.
func (o RunnerOffer) Default() string {
	if len(o.Runners) == 0 {
		return ""
	}
	return o.Runners[0]
}

// The limits of settings.
const (
	maxApps        = 100
	maxRegions     = 100
	maxPodDefaults = 32 << 10
	maxLabels      = 16
)

var (
	appName       = limit.Form{First: limit.Letters + limit.Digits + "_-", Rest: limit.Letters + limit.Digits + "_-", Most: 63}
	regionName    = limit.Form{First: limit.Lower + limit.Digits, Rest: limit.Lower + limit.Digits + "-", Most: 32}
	namespaceName = limit.DNSLabel()
	networkName   = limit.Form{First: limit.Letters + limit.Digits, Rest: limit.Letters + limit.Digits + "_.-", Most: 128}
)

// Check returns the faults of a placement that is invalid for a pool of the deployment, each
// with the field: InvalidRequest for a malformed value, RunnerNotAllowed for a runner that the
// deployment does not offer, and Unprocessable for settings that it does not offer.
func (p Placement) Check(o RunnerOffer) []*fault.Fault {
	if p.Runner == "" {
		return nil
	}
	if !slices.Contains(Runners(), p.Runner) {
		return []*fault.Fault{fault.Invalid("runner", "unknown runner %q, want %s", limit.Cut(p.Runner, limit.FileName), strings.Join(Runners(), " or "))}
	}
	if !slices.Contains(o.Runners, p.Runner) {
		f := fault.New(fault.RunnerNotAllowed, "the deployment has no runner %s, want %s", p.Runner, listed(o.Runners, "no runner"))
		f.Field = "runner"
		return []*fault.Fault{f}
	}
	var found []*fault.Fault
	add := func(faults ...*fault.Fault) {
		found = append(found, slices.DeleteFunc(faults, func(f *fault.Fault) bool { return f == nil })...)
	}
	switch {
	case p.Fly != nil:
		add(p.Fly.check(o)...)
	case p.Kubernetes != nil:
		add(p.Kubernetes.check(o)...)
	case p.Container != nil:
		add(p.Container.check(o)...)
	}
	return found
}

// check returns a fault for each invalid setting. The list can contain nil.
func (s FlySettings) check(o RunnerOffer) []*fault.Fault {
	found := checkNames("settings.apps", s.Apps, maxApps, appName, "1 to 63 letters, digits, _ and -")
	if len(found) == 0 {
		for i, app := range s.Apps {
			found = append(found, offered("settings.apps."+strconv.Itoa(i), "app", app, o.FlyApps))
		}
	}
	return append(found, checkNames("settings.regions", s.Regions, maxRegions, regionName, "1 to 32 lower-case letters, digits and hyphens")...)
}

func (s KubernetesSettings) check(o RunnerOffer) []*fault.Fault {
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

func (s ContainerSettings) check(o RunnerOffer) []*fault.Fault {
	var network, socket *fault.Fault
	if s.Network != "" && !networkName.Matches(s.Network) {
		network = fault.Invalid("settings.network", "malformed network %q, want 1 to 128 letters, digits, '_', '.' and '-'", limit.Cut(s.Network, limit.FileName))
	}
	switch {
	case s.Socket == "":
	case !path.IsAbs(s.Socket) || path.Clean(s.Socket) != s.Socket || !limit.Printable(s.Socket):
		socket = fault.Invalid("settings.socket", "malformed socket %q, want an absolute path", limit.Cut(s.Socket, limit.FileName))
	default:
		socket = offered("settings.socket", "socket", s.Socket, o.Sockets)
	}
	return []*fault.Fault{socket, network}
}

// checkNames returns the faults of a list of names: too many, malformed, or repeated.
func checkNames(field string, names []string, most int, form limit.Form, want string) (found []*fault.Fault) {
	if len(names) > most {
		return []*fault.Fault{fault.Invalid(field, "%d entries, want at most %d", len(names), most)}
	}
	for i, name := range names {
		at := field + "." + strconv.Itoa(i)
		switch {
		case !form.Matches(name):
			found = append(found, fault.Invalid(at, "malformed name %q, want %s", limit.Cut(name, limit.FileName), want))
		case slices.Contains(names[:i], name):
			found = append(found, fault.Invalid(at, "repeated name %q, want each once", name))
		}
	}
	return found
}

// offered returns a fault if the deployment does not offer the value; nil otherwise.
func offered(field, what, value string, values []string) *fault.Fault {
	if slices.Contains(values, value) {
		return nil
	}
	f := fault.New(fault.Unprocessable, "the deployment does not offer the %s %q, want %s", what, limit.Cut(value, limit.FileName), listed(values, "no "+what))
	f.Field = field
	return f
}

func listed(values []string, none string) string {
	if len(values) == 0 {
		return none
	}
	return strings.Join(values, " or ")
}
