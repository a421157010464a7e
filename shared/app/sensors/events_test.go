package sensors_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sortie-dev/sortie/shared/app/sensors"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/port"
)

// runs has one job and the runs of its events. It creates at most room runs.
type runs struct {
	job  job.Job
	made map[string]bool
	room int
}

// Job implements sensors.Runs.
func (f *runs) Job(_ context.Context, who port.Identity, id string) (job.Job, error) {
	if who.Tenant != f.job.Tenant || id != f.job.ID {
		return job.Job{}, fault.New(fault.NotFound, "no such job")
	}
	return f.job, nil
}

// RunEvent implements sensors.Runs.
func (f *runs) RunEvent(_ context.Context, j job.Job, e sensor.Event, by sensors.Request) (run.Run, bool, error) {
	r := run.Run{Tenant: by.Identity.Tenant, ID: run.ItemID(j.ID, e.Key())}
	existing := f.made[r.ID]
	if !existing && len(f.made) == f.room {
		return run.Run{}, false, fault.New(fault.AdmissionReject, "the queue is full")
	}
	f.made[r.ID] = true
	return r, existing, nil
}

func setup() (*runs, *sensors.Events, sensors.Request) {
	f := &runs{made: map[string]bool{}, room: 100, job: job.Job{Tenant: "acme", ID: "order", Definition: job.Definition{
		ID: "order", Sensor: &sensor.Settings{CloudEvent: &sensor.CloudEvents{Types: []string{"order.*"}}},
	}}}
	return f, sensors.NewEvents(f), sensors.Request{Identity: port.Identity{Tenant: "acme"}}
}

func event(id, kind string) sensor.Event { return sensor.Event{ID: id, Source: "/shop", Type: kind} }

// results returns the result of each receipt.
func results(receipts []sensors.Receipt) (found []string) {
	for _, r := range receipts {
		found = append(found, fmt.Sprintf("%s ignored=%v existing=%v", r.Event.ID, r.Ignored, r.Existing))
	}
	return found
}

// TestRepeatedBatchContinues fails in the middle of a batch, which is then sent again.
func TestRepeatedBatchContinues(t *testing.T) {
	t.Parallel()
	f, svc, by := setup()
	batch := []sensor.Event{event("1", "order.paid"), event("2", "invoice"), event("3", "order.paid")}
	f.room = 1
	if got, err := svc.Receive(t.Context(), "order", batch, by); !fault.Is(err, fault.AdmissionReject) || got != nil {
		t.Fatalf("got %v, %v, want AdmissionReject", results(got), err)
	}
	f.room = 2
	got, err := svc.Receive(t.Context(), "order", batch, by)
	want := "[1 ignored=false existing=true 2 ignored=true existing=false 3 ignored=false existing=false]"
	if err != nil || fmt.Sprint(results(got)) != want || len(f.made) != 2 {
		t.Errorf("got %v, %v and %d runs, want %s and 2", results(got), err, len(f.made), want)
	}
}

func TestJobTakesNoEvents(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(f *runs, by *sensors.Request)
		want   fault.Code
	}{
		"paused":         {func(f *runs, _ *sensors.Request) { f.job.Paused = true }, fault.JobPaused},
		"no sensor":      {func(f *runs, _ *sensors.Request) { f.job.Definition.Sensor = nil }, fault.Unprocessable},
		"other tenant":   {func(_ *runs, by *sensors.Request) { by.Identity.Tenant = "other" }, fault.NotFound},
		"another sensor": {func(f *runs, _ *sensors.Request) { f.job.Definition.Sensor = &sensor.Settings{} }, fault.Unprocessable},
	} {
		f, svc, by := setup()
		row.change(f, &by)
		if _, err := svc.Receive(t.Context(), "order", []sensor.Event{event("1", "order.paid")}, by); !fault.Is(err, row.want) || len(f.made) != 0 {
			t.Errorf("%s: got %v and %d runs, want %s and none", name, err, len(f.made), row.want)
		}
	}
}
