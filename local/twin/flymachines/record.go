package flymachines

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// The states of a machine that this server uses, in Fly's spelling.
const (
	// stateCreated: the API has created the machine, and its start is pending.
	stateCreated = "created"
	// stateStarting: a stopped machine is being started again.
	stateStarting = "starting"
	// stateStarted: the program runs.
	stateStarted = "started"
	// stateStopping: a stop was requested; the program still runs.
	stateStopping = "stopping"
	// stateStopped: the program has ended, and the machine can be started.
	stateStopped = "stopped"
	// stateLaunchFailed: the start failed. The machine is destroyed next.
	stateLaunchFailed = "launch_failed"
	// stateDestroying: the machine is being removed; its program may still run.
	stateDestroying = "destroying"
	// stateDestroyed: the machine is gone and stays readable for a while.
	stateDestroyed = "destroyed"
)

// action is a requested action that is still pending.
type action string

const (
	actionNone    action = ""
	actionStop    action = "stop"
	actionRestart action = "restart"
	actionDestroy action = "destroy"
)

// record is a machine on disk.
type record struct {
	ID     string          `json:"id"`
	App    string          `json:"app"`
	Name   string          `json:"name"`
	Region string          `json:"region"`
	State  string          `json:"state"`
	Config json.RawMessage `json:"config"`
	Argv   []string        `json:"argv"`
	// Digest is the digest of the image's program; see digests.
	Digest string `json:"digest,omitempty"`
	// Version is Fly's instance id. An update changes it.
	Version string `json:"version"`
	// Starts is the number of the current or last start. Ended is the number of the last start
	// whose end is recorded.
	Starts   int `json:"starts"`
	Ended    int `json:"ended,omitempty"`
	Restarts int `json:"restarts,omitempty"`

	Action action         `json:"action,omitempty"`
	Signal syscall.Signal `json:"signal,omitempty"`
	// KillAt is the time of SIGKILL; the zero time means never.
	KillAt time.Time `json:"killAt,omitzero"`

	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	GoneAt    time.Time `json:"goneAt,omitzero"`
	// Events are the latest events, the newest first.
	Events  []event `json:"events"`
	Defects defects `json:"defects,omitzero"`
}

// defects are the faults of this machine. A zero value means no fault.
type defects struct {
	InvisibleUntil  time.Time     `json:"invisibleUntil,omitzero"`
	StuckCreated    *stuck        `json:"stuckCreated,omitempty"`
	StuckStarting   *stuck        `json:"stuckStarting,omitempty"`
	StuckDestroying *stuck        `json:"stuckDestroying,omitempty"`
	OOM             bool          `json:"oom,omitempty"`
	OOMAfter        time.Duration `json:"oomAfter,omitempty"`
	LostExit        bool          `json:"lostExit,omitempty"`
	Unreachable     bool          `json:"unreachable,omitempty"`
}

// stuck keeps a machine in a state for the time For; 0 means without end.
type stuck struct {
	For time.Duration `json:"for,omitempty"`
}

// mostEvents is the number of events that Fly shows.
const mostEvents = 20

// event is an event in Fly's shape.
type event struct {
	ID        string        `json:"id"`
	Type      string        `json:"type"`
	Status    string        `json:"status"`
	Request   *eventRequest `json:"request,omitempty"`
	Source    string        `json:"source"`
	Timestamp int64         `json:"timestamp"`
}

type eventRequest struct {
	ExitEvent    *exitEvent `json:"exit_event,omitempty"`
	RestartCount int        `json:"restart_count"`
}

// exitEvent is an exit event in Fly's shape. A missing signal is -1.
type exitEvent struct {
	RequestedStop bool      `json:"requested_stop"`
	Restarting    bool      `json:"restarting"`
	GuestExitCode int       `json:"guest_exit_code"`
	GuestSignal   int       `json:"guest_signal"`
	GuestError    string    `json:"guest_error"`
	ExitCode      int       `json:"exit_code"`
	Signal        int       `json:"signal"`
	Error         string    `json:"error"`
	OOMKilled     bool      `json:"oom_killed"`
	ExitedAt      time.Time `json:"exited_at"`
}

func newExitEvent(exit Exit, requested, restarting, oom bool) *exitEvent {
	e := &exitEvent{
		RequestedStop: requested, Restarting: restarting, OOMKilled: oom,
		GuestExitCode: exit.Code, GuestSignal: -1, GuestError: exit.Problem,
		ExitCode: exit.Code, Signal: -1, ExitedAt: exit.At,
	}
	if exit.Signal > 0 {
		e.GuestSignal, e.Signal = exit.Signal, exit.Signal
	}
	return e
}

// add inserts an event at the front and keeps the newest mostEvents.
func (r *record) add(e event) {
	r.Events = slices.Insert(slices.Clone(r.Events), 0, e)
	r.Events = r.Events[:min(len(r.Events), mostEvents)]
}

// newest returns the id of the last event.
func (r *record) newest() string {
	if len(r.Events) == 0 {
		return ""
	}
	return r.Events[0].ID
}

// withoutSecrets returns a config without the machine's variables and files. They contain the
// token of its worker and the secrets of its job.
func withoutSecrets(config json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(config, &members) != nil {
		return config // it was parsed before
	}
	delete(members, "env")
	delete(members, "files")
	rest, _ := json.Marshal(members) //nolint:errchkjson // members are JSON
	return rest
}

// alive reports whether the machine's name is taken.
func (r *record) alive() bool { return r.State != stateDestroyed }

// starting reports whether a start of the program is pending.
func (r *record) starting() bool { return r.State == stateCreated || r.State == stateStarting }

// ending reports whether a machine without a program will be removed next.
func (r *record) ending(m *manifest) bool {
	return r.State == stateDestroying || r.Action == actionDestroy ||
		(r.State == stateStopped && r.Action == actionNone && m.AutoDestroy && r.Starts > 0)
}

// pending reports whether the machine will change without another request.
func (r *record) pending(m *manifest) bool {
	return r.alive() && (r.State != stateStopped || r.Action != actionNone || r.ending(m))
}

// machineJSON is a machine in Fly's shape.
type machineJSON struct {
	ID               string          `json:"id"`
	Name             string          `json:"name"`
	State            string          `json:"state"`
	Region           string          `json:"region"`
	ImageRef         imageRef        `json:"image_ref"`
	InstanceID       string          `json:"instance_id"`
	Version          string          `json:"version"`
	PrivateIP        string          `json:"private_ip"`
	CreatedAt        time.Time       `json:"created_at"`
	UpdatedAt        time.Time       `json:"updated_at"`
	Config           json.RawMessage `json:"config,omitempty"`
	IncompleteConfig json.RawMessage `json:"incomplete_config,omitempty"`
	Events           []event         `json:"events"`
	Checks           []struct{}      `json:"checks"`
	HostStatus       string          `json:"host_status"`
	Cordoned         bool            `json:"cordoned"`
}

func (r *record) wire(m *manifest, c Config) machineJSON {
	w := machineJSON{
		ID: r.ID, Name: r.Name, State: r.State, Region: r.Region, ImageRef: parseImage(m.Image),
		InstanceID: r.Version, Version: r.Version, PrivateIP: c.privateIP(r.ID),
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Config: r.Config, Events: r.Events,
		Checks: []struct{}{}, HostStatus: "ok",
	}
	if w.ImageRef.Digest == "" {
		w.ImageRef.Digest = r.Digest
	}
	if r.Defects.Unreachable {
		w.Config, w.IncompleteConfig, w.HostStatus = nil, r.Config, "unreachable"
	}
	return w
}

// privateIP returns the address of a machine: an unreachable one in the form of Fly's private
// network, or one of the loopback network.
func (c Config) privateIP(id string) string {
	if part, err := hex.DecodeString(id[:6]); c.Loopback && err == nil {
		return fmt.Sprintf("127.%d.%d.%d", 1+part[0]%254, part[1], 1+part[2]%254)
	}
	return "fdaa:0:0:" + id[:4] + ":" + id[4:8] + ":" + id[8:12] + ":" + id[12:] + "00:2"
}
