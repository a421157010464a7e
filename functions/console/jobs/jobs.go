package jobs

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	labels "github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// ListPage lists the jobs by id.
var ListPage = page.Page{
	Name: "jobs", Path: "jobs", Label: "Jobs", Live: true, Scope: access.RunsRead, Query: []string{"cursor", "q", "show", "label", "done"},
	Show: showJobs,
	Actions: []page.Action{
		{Path: "jobs/{job_id}/pause", Scope: access.JobsWrite, Do: func(v *page.Visit) (string, error) { return switchJob(v, "pause", "job-paused") }},
		{Path: "jobs/{job_id}/resume", Scope: access.JobsWrite, Do: func(v *page.Visit) (string, error) { return switchJob(v, "resume", "job-resumed") }},
		{Path: "jobs/{job_id}/clear", Scope: access.JobsWrite, Do: func(v *page.Visit) (string, error) { return switchJob(v, "clear", "job-cleared") }},
		{Path: "jobs/{job_id}/run", Scope: access.RunsWrite, Do: runJob},
	},
}

// jobsLimit is the number of jobs on a page. resultsShown and afterShown are the numbers of results
// of a job, and of jobs that it comes after.
const (
	jobsLimit    = 50
	resultsShown = 30
	afterShown   = 6
)

// jobsData is the content of the page.
type jobsData struct {
	Jobs        []jobRow
	Filter      url.Values
	Shows       []ui.Preset
	Chips       []ui.Chip
	First, Next string
}

// jobRow is a job in the list.
type jobRow struct {
	contract.JobSummary
	What    string
	State   ui.Look
	Words   string
	Local   string
	Results *results
	// Key makes a form that is sent twice start one run.
	Key string
}

// jobSchedules are the values of the query parameter show, and the parameter of the API.
var jobSchedules = map[string]string{"scheduled": "active", "paused": "paused", "request": "none"}

func showJobs(v *page.Visit) (page.View, error) {
	query := v.Request.URL.Query()
	filter := url.Values{}
	for _, name := range []string{"q", "show", "label"} {
		if value := strings.TrimSpace(query.Get(name)); value != "" {
			filter.Set(name, value)
		}
	}
	line := []string{"jobs", "list"}
	asked := url.Values{"limit": {strconv.Itoa(jobsLimit)}, "results": {strconv.Itoa(resultsShown)}}
	for _, given := range [][2]string{{"text", filter.Get("q")}, {"schedule", jobSchedules[filter.Get("show")]}} {
		if given[1] != "" {
			asked.Set(given[0], given[1])
			line = append(line, "--"+given[0], given[1])
		}
	}
	for name, value := range map[string]string{"cursor": query.Get("cursor"), "label": filter.Get("label")} {
		if value != "" {
			asked.Set(name, value)
		}
	}
	if show := filter.Get("show"); show != "" && !asked.Has("schedule") {
		return page.View{}, fault.Invalid("show", "unknown filter, want scheduled, paused or request")
	}
	var list contract.JobList
	if err := v.Get("/v1/jobs", asked, &list); err != nil {
		return page.View{}, err
	}
	data := jobsData{Filter: filter, Chips: ui.ChipsOf("jobs", filter), Shows: []ui.Preset{
		{Label: "All", Path: "jobs"}, {Label: "Scheduled", Path: "jobs?show=scheduled"}, {Label: "Paused", Path: "jobs?show=paused"}, {Label: "On request", Path: "jobs?show=request"},
	}}
	for i := range data.Shows {
		data.Shows[i].Current = data.Shows[i].Path == ui.WithQuery("jobs", filter)
	}
	pages := ui.PagerOf("jobs", filter, query.Get("cursor"), list.NextCursor)
	data.First, data.Next = pages.Newest, pages.Older
	for _, j := range list.Jobs {
		data.Jobs = append(data.Jobs, jobRow{
			JobSummary: j, What: cmp.Or(j.Image, "export "+j.Export), State: jobLook(j),
			Words: scheduleWords(j.ScheduleText()), Local: local(j.NextAt, j.TimeZone), Results: resultsOf(j.Results, v.Now()), Key: v.FormKey(j.ID),
		})
	}
	return page.View{Title: "Jobs", JSON: ui.WithQuery("/v1/jobs", asked), Command: ui.Command(append(line, selectorFlag(filter)...)...), Content: data.content}, nil
}

