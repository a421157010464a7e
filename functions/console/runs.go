package console

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// runsPage lists the runs that match a filter, the newest first.
var runsPage = page.Page{
	Name: "runs", Path: "runs", Label: "Runs", Scope: access.RunsRead,
	Query: append([]string{"cursor", "since", "older", "id"}, runFilters...),
	Show:  showRuns, Live: true,
	Actions: []page.Action{{Path: "runs/select", Scope: access.RunsWrite, Do: selectRuns}},
}

// runFilters are the query parameters that the API's list of runs has, too.
var runFilters = []string{"state", "kind", "jobId", "pool", "trigger", "faultCode", "error", "label", "skipped", "createdAfter", "createdBefore"}

// runsLimit is the number of runs on a page.
const runsLimit = "50"

// runsData is the content of the page.
type runsData struct {
	Runs []page.RunRow
	// First: this is the first page of the list, which changes.
	First   bool
	Filter  url.Values
	Chips   []ui.Chip
	Presets []ui.Preset
	Pager   ui.Pager
	// Searched is the creation time of the last run that the API has read for the page; zero if it
	// has read all that match.
	Searched time.Time
}

func showRuns(v *page.Visit) (page.View, error) {
	query := v.Request.URL.Query()
	if id := strings.TrimSpace(query.Get("id")); id != "" {
		return page.View{}, page.SeeOther(ui.RunPath(id))
	}
	filter := runFilter(query)
	asked, err := apiFilter(filter, v.Now())
	if err != nil {
		return page.View{}, err
	}
	asked.Set("limit", runsLimit)
	if cursor := query.Get("cursor"); cursor != "" {
		asked.Set("cursor", cursor)
	}
	list, err := v.ListRuns(asked)
	if err != nil {
		return page.View{}, err
	}
	data := runsData{First: query.Get("cursor") == "", Filter: filter, Chips: ui.ChipsOf("runs", filter), Presets: runPresets(filter)}
	for _, task := range list.Tasks {
		data.Runs = append(data.Runs, page.RowOf(task, v.Now()))
	}
	data.Pager = ui.PagerOf("runs", filter, query.Get("cursor"), list.NextCursor)
	if strconv.Itoa(len(list.Tasks)) != runsLimit {
		data.Searched = list.SearchedUntil
	}
	return page.View{Title: "Runs", JSON: ui.WithQuery("/v1/runs", asked), Command: ui.Command(append([]string{"runs"}, runFlags(filter, v.Now())...)...), Content: data.content}, nil
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
			i := slices.IndexFunc(page.Spans, func(s page.Span) bool { return s.Value == value })
			if i < 0 {
				return nil, fault.Invalid(name, "unknown span, want 1h, 24h or 7d")
			}
			asked.Del(name)
			asked.Set(bound, now.Add(-page.Spans[i].Length).Truncate(time.Minute).Format(time.RFC3339))
		} else if at, err := time.Parse(ui.FormTime, filter.Get(bound)); err == nil {
			asked.Set(bound, at.Format(time.RFC3339))
		}
	}
	return asked, nil
}

// runPresets are the filters that people ask for most.
func runPresets(filter url.Values) []ui.Preset {
	all := []ui.Preset{
		{Label: "All", Path: "runs"},
		{Label: "Failed in the last day", Path: "runs?since=24h&state=" + string(run.Failed)},
		{Label: "Waiting", Path: "runs?state=" + string(run.Pending)},
		{Label: "Running", Path: "runs?state=" + string(run.Running)},
		{Label: "Long", Path: "runs?older=1h&state=" + string(run.Running)},
		{Label: "Retrying", Path: "runs?state=" + string(run.Retrying)},
	}
	for i := range all {
		all[i].Current = all[i].Path == ui.WithQuery("runs", filter)
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
		arguments = append(arguments, "--since", page.SinceFlag(since))
	}
	return arguments
}
