package flymachines

import (
	"encoding/json"
	"slices"
	"syscall"
	"time"
)

// The states of a machine that this server knows, in Fly's words.
const (
	// stateCreated: the API has made it, and it is about to be started.
	stateCreated = "created"
	// stateStarting: a stopped machine is started again.
	stateStarting = "starting"
	// stateStarted: the program runs.
	stateStarted = "started"
	// stateStopping: somebody asked it to stop; the program still runs.
	stateStopping = "stopping"
	// stateStopped: the program has ended, and the machine can be started.
	stateStopped = "stopped"
	// stateLaunchFailed: it could not be started. It is destroyed next.
	stateLaunchFailed = "launch_failed"
	// stateDestroying: it is being removed; its program may still be dying.
	stateDestroying = "destroying"
	// stateDestroyed: it is gone and stays readable for a while.
	stateDestroyed = "destroyed"
)

// wish is what somebody asked for and has not happened yet.
type wish string

const (
	wishNone    wish = ""
	wishStop    wish = "stop"
	wishRestart wish = "restart"
	wishDestroy wish = "destroy"
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
	// Version is Fly's instance id: it has one, because there are no updates.
	Version string `json:"version"`
	// Starts is the number of the start that happens or happened last.
	// Ended is the number of the start whose end is in the events.
	Starts   int `json:"starts"`
	Ended    int `json:"ended,omitempty"`
	Restarts int `json:"restarts,omitempty"`

	Wish   wish           `json:"wish,omitempty"`
	Signal syscall.Signal `json:"signal,omitempty"`
	// KillAt is when SIGKILL follows; the zero time is never.
	KillAt time.Time `json:"killAt,omitzero"`

	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	GoneAt    time.Time `json:"goneAt,omitzero"`
	// Events are the last ones, the newest first.
	Events  []event `json:"events"`
	Defects defects `json:"lies,omitzero"`
}

// lies are the faults that strike this machine. A zero time is no fault.
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

// stuck is how long a state is kept; 0 is for ever.
type stuck struct {
	For time.Duration `json:"for,omitempty"`
}

// mostEvents is how many Fly shows.
const mostEvents = 20

// event is one in Fly's shape.
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

// exitEvent is Fly's. Signals are -1 where there is none.
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

// add puts an event in front and moves the state, where the event's status is
// one (a "pending" is none).
func (r *record) add(e event) {
	r.Events = slices.Insert(slices.Clone(r.Events), 0, e)
	r.Events = r.Events[:min(len(r.Events), mostEvents)]
}

// newest gives the id of the last event.
func (r *record) newest() string {
	if len(r.Events) == 0 {
		return ""
	}
	return r.Events[0].ID
}

// alive says whether its name is taken.
func (r *record) alive() bool { return r.State != stateDestroyed }

// starting says whether the machine is on its way to its program.
func (r *record) starting() bool { return r.State == stateCreated || r.State == stateStarting }

// ending says whether the machine, which has no program, is on its way out.
func (r *record) ending(m *manifest) bool {
	return r.State == stateDestroying || r.Wish == wishDestroy ||
		(r.State == stateStopped && r.Wish == wishNone && m.AutoDestroy && r.Starts > 0)
}

// pending says whether something is about to happen to the machine by itself.
func (r *record) pending(m *manifest) bool {
	return r.alive() && (r.State != stateStopped || r.Wish != wishNone || r.ending(m))
}

// wire is a machine in Fly's shape.
type wire struct {
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

func (r *record) wire(m *manifest) wire {
	w := wire{
		ID: r.ID, Name: r.Name, State: r.State, Region: r.Region, ImageRef: parseImage(m.Image),
		InstanceID: r.Version, Version: r.Version, PrivateIP: privateIP(r.ID),
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Config: r.Config, Events: r.Events,
		Checks: []struct{}{}, HostStatus: "ok",
	}
	if r.Defects.Unreachable {
		w.Config, w.IncompleteConfig, w.HostStatus = nil, r.Config, "unreachable"
	}
	return w
}

// privateIP is an address as Fly's private network has them; nothing answers
// there.
func privateIP(id string) string {
	return "fdaa:0:0:" + id[:4] + ":" + id[4:8] + ":" + id[8:12] + ":" + id[12:] + "00:2"
}
