package console

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// jobPage shows one job: its schedule, its newest runs, and a form that runs it.
var jobPage = page{
	name: "job", path: "jobs/{job_id}", live: true, scope: access.RunsRead, query: []string{"cursor", "done"},
	show: showJob,
}

// jobHead is the top of the pages of a job.
type jobHead struct {
	ID, Name  string
	State     look
	Scheduled bool
	Paused    bool
	// Tab is the last part of the path of the page.
	Tab string
}

// headOf returns the top of a page of a job.
func headOf(j api.JobAnswer, tab string) jobHead {
	return jobHead{ID: j.ID, Name: j.Name, State: jobLook(j.ScheduleText(), j.Paused, j.NextAt), Scheduled: j.Definition.Scheduled(), Paused: j.Paused, Tab: tab}
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
	Runs    []runRow
	Pager   pager
	// Parameters are the variables of the form that runs the job.
	Parameters []parameter
	Priorities []run.Priority
	Key        string
}

// parameter is a variable of a job or a run. Secret is the name of the secret that it contains.
type parameter struct {
	Name, Value, Secret string
	// Default is the value of the job or the run.
	Default string
	// Fixed: a field of a form cannot contain the value, so it is only shown.
	Fixed bool
}

func parameterOf(name, value, secret string) parameter {
	return parameter{name, value, secret, value, !fits(value) || strings.Contains(value, "\n")}
}

// fits reports whether a field of a form can contain a text as it is.
func fits(text string) bool {
	return len(text) <= fieldLimit && visible(text) == text && !strings.ContainsAny(text, "\t\r")
}

// fieldLimit is the largest value of a field of a form, in bytes.
const fieldLimit = 1000

func showJob(v *visit) (view, error) {
	id := v.r.PathValue("job_id")
	path := "/v1/jobs/" + url.PathEscape(id)
	data := jobData{Key: v.formKey(id), Priorities: run.Priorities()}
	if err := v.get(path, nil, &data.Job); err != nil {
		return view{}, err
	}
	if err := v.get(path+"/explain", nil, &data.Why); err != nil {
		return view{}, err
	}
	asked := url.Values{"limit": {strconv.Itoa(jobRuns)}}
	cursor := v.r.URL.Query().Get("cursor")
	if cursor != "" {
		asked.Set("cursor", cursor)
	}
	var list contract.JobRuns
	if err := v.get(path+"/runs", asked, &list); err != nil {
		return view{}, err
	}
	j := data.Job
	data.Head, data.What, data.Words, data.Local = headOf(j, ""), j.Image, scheduleWords(j.ScheduleText()), local(j.NextAt, j.TimeZone)
	if j.Export != nil {
		data.What = cmp.Or(j.Image, "export "+j.Export.Format)
	}
	var results []contract.JobResult
	for _, task := range list.Runs {
		data.Runs, results = append(data.Runs, rowOf(task, v.now())), append(results, resultOf(task))
	}
	data.Results = resultsOf(results, v.now())
	data.Pager = pagerOf(jobPath(id), nil, cursor, list.NextCursor)
	for _, name := range slices.Sorted(maps.Keys(j.Env)) {
		data.Parameters = append(data.Parameters, parameterOf(name, j.Env[name].Value, j.Env[name].SecretRef))
	}
	return view{Title: id, JSON: path, Command: command("jobs", "history", id), Content: data.content}, nil
}
