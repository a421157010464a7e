package run_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestRetryIsANewRunOfTheSameWork sets every field of a run. A retry must have the fields that
// the run was created with, and no field that its attempts set.
func TestRetryIsANewRunOfTheSameWork(t *testing.T) {
	t.Parallel()
	var old run.Run
	fill(reflect.ValueOf(&old).Elem(), 0)
	again := old.ForRetry()
	if again.RetryOf != old.TaskID {
		t.Errorf("got a retry of %q, want %q", again.RetryOf, old.TaskID)
	}
	if c := *again.Constraints; c.RequirePreviousSuccess || c.MaxConcurrentRuns != old.Constraints.MaxConcurrentRuns || !old.Constraints.RequirePreviousSuccess {
		t.Errorf("got constraints %+v, want those of the run without requirePreviousSuccess", c)
	}
	if want := (platform.Slot{Pool: old.Detour.Home}); again.Slot != want {
		t.Errorf("got slot %+v, want %+v", again.Slot, want)
	}
	kept := []string{
		"Tenant", "Workspace", "BatchID", "PayloadDigest", "Work", "Policy", "JobID", "JobVersion", "Parameters", "Inputs", "Event", "Labels", "Trigger", "Lineage", "ParentRun", "Parent", "Graph", "Actions",
		"Priority", "Concurrency", "Override", "Routes",
	}
	changed := []string{"RetryOf", "RetriedAt", "Constraints", "Slot", "Child"}
	life := []string{
		"ID", "TaskID", "CorrelationID", "CreatedBy", "Exec", "TraceParent", "FiredAt", "Serves", "Followers", "CancelsRest", "Violations", "Acting", "FailedActions", "Skipped", "Overflowed", "Missed", "Triggered", "State", "Version", "EventCount",
		"CreatedAt", "ScheduledAt", "EnteredAt", "StartedAt", "EndedAt", "ExpiresAt", "LogsExpireAt", "Pin", "Held", "Attempt", "Detour", "Spent", "Tally", "JobSlot", "KeySlot",
		"Prediction", "Fan", "Expectation", "Shadow", "Wait", "Execution", "Cancel", "Reservation", "RetryAt", "Generation", "FailedReplicas", "Discarded", "AnswerDeleted", "Output", "Logs", "Deletion", "Fault",
	}
	for field := range reflect.TypeFor[run.Run]().Fields() {
		was, is := reflect.ValueOf(old).FieldByIndex(field.Index), reflect.ValueOf(again).FieldByIndex(field.Index)
		switch {
		case was.IsZero():
			t.Errorf("%s: got no value in the test, want one", field.Name)
		case slices.Contains(changed, field.Name):
		case slices.Contains(kept, field.Name):
			if !reflect.DeepEqual(was.Interface(), is.Interface()) {
				t.Errorf("%s: got %v, want %v", field.Name, is, was)
			}
		case !slices.Contains(life, field.Name):
			t.Errorf("%s: got an unknown field, want a decision of Run.ForRetry about it", field.Name)
		case !is.IsZero():
			t.Errorf("%s: got %v, want nothing of the ended run", field.Name, is)
		}
	}
}

// fill sets every exported field, element and map entry of a value, recursively.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("text")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if at, ok := reflect.TypeAssert[*time.Time](v.Addr()); ok {
			*at = time.Unix(1, 0)
			return
		}
		for _, field := range v.Fields() {
			if field.CanSet() && depth < 8 {
				fill(field, depth+1)
			}
		}
	}
}
