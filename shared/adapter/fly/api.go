package fly

import (
	"encoding/json"
	"time"
)

// machine has the fields of a machine in the API that the Runner reads.
type machine struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	State  string `json:"state"`
	Region string `json:"region"`
	// InstanceID is the id of the machine's version.
	InstanceID string `json:"instance_id"`
	PrivateIP  string `json:"private_ip"`
	ImageRef   struct {
		Digest string `json:"digest"`
	} `json:"image_ref"`
	CreatedAt string         `json:"created_at"`
	UpdatedAt string         `json:"updated_at"`
	Config    *machineConfig `json:"config"`
	// IncompleteConfig replaces Config if the machine's host does not respond.
	IncompleteConfig *machineConfig  `json:"incomplete_config"`
	Events           []*machineEvent `json:"events"`
}

// known returns the configuration, or nil if the API does not report it.
func (m *machine) known() *machineConfig {
	if m.Config != nil {
		return m.Config
	}
	return m.IncompleteConfig
}

// metadata returns a value of the metadata, or "" without one.
func (m *machine) metadata(key string) string {
	if c := m.known(); c != nil {
		return c.Metadata[key]
	}
	return ""
}

// machineEvent is something that happened to a machine.
type machineEvent struct {
	Type    string        `json:"type"`
	Status  string        `json:"status"`
	Source  string        `json:"source"`
	Request *eventRequest `json:"request"`
	// Timestamp is in milliseconds of Unix time.
	Timestamp int64 `json:"timestamp"`
}

type eventRequest struct {
	ExitEvent    *exitEvent    `json:"exit_event"`
	MonitorEvent *monitorEvent `json:"MonitorEvent"` //nolint:tagliatelle // Fly's spelling
}

type monitorEvent struct {
	ExitEvent *exitEvent `json:"exit_event"`
}

// exitEvent is the end of a program. Fly omits values of 0. -1 means no signal.
type exitEvent struct {
	ExitCode      int       `json:"exit_code"`
	GuestExitCode int       `json:"guest_exit_code"`
	GuestSignal   int       `json:"guest_signal"`
	Signal        int       `json:"signal"`
	OOMKilled     bool      `json:"oom_killed"`
	RequestedStop bool      `json:"requested_stop"`
	Restarting    bool      `json:"restarting"`
	ExitedAt      time.Time `json:"exited_at"`
}

// machineInput creates or updates a machine.
type machineInput struct {
	Config                  *machineConfig `json:"config"`
	Region                  string         `json:"region,omitempty"`
	Name                    string         `json:"name,omitempty"`
	SkipLaunch              bool           `json:"skip_launch,omitempty"`
	SkipServiceRegistration bool           `json:"skip_service_registration,omitempty"`
	SkipSecrets             bool           `json:"skip_secrets"`
	// CurrentVersion is the version that an update changes; empty when a machine is created.
	CurrentVersion string `json:"current_version,omitempty"`
}

type machineConfig struct {
	Image       string            `json:"image,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	AutoDestroy bool              `json:"auto_destroy,omitempty"`
	Init        machineInit       `json:"init"`
	Restart     *restartPolicy    `json:"restart,omitempty"`
	Guest       *guest            `json:"guest,omitempty"`
	StopConfig  *stopConfig       `json:"stop_config,omitempty"`
	DNS         *dnsConfig        `json:"dns,omitempty"`
}

type machineInit struct {
	Cmd []string `json:"cmd,omitempty"`
}

type restartPolicy struct {
	Policy string `json:"policy,omitempty"`
}

type guest struct {
	CPUKind  string `json:"cpu_kind,omitempty"`
	CPUs     int    `json:"cpus,omitempty"`
	MemoryMB int    `json:"memory_mb,omitempty"`
}

type dnsConfig struct {
	SkipRegistration bool `json:"skip_registration,omitempty"`
}

// stopConfig configures how Fly stops a machine: Signal, then SIGKILL after Timeout.
type stopConfig struct {
	Signal  string   `json:"signal,omitempty"`
	Timeout duration `json:"timeout,omitempty"`
}

// duration is a time in the API, such as "5m0s".
type duration time.Duration

// MarshalJSON implements json.Marshaler.
func (d duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON implements json.Unmarshaler. The API has strings and numbers of nanoseconds.
// The Runner reads neither.
func (d *duration) UnmarshalJSON([]byte) error { return nil }
