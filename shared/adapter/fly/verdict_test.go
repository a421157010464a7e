package fly

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// answered returns the client's error for a response.
func answered(status int, body string) error {
	recorder := httptest.NewRecorder()
	recorder.WriteHeader(status)
	recorder.Body.WriteString(body)
	return fmt.Errorf("cannot launch: %w", refusedBy(recorder.Result()))
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want verdict
		code fault.Code // of a launch
	}{
		"a connection that ended":       {io.ErrUnexpectedEOF, unknown, fault.Unavailable},
		"a bad gateway":                 {answered(502, "bad gateway"), unknown, fault.Unavailable},
		"an internal error":             {answered(500, "internal"), unknown, fault.Unavailable},
		"a gateway timeout":             {answered(504, ""), unknown, fault.Unavailable},
		"a timeout":                     {answered(408, "deadline_exceeded: request timed out"), unknown, fault.Unavailable},
		"end of a wait":                 {answered(408, "deadline_exceeded: machine failed to reach desired state, started, currently created"), notYet, fault.Unavailable},
		"name in use":                   {answered(409, `already_exists: unique machine name violation, machine ID 1 already exists with name "insufficient memory"`), nameTaken, fault.Unavailable},
		"too many requests":             {answered(429, "resource_exhausted: rate limit exceeded"), throttled, fault.Throttled},
		"no memory":                     {answered(409, "aborted: could not reserve resource for machine: insufficient memory available to fulfill request"), noRoom, fault.Capacity},
		"no CPUs":                       {answered(409, "aborted: could not reserve resource for machine: insufficient CPUs available to fulfill request"), noRoom, fault.Capacity},
		"no capacity":                   {answered(409, "aborted: no capacity"), noRoom, fault.Capacity},
		"no capacity, by code":          {answered(422, `{"error":"sorry","status":"insufficient_capacity"}`), noRoom, fault.Capacity},
		"no capacity, 400":              {answered(400, "invalid_argument: no capacity"), noRoom, fault.Capacity},
		"no capacity beside the volume": {answered(412, "insufficient resources to create new machine with existing volume"), noRoom, fault.Capacity},
		"the quota":                     {answered(403, "this is over the allowed quota. please consider other regions"), noRoom, fault.Capacity},
		"a lease":                       {answered(409, "aborted: machine ID 1 lease currently held by me, expires at 2025"), busy, fault.Unavailable},
		"another version":               {answered(409, "aborted: machine version mismatch: want 01J, have 01K"), changed, fault.Unavailable},
		"a conflict without a cause":    {answered(409, "aborted"), busy, fault.Unavailable},
		"another conflict":              {answered(409, "failed_precondition"), refused, fault.LaunchRefused},
		"no image":                      {answered(400, "invalid_argument: failed to get manifest registry.fly.io/x: not found"), badImage, fault.Image},
		"no image, 404":                 {answered(404, `could not find image "x"`), badImage, fault.Image},
		"a bad token":                   {answered(401, "unauthorized"), badToken, fault.LaunchRefused},
		"app of another organization":   {answered(403, "unauthorized"), badToken, fault.LaunchRefused},
		"no app":                        {answered(404, "app not found"), noApp, fault.LaunchRefused},
		"no machine":                    {answered(404, "machine not found"), noMachine, fault.LaunchRefused},
		"not in this state":             {answered(412, "failed_precondition: unable to stop machine from current state: 'created'"), wrongState, fault.LaunchRefused},
		"no payment":                    {answered(422, "To create more than 1 machine per app please add a payment method"), refused, fault.LaunchRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := classify(test.err); got != test.want {
				t.Errorf("classify(%v): got %d, want %d", test.err, got, test.want)
			}
			if err := launchFailure(t.Context(), test.err); !fault.Is(err, test.code) || !errors.Is(err, test.err) {
				t.Errorf("launch: got %v, want %s", err, test.code)
			}
			// Only a launch can be refused.
			want := fault.Unavailable
			if test.want == throttled {
				want = fault.Throttled
			}
			if err := failure(t.Context(), test.err, "look"); !fault.Is(err, want) {
				t.Errorf("other call: got %v, want %s", err, want)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := launchFailure(ctx, test.err); !fault.Is(err, fault.Unavailable) || !errors.Is(err, context.Canceled) {
				t.Errorf("ended context: got %v", err)
			}
		})
	}
}