// selectorFlag returns the filter by labels as a flag of the command line.
func selectorFlag(filter url.Values) []string {
	if selector := filter.Get("label"); selector != "" {
		return []string{"--selector", selector}
	}
	return nil
}

// jobLook returns the state of what starts a job.
func jobLook(j contract.JobSummary) ui.Look {
	switch {
	case j.Paused:
		return ui.Look{Word: "Paused", Class: "wait", Icon: "pause"}
	case j.ScheduleText() != "" && j.NextAt.IsZero():
		return ui.Look{Word: "No firing", Class: "off", Icon: "slash"}
	case j.ScheduleText() != "":
		return ui.Look{Word: "Scheduled", Class: "run", Icon: "clock"}
	case len(j.After) > 0:
		return ui.Look{Word: "After other jobs", Class: "run", Icon: "skip"}
	case j.Sensor:
		return ui.Look{Word: "On events", Class: "run", Icon: "half"}
	}
	return ui.Look{Word: "On request", Class: "off", Icon: "play"}
}

// switchJob pauses or resumes a job, or clears its last result.
func switchJob(v *page.Visit, operation, done string) (string, error) {
	id := v.Request.PathValue("job_id")
	if err := v.Post("/v1/jobs/"+url.PathEscape(id)+"/"+operation, struct{}{}, nil); err != nil {
		return "", err
	}
	return v.Back(ui.JobPath(id), done), nil
}

// runJob starts a run of a job with the parameters of the form that differ from those of the job.
func runJob(v *page.Visit) (string, error) {
	id, form := v.Request.PathValue("job_id"), v.Request.PostForm
	request := contract.JobRunRequest{Priority: form.Get("priority"), ConcurrencyKey: strings.TrimSpace(form.Get("concurrencyKey")), Parameters: map[string]string{}}
	if err := AddParameters(request.Parameters, form); err != nil {
		return "", err
	}
	change, err := FormLabels(form)
	if err != nil {
		return "", err
	}
	request.Labels = change.Apply(nil)
	if request.Inputs, err = FormInputs(form); err != nil {
		return "", err
	}
	if at := form.Get("at"); at != "" {
		moment, err := time.Parse(ui.FormTime, at)
		if err != nil {
			return "", fault.Invalid("at", "malformed time, want one such as 2027-03-01T08:00")
		}
		request.ScheduledAt = moment
	}
	header := http.Header{}
	if key := form.Get("key"); key != "" {
		header.Set("Idempotency-Key", key)
	}
	response, err := v.Call(http.MethodPost, "/v1/jobs/"+url.PathEscape(id)+"/runs", nil, request, header)
	if err != nil {
		return "", err
	}
	var accepted contract.RunAccepted
	if err := page.Read(response, &accepted); err != nil {
		return "", err
	}
	return ui.RunPath(accepted.RunID) + "?done=job-run", nil
}

// AddParameters adds the variables of a form that differ from their defaults, and further ones.
func AddParameters(to map[string]string, form url.Values) error {
	for name, values := range form {
		if parameter, ok := strings.CutPrefix(name, "parameter."); ok && !slices.Equal(values, form["default."+parameter]) {
			to[parameter] = FormText(values[0])
		}
	}
	for line := range strings.Lines(FormText(form.Get("more"))) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return fault.Invalid("more", "malformed parameter %q, want NAME=VALUE", ui.Short(60, line))
		}
		to[name] = value
	}
	return nil
}

// FormLabels returns the change of labels in a form: KEY=VALUE and KEY-, with spaces, commas or
// lines between them.
func FormLabels(form url.Values) (labels.Change, error) {
	change, err := labels.ParseChange(strings.FieldsFunc(form.Get("labels"), func(c rune) bool { return c == ',' || unicode.IsSpace(c) }))
	if err != nil {
		return nil, fault.Invalid("labels", "%v", err)
	}
	for _, problem := range change.Check() {
		return nil, fault.Invalid("labels", "%s", problem.Text)
	}
	return change, nil
}

// FormText returns a text of a form with the line ends of a document.
func FormText(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }
