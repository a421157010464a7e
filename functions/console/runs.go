package console

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// runsPage lists the runs that match a filter, the newest first.
var runsPage = page{
	name: "runs", path: "runs", label: "Runs", scope: access.RunsRead,
	query: append([]string{"cursor", "since", "older", "id"}, runFilters...),
	show:  showRuns, live: true,
	actions: []action{{path: "runs/select", scope: access.RunsWrite, do: selectRuns}},
}

// runFilters are the query parameters that the API's list of runs has, too.
var runFilters = []string{"state", "kind", "jobId", "pool", "trigger", "faultCode", "error", "label", "skipped", "createdAfter", "createdBefore"}

// runsLimit is the number of runs on a page.
const runsLimit = "50"

// span is a value of the query parameters since and older.
type span struct {
	Value, Text string
	Length      time.Duration
}

// spans are in the order of the form.
var spans = []span{{"1h", "last hour", time.Hour}, {"24h", "last day", 24 * time.Hour}, {"7d", "last week", 7 * 24 * time.Hour}}

// chip is a filter that is in effect. Path is the address without it.
type chip struct{ Name, Value, Path string }

// pager has the addresses of other pages of a list; empty if there is no such page.
type pager struct{ Newest, Older string }

// preset is a filter with a name.
type preset struct {
	Label, Path string
	Current     bool
}

// runsData is the content of the page.
type runsData struct {
	Runs []runRow
	// First: this is the first page of the list, which changes.
	First   bool
	Filter  url.Values
	Chips   []chip
	Presets []preset
	Pager   pager
	// Searched is the creation time of the last run that the API has read for the page; zero if it
	// has read all that match.
	Searched time.Time
}

// runRow is a run in the list.
type runRow struct {
	contract.Task
	What, Detail string
	// Seconds is the time since the start of the program, or its duration.
	Seconds float64
	Reason  string
}

func showRuns(v *visit) (view, error) {
	query := v.r.URL.Query()
	if id := strings.TrimSpace(query.Get("id")); id != "" {
		return view{}, seeOther(runPath(id))
	}
	filter := runFilter(query)
	asked, err := apiFilter(filter, v.now())
	if err != nil {
		return view{}, err
	}
	asked.Set("limit", runsLimit)
	if cursor := query.Get("cursor"); cursor != "" {
		asked.Set("cursor", cursor)
	}
	list, err := v.listRuns(asked)
	if err != nil {
		return view{}, err
	}
	data := runsData{First: query.Get("cursor") == "", Filter: filter, Chips: chipsOf("runs", filter), Presets: runPresets(filter)}
	for _, task := range list.Tasks {
		data.Runs = append(data.Runs, rowOf(task, v.now()))
	}
	data.Pager = pagerOf("runs", filter, query.Get("cursor"), list.NextCursor)
	if strconv.Itoa(len(list.Tasks)) != runsLimit {
		data.Searched = list.SearchedUntil
	}
	return view{Title: "Runs", JSON: address("/v1/runs", asked), Command: command(append([]string{"runs"}, runFlags(filter, v.now())...)...), Content: data.content}, nil
}

// listedRun is a run of a list, without the members that no list shows: decoding them would be half
// of the work for a page.
type listedRun struct {
	contract.Task

	Measured unread `json:"measured"`
	Policy   unread `json:"policy"`
	Options  unread `json:"options"`
	Machine  unread `json:"machine"`
	Worker   unread `json:"worker"`
	Output   unread `json:"output"`
	Metrics  unread `json:"metrics"`
}

// unread is a member of a document that is not decoded.
type unread struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*unread) UnmarshalJSON([]byte) error { return nil }

// listRuns reads a page of runs.
func (v *visit) listRuns(query url.Values) (found contract.TaskList, err error) {
	var list struct {
		Tasks         []listedRun `json:"tasks"`
		NextCursor    string      `json:"nextCursor"`
		SearchedUntil time.Time   `json:"searchedUntil"`
	}
	err = v.get("/v1/runs", query, &list)
	found.NextCursor, found.SearchedUntil = list.NextCursor, list.SearchedUntil
	for i := range list.Tasks {
		found.Tasks = append(found.Tasks, list.Tasks[i].Task)
	}
	return found, err
}

// runFilter returns the filters in a query.
func runFilter(query url.Values) url.Values {
	filter := url.Values{}
	for _, name := range append([]string{"since", "older"}, runFilters...) {
		if value := strings.TrimSpace(query.Get(name)); value != "" {
			filter.Set(name, value)
		}
	}
	return filter
}

// apiFilter returns the filter as the API takes it. A time of a form is in UTC. The API checks
// everything but since and older.
func apiFilter(filter url.Values, now time.Time) (url.Values, error) {
	asked := url.Values{}
	for name, values := range filter {
		asked[name] = slices.Clone(values)
	}
	for name, bound := range map[string]string{"since": "createdAfter", "older": "createdBefore"} {
		if value := filter.Get(name); value != "" {
			i := slices.IndexFunc(spans, func(s span) bool { return s.Value == value })
			if i < 0 {
				return nil, fault.Invalid(name, "unknown span, want 1h, 24h or 7d")
			}
			asked.Del(name)
			asked.Set(bound, now.Add(-spans[i].Length).Truncate(time.Minute).Format(time.RFC3339))
		} else if at, err := time.Parse(formTime, filter.Get(bound)); err == nil {
			asked.Set(bound, at.Format(time.RFC3339))
		}
	}
	return asked, nil
}

// chipsOf returns a chip for each filter. A page without a filter begins at the newest record.
func chipsOf(path string, filter url.Values) (chips []chip) {
	for name := range filter {
		without := url.Values{}
		for other, values := range filter {
			if other != name {
				without[other] = values
			}
		}
		chips = append(chips, chip{Name: name, Value: filter.Get(name), Path: address(path, without)})
	}
	slices.SortFunc(chips, func(a, b chip) int { return strings.Compare(a.Name, b.Name) })
	return chips
}

// pagerOf returns the addresses of the first and the next page of a list.
func pagerOf(path string, filter url.Values, cursor, next string) (p pager) {
	with := url.Values{}
	maps.Copy(with, filter)
	if cursor != "" {
		p.Newest = address(path, with)
	}
	if next != "" {
		with.Set("cursor", next)
		p.Older = address(path, with)
	}
	return p
}

// runPresets are the filters that people ask for most.
func runPresets(filter url.Values) []preset {
	all := []preset{
		{Label: "All", Path: "runs"},
		{Label: "Failed in the last day", Path: "runs?since=24h&state=" + string(run.Failed)},
		{Label: "Waiting", Path: "runs?state=" + string(run.Pending)},
		{Label: "Running", Path: "runs?state=" + string(run.Running)},
		{Label: "Long", Path: "runs?older=1h&state=" + string(run.Running)},
		{Label: "Retrying", Path: "runs?state=" + string(run.Retrying)},
	}
	for i := range all {
		all[i].Current = all[i].Path == address("runs", filter)
	}
	return all
}

// runFlags returns a filter as flags of the command line.
func runFlags(filter url.Values, now time.Time) (arguments []string) {
	if asked, err := apiFilter(filter, now); err == nil && asked.Has("createdBefore") {
		filter = maps.Clone(filter)
		filter["createdBefore"] = asked["createdBefore"]
	}
	for _, f := range [][2]string{
		{"state", "--state"},
		{"kind", "--kind"},
		{"jobId", "--job"},
		{"pool", "--pool"},
		{"trigger", "--trigger"},
		{"faultCode", "--fault"},
		{"error", "--error"},
		{"label", "--selector"},
		{"createdBefore", "--before"},
	} {
		if value := filter.Get(f[0]); value != "" {
			arguments = append(arguments, f[1], value)
		}
	}
	if skipped := filter.Get("skipped"); skipped != "" {
		arguments = append(arguments, "--skipped="+skipped)
	}
	if since := filter.Get("since"); since != "" {
		arguments = append(arguments, "--since", sinceFlag(since))
	}
	return arguments
}

// sinceFlag returns a span as a duration of the command line, which has no days.
func sinceFlag(since string) string {
	if since == "7d" {
		return "168h"
	}
	return since
}

// rowOf returns a run as the list shows it.
func rowOf(t contract.Task, now time.Time) runRow {
	row := runRow{Task: t}
	row.What, row.Detail = whatOf(t)
	row.Seconds = secondsOf(t.StartedAt, t.EndedAt, now)
	row.Reason = reasonOf(t)
	return row
}

// secondsOf returns the time from the start of a program to its end, or until now; 0 without a
// start.
func secondsOf(started, ended, now time.Time) float64 {
	switch {
	case started.IsZero():
		return 0
	case ended.IsZero():
		return now.Sub(started).Seconds()
	}
	return ended.Sub(started).Seconds()
}

// whatOf returns what a run does: its job, program or export, and a detail.
func whatOf(t contract.Task) (what, detail string) {
	switch {
	case t.Kind == run.KindExport:
		return "export " + t.Format, t.PI
	case t.Inference != nil:
		return t.Inference.Model, t.Inference.Engine
	case t.JobID != "":
		if t.Program != nil {
			detail = t.Program.Image
		}
		return t.JobID, detail
	case t.Program != nil:
		return t.Program.Image, strings.Join(t.Program.Command, " ")
	}
	return t.Kind, ""
}

// reasonOf returns a phrase about the state of a run.
func reasonOf(t contract.Task) string {
	switch {
	case t.Fault != nil && t.State != string(run.Completed):
		return t.Fault.Message
	case t.QueuePosition != nil && *t.QueuePosition > 0:
		return "queued at position " + plain(*t.QueuePosition)
	case t.QueuePosition != nil:
		return "first in the queue"
	case t.Missed != nil:
		return t.Missed.Reason
	case len(t.Violations) > 0:
		return t.Violations[len(t.Violations)-1].Message
	case t.Progress != nil && t.EndedAt.IsZero():
		return t.Progress.Message
	case t.Cancel != nil:
		return t.Cancel.Reason
	}
	return ""
}

// runPath returns the address of a run, below the console.
func runPath(id string) string { return "runs/" + url.PathEscape(id) }

// seeOther is an error that redirects to a page below the console.
type seeOther string

func (s seeOther) Error() string { return "see " + string(s) }
