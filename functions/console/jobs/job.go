package jobs

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// JobPage shows one job: its schedule, its newest runs, and a form that runs it.
var JobPage = page.Page{
	Name: "job", Path: "jobs/{job_id}", Live: true, Scope: access.RunsRead, Query: []string{"cursor", "done"},
	Show: showJob,
}

// jobHead is the top of the pages of a job.
type jobHead struct {
	ID, Name  string
	State     ui.Look
	Scheduled bool
	Paused    bool
	// Tab is the last part of the path of the page.
	Tab string
}

// headOf returns the top of a page of a job.
func headOf(j api.JobAnswer, tab string) jobHead {
	return jobHead{ID: j.ID, Name: j.Name, State: jobLook(api.SummaryOf(j)), Scheduled: j.Definition.Scheduled(), Paused: j.Paused, Tab: tab}
}

// jobRuns is the number of runs on a page of a job.
const jobRuns = 30

// jobData is the content of the page.
type jobData struct {
	Head    jobHead
	Job     api.JobAnswer
	What    string
	Words   string
	Local   string
	Why     contract.JobExplanation
	Results *results
	Runs    []page.RunRow
	Pager   ui.Pager
	// Parameters are the variables of the form that runs the job.
	Parameters []Parameter
	Priorities []spec.Priority
	Key        string
}

// Parameter is a variable of a job or a run. Secret is the name of the secret that it contains.
type Parameter struct {
	Name, Value, Secret string
	// Default is the value of the job or the run.
	Default string
	// Fixed: a field of a form cannot contain the value, so it is only shown.
	Fixed bool
}

// ParameterOf returns a variable with its value, or the name of its secret.
func ParameterOf(name, value, secret string) Parameter {
	return Parameter{name, value, secret, value, !Fits(value) || strings.Contains(value, "\n")}
}

// Fits reports whether a field of a form can contain a text as it is.
func Fits(text string) bool {
	return len(text) <= fieldLimit && ui.Visible(text) == text && !strings.ContainsAny(text, "\t\r")
}

// fieldLimit is the largest value of a field of a form, in bytes.
const fieldLimit = 1000

func showJob(v *page.Visit) (page.View, error) {
	id := v.Request.PathValue("job_id")
	path := "/v1/jobs/" + url.PathEscape(id)
	data := jobData{Key: v.FormKey(id), Priorities: spec.Priorities()}
	asked := url.Values{"limit": {strconv.Itoa(jobRuns)}}
	cursor := v.Request.URL.Query().Get("cursor")
	if cursor != "" {
		asked.Set("cursor", cursor)
	}
	var list contract.JobRuns
	if err := page.Together(
		func() error { return v.Get(path, nil, &data.Job) }, func() error { return v.Get(path+"/explain", nil, &data.Why) },
		func() error { return v.Get(path+"/runs", asked, &list) },
	); err != nil {
		return page.View{}, err
	}
	j := data.Job
	data.Head, data.What, data.Words, data.Local = headOf(j, ""), j.Image, scheduleWords(j.ScheduleText()), local(j.NextAt, j.TimeZone)
	if j.Export != nil {
		data.What = cmp.Or(j.Image, "export "+j.Export.Format)
	}
	var results []contract.JobResult
	for _, task := range list.Runs {
		data.Runs = append(data.Runs, page.RowOf(task, v.Now()))
		if task.Child == nil || task.Child.Parent == "" {
			results = append(results, resultOf(task))
		}
	}
	data.Results = resultsOf(results, v.Now())
	data.Pager = ui.PagerOf(ui.JobPath(id), nil, cursor, list.NextCursor)
	for _, name := range slices.Sorted(maps.Keys(j.Env)) {
		data.Parameters = append(data.Parameters, ParameterOf(name, j.Env[name].Value, j.Env[name].SecretRef))
	}
	return page.View{Title: id, JSON: path, Command: ui.Command("jobs", "history", id), Content: data.content}, nil
}
