package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	labels "github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// jobsPage lists the jobs by id.
var jobsPage = page{
	name: "jobs", path: "jobs", label: "Jobs", live: true, scope: access.RunsRead, query: []string{"cursor", "q", "show", "label", "done"},
	show: showJobs,
	actions: []action{
		{path: "jobs/{job_id}/pause", scope: access.JobsWrite, do: func(v *visit) (string, error) { return switchJob(v, "pause", "job-paused") }},
		{path: "jobs/{job_id}/resume", scope: access.JobsWrite, do: func(v *visit) (string, error) { return switchJob(v, "resume", "job-resumed") }},
		{path: "jobs/{job_id}/clear", scope: access.JobsWrite, do: func(v *visit) (string, error) { return switchJob(v, "clear", "job-cleared") }},
		{path: "jobs/{job_id}/run", scope: access.RunsWrite, do: runJob},
	},
}

// jobsLimit is the number of jobs on a page, resultsShown the number of results of a job.
const (
	jobsLimit    = 50
	resultsShown = 30
)

// jobsData is the content of the page.
type jobsData struct {
	Jobs        []jobRow
	Filter      url.Values
	Shows       []preset
	Chips       []chip
	First, Next string
}

// jobRow is a job in the list.
type jobRow struct {
	contract.JobSummary
	What    string
	State   look
	Words   string
	Local   string
	Results *results
	// Key makes a form that is sent twice start one run.
	Key string
}

// jobSchedules are the values of the query parameter show, and the parameter of the API.
var jobSchedules = map[string]string{"scheduled": "active", "paused": "paused", "request": "none"}

func showJobs(v *visit) (view, error) {
	query := v.r.URL.Query()
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
		return view{}, fault.Invalid("show", "unknown filter, want scheduled, paused or request")
	}
	var list contract.JobList
	if err := v.get("/v1/jobs", asked, &list); err != nil {
		return view{}, err
	}
	data := jobsData{Filter: filter, Chips: chipsOf("jobs", filter), Shows: []preset{
		{Label: "All", Path: "jobs"}, {Label: "Scheduled", Path: "jobs?show=scheduled"}, {Label: "Paused", Path: "jobs?show=paused"}, {Label: "On request", Path: "jobs?show=request"},
	}}
	for i := range data.Shows {
		data.Shows[i].Current = data.Shows[i].Path == address("jobs", filter)
	}
	pages := pagerOf("jobs", filter, query.Get("cursor"), list.NextCursor)
	data.First, data.Next = pages.Newest, pages.Older
	for _, j := range list.Jobs {
		data.Jobs = append(data.Jobs, jobRow{
			JobSummary: j, What: cmp.Or(j.Image, "export "+j.Export), State: jobLook(j.ScheduleText(), j.Paused, j.NextAt),
			Words: scheduleWords(j.ScheduleText()), Local: local(j.NextAt, j.TimeZone), Results: resultsOf(j.Results, v.now()), Key: v.formKey(j.ID),
		})
	}
	return view{Title: "Jobs", JSON: address("/v1/jobs", asked), Command: command(append(line, selectorFlag(filter)...)...), Content: data.content}, nil
}

// selectorFlag returns the filter by labels as a flag of the command line.
func selectorFlag(filter url.Values) []string {
	if selector := filter.Get("label"); selector != "" {
		return []string{"--selector", selector}
	}
	return nil
}

// jobLook returns the state of a job's schedule.
func jobLook(schedule string, paused bool, next time.Time) look {
	switch {
	case paused:
		return look{Word: "Paused", Class: "wait", Icon: "pause"}
	case schedule == "":
		return look{Word: "On request", Class: "off", Icon: "play"}
	case next.IsZero():
		return look{Word: "No firing", Class: "off", Icon: "slash"}
	}
	return look{Word: "Scheduled", Class: "run", Icon: "clock"}
}

// jobPath returns the address of a job, below the console.
func jobPath(id string) string { return "jobs/" + url.PathEscape(id) }

// switchJob pauses or resumes a job, or clears its last result.
func switchJob(v *visit, operation, done string) (string, error) {
	id := v.r.PathValue("job_id")
	if err := v.post("/v1/jobs/"+url.PathEscape(id)+"/"+operation, struct{}{}, nil); err != nil {
		return "", err
	}
	return v.back(jobPath(id), done), nil
}

// runJob starts a run of a job with the parameters of the form that differ from those of the job.
func runJob(v *visit) (string, error) {
	id, form := v.r.PathValue("job_id"), v.r.PostForm
	request := contract.JobRunRequest{Priority: form.Get("priority"), ConcurrencyKey: strings.TrimSpace(form.Get("concurrencyKey")), Parameters: map[string]string{}}
	if err := addParameters(request.Parameters, form); err != nil {
		return "", err
	}
	change, err := formLabels(form)
	if err != nil {
		return "", err
	}
	request.Labels = change.Apply(nil)
	if request.Inputs, err = formInputs(form); err != nil {
		return "", err
	}
	if at := form.Get("at"); at != "" {
		moment, err := time.Parse(formTime, at)
		if err != nil {
			return "", fault.Invalid("at", "malformed time, want one such as 2027-03-01T08:00")
		}
		request.ScheduledAt = moment
	}
	header := http.Header{}
	if key := form.Get("key"); key != "" {
		header.Set("Idempotency-Key", key)
	}
	response, err := v.call(http.MethodPost, "/v1/jobs/"+url.PathEscape(id)+"/runs", nil, request, header)
	if err != nil {
		return "", err
	}
	var accepted contract.RunAccepted
	if err := read(response, &accepted); err != nil {
		return "", err
	}
	return runPath(accepted.RunID) + "?done=job-run", nil
}

// addParameters adds the variables of a form that differ from their defaults, and further ones.
func addParameters(to map[string]string, form url.Values) error {
	for name, values := range form {
		if parameter, ok := strings.CutPrefix(name, "parameter."); ok && !slices.Equal(values, form["default."+parameter]) {
			to[parameter] = formText(values[0])
		}
	}
	for line := range strings.Lines(formText(form.Get("more"))) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return fault.Invalid("more", "malformed parameter %q, want NAME=VALUE", short(60, line))
		}
		to[name] = value
	}
	return nil
}

// formLabels returns the change of labels in a form: KEY=VALUE and KEY-, with spaces, commas or
// lines between them.
func formLabels(form url.Values) (labels.Change, error) {
	change, err := labels.ParseChange(strings.FieldsFunc(form.Get("labels"), func(c rune) bool { return c == ',' || unicode.IsSpace(c) }))
	if err != nil {
		return nil, fault.Invalid("labels", "%v", err)
	}
	for _, problem := range change.Check() {
		return nil, fault.Invalid("labels", "%s", problem.Text)
	}
	return change, nil
}

// formTime is the format of a time in a form, in UTC.
const formTime = "2006-01-02T15:04"

// formText returns a text of a form with the line ends of a document.
func formText(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }
