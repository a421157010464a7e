package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Config configures a Runner. Client, Cluster, Orchestrator, Namespaces, Clock and Log
// are required.
type Config struct {
	// Client is the client of the cluster; see Connect.
	Client Client
	// Cluster is the name of the cluster in this deployment, as in Machine.Cluster.
	Cluster string
	// Orchestrator distinguishes the Sortie instances that share a namespace. It is the value
	// of a label: 1 to 63 letters, digits, '-', '_' and '.'.
	Orchestrator string
	// Namespaces are the namespaces that can have machines. The first one is for launches
	// without a namespace.
	Namespaces []string
	// PodDefaults is a pod specification, a JSON object. Those of pools and jobs override it.
	// It may be empty.
	PodDefaults json.RawMessage
	// StartWait is how long a launch observes a pod that has not started, to report why; 0 is
	// DefaultStartWait. Unschedulable is how long the pod may be unschedulable within this
	// time, for a cluster that adds nodes; 0 is DefaultUnschedulable.
	StartWait, Unschedulable time.Duration
	// KeepFor is how long the Job of a machine that is gone is kept, with its exit and its
	// log; 0 is DefaultKeepFor.
	KeepFor time.Duration
	// Poll makes the Runner read by calls instead of a watch. It is for a process that is
	// suspended between its calls, such as a Lambda function.
	Poll bool

	Clock clock.Clock
	Log   *slog.Logger
}

// Defaults of Config.
const (
	DefaultStartWait     = 20 * time.Second
	DefaultUnschedulable = 5 * time.Second
	DefaultKeepFor       = 15 * time.Minute
)

func (c Config) complete() (Config, error) {
	var problems []error
	missing := func(is bool, what string) {
		if is {
			problems = append(problems, errors.New(what))
		}
	}
	missing(c.Client == nil, "the client is missing")
	missing(c.Cluster == "", "the cluster's name is missing")
	missing(!labelValue.Matches(c.Orchestrator), fmt.Sprintf("orchestrator: malformed label %q, want 1 to 63 letters, digits, '-', '_' and '.'", c.Orchestrator))
	missing(len(c.Namespaces) == 0, "a namespace is missing")
	missing(c.Clock == nil, "the clock is missing")
	missing(c.Log == nil, "the logger is missing")
	seen := map[string]bool{}
	for _, name := range c.Namespaces {
		missing(!nameSpace.Matches(name), fmt.Sprintf("malformed namespace %q, want 1 to 63 lower-case letters, digits and hyphens", name))
		missing(seen[name], fmt.Sprintf("repeated namespace %q, want each once", name))
		seen[name] = true
	}
	if err := join(checkPod("podDefaults", c.PodDefaults, authorPool)); err != nil {
		problems = append(problems, err)
	}
	if len(problems) > 0 {
		return Config{}, fmt.Errorf("cannot use Kubernetes: %w", errors.Join(problems...))
	}
	orElse := func(d *time.Duration, other time.Duration) {
		if *d <= 0 {
			*d = other
		}
	}
	orElse(&c.StartWait, DefaultStartWait)
	orElse(&c.Unschedulable, DefaultUnschedulable)
	orElse(&c.KeepFor, DefaultKeepFor)
	return c, nil
}
