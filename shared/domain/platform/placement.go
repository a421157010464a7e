// Package platform describes pools and where their work runs: the slots and fallbacks of a pool,
// its warm machines, and the machines of a runner or the replicas of an inference server, with
// their settings.
package platform

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// The names of runners.
const (
	RunnerFly        = "fly"        // Fly Machines, or their local API
	RunnerKubernetes = "kubernetes" // Kubernetes Jobs
	RunnerContainer  = "container"  // a container engine on the server's host
	RunnerProcess    = "process"    // processes of the server's host
)

// runners declares the runners, in the order of the documents.
var runners = []struct {
	name string
	// settings returns empty settings; nil for a runner without settings.
	settings func() Settings
	// warm: the runner can create machines first and start them later.
	warm bool
}{
	{RunnerFly, func() Settings { return &FlySettings{} }, true},
	{RunnerKubernetes, func() Settings { return &KubernetesSettings{} }, false},
	{RunnerContainer, func() Settings { return &ContainerSettings{} }, false},
	{RunnerProcess, nil, true},
}

// Runners lists the names of all runners.
func Runners() (names []string) {
	for _, r := range runners {
		names = append(names, r.name)
	}
	return names
}

// KeepsWarm reports whether the runner can create machines first and start them later.
func KeepsWarm(runner string) bool {
	for _, r := range runners {
		if r.name == runner {
			return r.warm
		}
	}
	return false
}

// Settings are the settings of a runner: a pointer to a struct with JSON names. Absent members
// mean those of the deployment.
type Settings interface {
	// check returns a fault for each invalid setting. The list can contain nil.
	check(o RunnerOffer) []*fault.Fault
}

// NewSettings returns empty settings of a runner; nil for a runner without settings.
func NewSettings(runner string) Settings {
	for _, r := range runners {
		if r.name == runner && r.settings != nil {
			return r.settings()
		}
	}
	return nil
}

// Placement is where the machines of a pool are created: a runner and its settings. The zero
// value is the default runner of the deployment.
type Placement struct {
	Runner string
	// Settings are those of Runner; nil means those of the deployment.
	Settings Settings
}

// SettingsOf returns the settings of a placement if they have the type; otherwise nil.
func SettingsOf[T any](p Placement) *T {
	settings, _ := any(p.Settings).(*T)
	return settings
}

// MarshalJSON returns an object with the runner, and with the settings in a member with the name
// of the runner.
func (p Placement) MarshalJSON() ([]byte, error) {
	if p.Runner == "" {
		return []byte("{}"), nil
	}
	text := fmt.Appendf(nil, `{"runner":%q`, p.Runner)
	if p.Settings != nil {
		settings := bytes.NewBuffer(fmt.Appendf(text, ",%q:", p.Runner))
		encoder := json.NewEncoder(settings)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(p.Settings); err != nil {
			return nil, fmt.Errorf("cannot encode the settings of the runner %s: %w", p.Runner, err)
		}
		text = bytes.TrimSuffix(settings.Bytes(), []byte("\n"))
	}
	return append(text, '}'), nil
}

// UnmarshalJSON reads the output of MarshalJSON.
func (p *Placement) UnmarshalJSON(text []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return fmt.Errorf("malformed placement: %w", err)
	}
	*p = Placement{}
	if runner := members["runner"]; runner != nil {
		if err := json.Unmarshal(runner, &p.Runner); err != nil {
			return fmt.Errorf("malformed runner of a placement: %w", err)
		}
	}
	settings, into := members[p.Runner], NewSettings(p.Runner)
	if settings == nil || into == nil {
		return nil
	}
	if err := json.Unmarshal(settings, into); err != nil {
		return fmt.Errorf("malformed settings of the runner %s: %w", p.Runner, err)
	}
	p.Settings = into
	return nil
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
	if p.Settings != nil {
		found = slices.DeleteFunc(p.Settings.check(o), func(f *fault.Fault) bool { return f == nil })
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
