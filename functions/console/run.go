package console

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// runPage shows one run.
var runPage = page{
	name: "run", path: "runs/{run_id}", scope: access.RunsRead, query: append([]string{"attempt", "after", "done"}, logQuery...),
	show: showRun, live: true,
	actions: []action{
		{path: "runs/{run_id}/cancel", scope: access.RunsWrite, do: cancelRun},
		{path: "runs/{run_id}/pin", scope: access.RunsWrite, do: pinRun},
		{path: "runs/{run_id}/rerun", scope: access.RunsWrite, do: rerun},
	},
}

// runData is the content of the page.
type runData struct {
	runRow
	Why       *contract.Explanation
	Timeline  *timeline
	Events    []contract.TaskEvent
	MoreAfter int
	Log       *logView
	Attempts  []int
	Output    *preview
	Artifacts []contract.ArtifactSummary
	Lineage   *lineage
	// Definition is nil for a run that is of no job.
	Definition *definition
	// RerunKey makes a form that is sent twice start one run.
	RerunKey string
	Ended    bool
}

// eventsLimit is the number of events on a page.
const eventsLimit = 200

func showRun(v *visit) (view, error) {
	id := v.r.PathValue("run_id")
	data := runData{}
	if err := v.get("/v1/runs/"+url.PathEscape(id), nil, &data.Task); err != nil {
		return view{}, err
	}
	task := data.Task
	data.runRow, data.Ended = rowOf(task, v.now()), run.State(task.State).Terminal()
	for n := 1; n <= task.Attempt; n++ {
		data.Attempts = append(data.Attempts, n)
	}
	if err := together(
		func() error { return data.readWhy(v) }, func() error { return data.readEvents(v) },
		func() error { return data.readLog(v) }, func() error { return data.readOutput(v) },
		func() error { return data.readLineage(v) }, func() error { return data.readDefinition(v) },
		func() error { return data.readArtifacts(v) },
	); err != nil {
		return view{}, err
	}
	data.RerunKey = v.formKey(task.RunID)
	return view{
		Title: short(60, data.What) + " · " + task.RunID, JSON: "/v1/runs/" + url.PathEscape(task.RunID),
		Command: command("status", task.TaskID), Content: data.content, RunID: task.RunID, Ended: data.Ended,
	}, nil
}

// readWhy reads the explanation of a run that has not ended.
func (d *runData) readWhy(v *visit) error {
	if d.Ended {
		return nil
	}
	d.Why = &contract.Explanation{}
	return v.get("/v1/runs/"+url.PathEscape(d.RunID)+"/explain", nil, d.Why)
}

// readEvents reads a page of events. The timeline is drawn from the first page.
func (d *runData) readEvents(v *visit) error {
	query := url.Values{"limit": {strconv.Itoa(eventsLimit)}}
	after := v.r.URL.Query().Get("after")
	if after != "" {
		query.Set("after", after)
	}
	var found contract.TaskEvents
	if err := v.get("/v1/tasks/"+url.PathEscape(d.TaskID)+"/events", query, &found); err != nil {
		return err
	}
	d.Events, d.MoreAfter = found.Events, found.NextAfter
	if after == "" {
		d.Timeline = timelineOf(d.Task, found.Events, v.now())
	}
	return nil
}

// cancelRun requests the cancellation of a run.
func cancelRun(v *visit) (string, error) {
	id := v.r.PathValue("run_id")
	var answer contract.CancelAnswer
	if err := v.post("/v1/runs/"+url.PathEscape(id)+"/cancel", contract.CancelRequest{Reason: v.r.PostForm.Get("reason")}, &answer); err != nil {
		return "", err
	}
	done := "cancel"
	if answer.Result == contract.CancelTooLate {
		done = "too-late"
	}
	return runPath(id) + "?done=" + done, nil
}

// pinRun pins the run, or unpins it.
func pinRun(v *visit) (string, error) {
	id, name := v.r.PathValue("run_id"), v.r.PostForm.Get("what")
	if name != "pin" && name != "unpin" {
		return "", fault.Invalid("what", "unknown value, want pin or unpin")
	}
	if err := v.post("/v1/runs/"+url.PathEscape(id)+"/"+name, struct{}{}, nil); err != nil {
		return "", err
	}
	return runPath(id) + "?done=" + name, nil
}

// rerun starts a new run that repeats an ended one.
func rerun(v *visit) (string, error) {
	id := v.r.PathValue("run_id")
	header := http.Header{}
	if key := v.r.PostForm.Get("key"); key != "" {
		header.Set("Idempotency-Key", key)
	}
	response, err := v.call(http.MethodPost, "/v1/runs/"+url.PathEscape(id)+"/retry", nil, struct{}{}, header)
	if err != nil {
		return "", err
	}
	var accepted contract.RetryAccepted
	if err := read(response, &accepted); err != nil {
		return "", err
	}
	return runPath(accepted.TaskID) + "?done=rerun", nil
}
