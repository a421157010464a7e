package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestTriggeredRunKnowsItsParent checks the variables of a program and the task of a run: with
// a parent that has an output, with one that has no output, and without a parent.
func TestTriggeredRunKnowsItsParent(t *testing.T) {
	t.Parallel()
	output := run.Upload{Key: "k", FileName: "version.txt", Size: 5, Digest: "sha256:1"}
	parent := run.Parent{JobRun: run.JobRun{JobID: "build", RunID: "build:1"}, State: run.Completed}
	without := map[string]string{contract.ParentRunVariable: "build:1", contract.ParentJobVariable: "build", contract.ParentStateVariable: "Completed"}
	with := map[string]string{
		contract.ParentRunVariable: "build:1", contract.ParentJobVariable: "build", contract.ParentStateVariable: "Completed",
		contract.ParentOutputURLVariable: "https://store.example/k", contract.ParentOutputNameVariable: "version.txt",
		contract.ParentOutputSizeVariable: "5", contract.ParentOutputDigestVariable: "sha256:1",
	}
	for name, row := range map[string]struct {
		output *run.Upload
		parent bool
		want   map[string]string
	}{"no parent": {}, "no output": {nil, true, without}, "output": {&output, true, with}} {
		r := run.Run{ID: "publish:1", TaskID: "job_1", JobID: "publish", Work: spec.Work{Kind: spec.KindJob, Program: &spec.Program{}}}
		if row.parent {
			p := parent
			p.Output = row.output
			r.Parent, r.ParentRun, r.Lineage = &p, "build:1", []string{"extract", "build"}
		}
		env, err := api.Environment(runs.Assignment{Run: r, ParentOutputURL: "https://store.example/k"})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, variable := range []string{
			contract.ParentRunVariable, contract.ParentJobVariable, contract.ParentStateVariable, contract.ParentOutputURLVariable,
			contract.ParentOutputNameVariable, contract.ParentOutputSizeVariable, contract.ParentOutputDigestVariable,
		} {
			if value, has := env[variable]; has {
				got[variable] = value
			}
		}
		if len(row.want) != len(got) || len(got) > 0 && !cmp.Equal(row.want, got) {
			t.Errorf("%s: got %v, want %v", name, got, row.want)
		}
		task, e := api.Task(runs.View{Run: r}), api.Event(r, run.Event{Triggered: &run.JobRun{RunID: "b"}})
		if row.parent != (task.TriggeredBy != nil) || row.parent && *task.TriggeredBy != (contract.JobRunRef{JobID: "build", RunID: "build:1"}) {
			t.Errorf("%s: got triggeredBy %+v", name, task.TriggeredBy)
		}
		if e.Triggered == nil || e.Triggered.RunID != "b" || e.Triggered.JobID != "" {
			t.Errorf("%s: got the event of %+v, want run b", name, e.Triggered)
		}
	}
}
