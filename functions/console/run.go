package console

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/sortie-dev/sortie/functions/console/children"
	"github.com/sortie-dev/sortie/functions/console/graph"
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// runPage shows one run.
var runPage = page.Page{
	Name: "run", Path: "runs/{run_id}", Scope: access.RunsRead, Query: append([]string{"attempt", "after", "done"}, logQuery...),
	Show: showRun, Live: true,
	Actions: []page.Action{
		{Path: "runs/{run_id}/cancel", Scope: access.RunsWrite, Do: cancelRun},
		{Path: "runs/{run_id}/pin", Scope: access.RunsWrite, Do: pinRun},
		{Path: "runs/{run_id}/redeliver", Scope: access.RunsWrite, Do: redeliver},
		{Path: "runs/{run_id}/rerun", Scope: access.RunsWrite, Do: rerun},
	},
}

// runData is the content of the page.
type runData struct {
	page.RunRow
	Why       *contract.Explanation
	Timeline  *timeline
	Events    []contract.TaskEvent
	MoreAfter int
	Log       *logView
	Attempts  []int
	Output    *preview
	Artifacts []contract.ArtifactSummary
	Lineage   *lineage
	// Children is nil for a run without children.
	Children *children.Part
	// Graph is nil for a run without dependencies.
	Graph *graph.Drawing
	// Definition is nil for a run that is of no job.
	Definition *definition
	// RerunKey makes a form that is sent twice start one run.
	RerunKey string
	Ended    bool
}

// eventsLimit is the number of events on a page.
const eventsLimit = 200

func showRun(v *page.Visit) (page.View, error) {
	id := v.Request.PathValue("run_id")
	data := runData{}
	if err := v.Get("/v1/runs/"+url.PathEscape(id), nil, &data.Task); err != nil {
		return page.View{}, err
	}
	task := data.Task
	data.RunRow, data.Ended = page.RowOf(task, v.Now()), run.State(task.State).Terminal()
	for n := 1; n <= task.Attempt; n++ {
		data.Attempts = append(data.Attempts, n)
	}
	if err := page.Together(
		func() error { return data.readWhy(v) }, func() error { return data.readEvents(v) },
		func() error { return data.readLog(v) }, func() error { return data.readOutput(v) },
		func() error { return data.readLineage(v) }, func() error { return data.readDefinition(v) },
		func() error { return data.readArtifacts(v) },
		func() (err error) { data.Children, err = children.Read(v, task); return err },
	); err != nil {
		return page.View{}, err
	}
	data.RerunKey = v.FormKey(task.RunID)
	return page.View{
		Title: ui.Short(60, data.What) + " · " + task.RunID, JSON: "/v1/runs/" + url.PathEscape(task.RunID),
		Command: ui.Command("status", task.TaskID), Content: data.content, RunID: task.RunID, Ended: data.Ended,
	}, nil
}

// readWhy reads the explanation of a run that has not ended, and the graph of a job's run.
func (d *runData) readWhy(v *page.Visit) error {
	if d.Ended && d.JobID == "" {
		return nil
	}
	var why contract.Explanation
	if err := v.Get("/v1/runs/"+url.PathEscape(d.RunID)+"/explain", nil, &why); err != nil {
		return err
	}
	d.Graph = graph.Of(why.Graph, d.JobID, true)
	if !d.Ended {
		d.Why = &why
	}
	return nil
}

// readEvents reads a page of events. The timeline is drawn from the first page.
func (d *runData) readEvents(v *page.Visit) error {
	query := url.Values{"limit": {strconv.Itoa(eventsLimit)}}
	after := v.Request.URL.Query().Get("after")
	if after != "" {
		query.Set("after", after)
	}
	var found contract.TaskEvents
	if err := v.Get("/v1/tasks/"+url.PathEscape(d.TaskID)+"/events", query, &found); err != nil {
		return err
	}
	d.Events, d.MoreAfter = found.Events, found.NextAfter
	if after == "" {
		d.Timeline = timelineOf(d.Task, found.Events, v.Now())
	}
	return nil
}

// cancelRun requests the cancellation of a run.
func cancelRun(v *page.Visit) (string, error) {
	id := v.Request.PathValue("run_id")
	var answer contract.CancelAnswer
	if err := v.Post("/v1/runs/"+url.PathEscape(id)+"/cancel", contract.CancelRequest{Reason: v.Request.PostForm.Get("reason")}, &answer); err != nil {
		return "", err
	}
	done := "cancel"
	if answer.Result == contract.CancelTooLate {
		done = "too-late"
	}
	return ui.RunPath(id) + "?done=" + done, nil
}

// pinRun pins the run, or unpins it.
func pinRun(v *page.Visit) (string, error) {
	id, name := v.Request.PathValue("run_id"), v.Request.PostForm.Get("what")
	if name != "pin" && name != "unpin" {
		return "", fault.Invalid("what", "unknown value, want pin or unpin")
	}
	if err := v.Post("/v1/runs/"+url.PathEscape(id)+"/"+name, struct{}{}, nil); err != nil {
		return "", err
	}
	return ui.RunPath(id) + "?done=" + name, nil
}

// rerun starts a new run that repeats an ended one.
func rerun(v *page.Visit) (string, error) {
	id := v.Request.PathValue("run_id")
	header := http.Header{}
	if key := v.Request.PostForm.Get("key"); key != "" {
		header.Set("Idempotency-Key", key)
	}
	request := contract.RetryRequest{OnlyFailed: v.Request.PostForm.Get("only") == "failed"}
	response, err := v.Call(http.MethodPost, "/v1/runs/"+url.PathEscape(id)+"/retry", nil, request, header)
	if err != nil {
		return "", err
	}
	var accepted contract.RetryAccepted
	if err := page.Read(response, &accepted); err != nil {
		return "", err
	}
	return ui.RunPath(accepted.TaskID) + "?done=rerun", nil
}