func TestPhases(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]port.MachinePhase{
		"created": port.MachineCreating, "starting": port.MachineCreating, "started": port.MachineRunning,
		"stopping": port.MachineEnding, "stopped": port.MachineEnding, "failed": port.MachineEnding,
		"launch_failed": port.MachineEnding, "destroying": port.MachineEnding, "destroyed": port.MachineGone,
		"suspended": port.MachineUnknown, "replaced": port.MachineUnknown, "migrated": port.MachineUnknown,
		"": port.MachineUnknown, "dreaming": port.MachineUnknown,
	} {
		if got := phase(state); got != want {
			t.Errorf("%q: got %s, want %s", state, got, want)
		}
	}
}

func TestExits(t *testing.T) {
	t.Parallel()
	at := time.Date(2025, 5, 1, 10, 0, 0, 0, time.UTC)
	exited := func(e exitEvent) *machineEvent {
		e.ExitedAt = at
		return &machineEvent{Type: "exit", Status: "stopped", Request: &eventRequest{ExitEvent: &e}, Timestamp: at.UnixMilli()}
	}
	simple := func(kind string) *machineEvent { return &machineEvent{Type: kind} }
	for name, test := range map[string]struct {
		events []*machineEvent
		want   *port.Exit
	}{
		"none":            {nil, nil},
		"running":         {[]*machineEvent{simple("start"), simple("launch")}, nil},
		"started again":   {[]*machineEvent{simple("start"), exited(exitEvent{ExitCode: 1})}, nil},
		"about to be":     {[]*machineEvent{exited(exitEvent{ExitCode: 1, Restarting: true})}, nil},
		"lost":            {[]*machineEvent{simple("destroy"), simple("start")}, nil},
		"without details": {[]*machineEvent{simple("destroy"), {Type: "exit"}}, nil},
		"success":         {[]*machineEvent{simple("destroy"), nil, exited(exitEvent{Signal: -1, GuestSignal: -1})}, &port.Exit{At: at}},
		"code":            {[]*machineEvent{exited(exitEvent{ExitCode: 3, Signal: -1})}, &port.Exit{Code: 3, At: at}},
		"requested": {
			[]*machineEvent{simple("stop"), exited(exitEvent{ExitCode: 143, Signal: 15, RequestedStop: true})},
			&port.Exit{Code: 143, Signal: 15, Requested: true, At: at},
		},
		"signal alone": {[]*machineEvent{exited(exitEvent{Signal: -1, GuestSignal: 9})}, &port.Exit{Code: 137, Signal: 9, At: at}},
		"killed from outside": {
			[]*machineEvent{exited(exitEvent{ExitCode: 137, Signal: -1, GuestSignal: -1, RequestedStop: true})},
			&port.Exit{Code: 137, Signal: 9, Requested: true, At: at},
		},
		"its own 137": {
			[]*machineEvent{exited(exitEvent{ExitCode: 137, GuestExitCode: 137, Signal: -1, GuestSignal: -1})},
			&port.Exit{Code: 137, At: at},
		},
		"memory": {[]*machineEvent{exited(exitEvent{ExitCode: 137, Signal: -1, OOMKilled: true})}, &port.Exit{Code: 137, OOM: true, At: at}},
		"monitored": {
			[]*machineEvent{{Type: "exit", Timestamp: at.UnixMilli(), Request: &eventRequest{
				ExitEvent:    &exitEvent{ExitCode: 1},
				MonitorEvent: &monitorEvent{ExitEvent: &exitEvent{ExitCode: 2}},
			}}},
			&port.Exit{Code: 2, At: at},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, exit(&machine{Events: test.events})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzMachineInAPath(f *testing.F) {
	for _, seed := range [][2]string{{"app", "0123"}, {"", "b"}, {"a", ""}, {"a/..", "b"}, {"a", "b?c"}, {"a%2f", "b"}, {"a", "b#c"}, {"..", "b"}, {"a", ".."}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, app, id string) {
		if !located(port.Machine{App: app, ID: id}) {
			return
		}
		path := "/v1/apps/" + app + "/machines/" + id
		if u, err := url.Parse("https://api.example" + path); err == nil && (u.JoinPath().Path != path || u.RawQuery != "" || u.Fragment != "") {
			t.Errorf("app %q and id %q: got path %q, want %q", app, id, u.JoinPath().Path, path)
		}
	})
}
