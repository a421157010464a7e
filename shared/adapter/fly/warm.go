package fly

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/superfly/fly-go"
	"github.com/superfly/fly-go/flaps"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Prepare implements port.WarmMachines. The machine has the image and the size of its
// record, and no environment: StartWarm brings it.
func (r *Runner) Prepare(ctx context.Context, spec port.WarmSpec) (port.MachineStatus, error) {
	in, err := r.input(port.LaunchSpec{Placement: spec.Placement, Name: spec.Name, Image: spec.Image, CPUs: spec.CPUs, MemoryMB: spec.MemoryMB})
	if err != nil {
		return port.MachineStatus{}, fault.Wrap(err, fault.LaunchRefused, "cannot prepare the machine: %v", err)
	}
	in.SkipLaunch, in.Config.AutoDestroy = true, false
	in.Config.Metadata = map[string]string{
		keyCluster: r.cfg.Cluster, keyTenant: spec.Warm.Tenant, keyPool: spec.Warm.Pool, keyWarm: spec.Warm.ID,
	}
	app := spec.App
	if !slices.Contains(r.apps(spec.Placement), app) {
		app = r.AppOf(spec.Placement, spec.Name)
	}
	if !slices.Contains(r.cfg.Apps, app) { // its machines would be in no list
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "cannot prepare the machine: unknown app %q of the pool", app)
	}
	in.Region = r.regions(spec.Placement, spec.Region)[0]
	made, err := r.create(ctx, app, in)
	switch classify(err) {
	case fine:
		return converted(app, made), nil
	case nameTaken:
		return r.adoptWarm(ctx, app, spec, err)
	}
	return port.MachineStatus{}, launchFailure(ctx, err)
}

// adoptWarm returns the machine with the name if it is that of the record.
func (r *Runner) adoptWarm(ctx context.Context, app string, spec port.WarmSpec, taken error) (port.MachineStatus, error) {
	const what = "find out who has the warm machine's name"
	answer, ok := errors.AsType[*flaps.FlapsError](taken)
	var match []string
	if ok {
		match = namedID.FindStringSubmatch(answer.Error())
	}
	if match == nil {
		return port.MachineStatus{}, fault.Wrap(taken, fault.Unavailable, "cannot %s", what)
	}
	found, err := r.client.Get(ctx, app, match[1])
	if err != nil {
		return port.MachineStatus{}, failure(ctx, err, what)
	}
	if m := converted(app, found); m.Warm == spec.Warm && found.GetMetadataByKey(keyCluster) == r.cfg.Cluster {
		return m, nil
	}
	return port.MachineStatus{}, fault.Wrap(taken, fault.LaunchRefused, "the warm machine's name belongs to another machine")
}

// StartWarm implements port.WarmMachines in one call that changes the machine's
// configuration and starts it. The call names the version of the stopped machine, so that
// of two concurrent ones only the first is applied: Fly would restart a machine that runs.
func (r *Runner) StartWarm(ctx context.Context, m port.Machine, spec port.LaunchSpec) (port.MachineStatus, error) {
	const what = "start the warm machine"
	in, err := r.input(spec)
	if err != nil || !located(m) {
		err = errors.Join(err, errUnlocated(m))
		return port.MachineStatus{}, fault.Wrap(err, fault.LaunchRefused, "cannot %s: %v", what, err)
	}
	found, err := r.client.Get(ctx, m.App, m.ID)
	if err != nil {
		return port.MachineStatus{}, launchFailure(ctx, err)
	}
	switch {
	case found.GetConfig() == nil:
		return port.MachineStatus{}, fault.New(fault.Unavailable, "cannot %s: its host does not answer", what)
	case r.starts(found, spec):
		return converted(m.App, found), nil
	case found.GetMetadataByKey(keyWarm) == "" || found.State != "stopped":
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "cannot %s: it is %s, want a stopped machine that no attempt has", what, found.State)
	}
	in.Name, in.Region = "", "" // both are fixed
	err = r.update(ctx, m, in, found.InstanceID)
	switch verdict := classify(err); verdict {
	case fine, unknown, changed, busy, wrongState:
		// Look what the call, or another one of the same attempt, has done.
		now, seen := r.client.Get(ctx, m.App, m.ID)
		if seen == nil && now.GetConfig() != nil && r.starts(now, spec) {
			return converted(m.App, now), nil
		}
		if verdict == wrongState {
			return port.MachineStatus{}, launchFailure(ctx, err)
		}
		return port.MachineStatus{}, failure(ctx, errors.Join(err, seen), what)
	}
	return port.MachineStatus{}, launchFailure(ctx, err)
}

func errUnlocated(m port.Machine) error {
	if located(m) {
		return nil
	}
	return fmt.Errorf("malformed machine %q of app %q", m.ID, m.App)
}

// starts reports whether the machine was started for the attempt of the spec.
func (r *Runner) starts(m *fly.Machine, spec port.LaunchSpec) bool {
	return m.GetMetadataByKey(keyWarm) == "" && m.GetMetadataByKey(keyCluster) == r.cfg.Cluster &&
		m.GetMetadataByKey(keyTenant) == spec.Owner.Tenant && m.GetMetadataByKey(keyRun) == spec.Owner.RunID &&
		m.GetMetadataByKey(keyAttempt) == strconv.Itoa(spec.Owner.Attempt)
}

// update changes and starts a machine of a version. The client of fly-go cannot name the
// version, and would repeat the call.
func (r *Runner) update(ctx context.Context, m port.Machine, in fly.LaunchMachineInput, version string) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.CreateTimeout)
	defer cancel()
	body, err := json.Marshal(struct {
		fly.LaunchMachineInput
		CurrentVersion string `json:"current_version"`
	}{in, version})
	if err != nil {
		return fmt.Errorf("cannot encode the configuration: %w", err)
	}
	target := "https://fly/v1/apps/" + m.App + "/machines/" + m.ID // the transport sets the host
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", r.logs.token.FlapsHeader())
	request.Header.Set("Content-Type", "application/json")
	answer, err := r.logs.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, refusalLimit))
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	return &flaps.FlapsError{OriginalError: errors.Join(errors.New(string(text)), err), ResponseStatusCode: answer.StatusCode, ResponseBody: text}
}
