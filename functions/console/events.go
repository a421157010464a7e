package console

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// eventsPage lists the events of the tenant's stream, the newest first.
var eventsPage = page.Page{
	Name: "events", Path: "events", Label: "Events", Scope: access.EventsRead,
	Query: append([]string{"cursor", "event"}, eventFilters...),
	Show:  showEvents,
	Live:  true,
}

// eventFilters are the query parameters that the API's list of events has, too.
var eventFilters = []string{"types", "jobId", "taskId"}

// eventRows is the number of events on a page. With a filter, a page reads windows of the stream
// until it has as many, at most searchWindows.
const (
	eventRows     = 50
	searchWindow  = 250
	searchWindows = 4
)

// eventsData is the content of the page.
type eventsData struct {
	Events  []eventRow
	Filter  url.Values
	Chips   []ui.Chip
	Presets []ui.Preset
	Types   []eventtype.Info
	Pager   ui.Pager
	// Searched is the number of positions that were searched for the filter.
	Searched int64
	// First: the page has the newest events.
	First bool
}

// eventRow is an event in the list. What is unreadable has only its cursor.
type eventRow struct {
	Cursor         stream.Cursor
	Event          events.Envelope
	About, Details string
	// Path is the page of what the event is about; empty without one.
	Path       string
	Unreadable bool
}

func showEvents(v *page.Visit) (page.View, error) {
	query := v.Request.URL.Query()
	if event := strings.TrimSpace(query.Get("event")); event != "" {
		return page.View{}, page.SeeOther(ui.EventPath(event))
	}
	filter := url.Values{}
	for _, name := range eventFilters {
		if value := strings.TrimSpace(query.Get(name)); value != "" {
			filter.Set(name, value)
		}
	}
	wanted := events.Filter{Types: page.ListOf(filter.Get("types")), JobID: filter.Get("jobId"), TaskID: filter.Get("taskId")}
	if err := wanted.Check(); err != nil {
		return page.View{}, fault.Invalid("types", "%v", err)
	}
	end, err := endOfStream(v)
	if err != nil {
		return page.View{}, err
	}
	data := eventsData{Filter: filter, Chips: ui.ChipsOf("events", filter), Presets: eventPresets(filter), Types: eventtype.All(), First: query.Get("cursor") == ""}
	from := end
	if text := query.Get("cursor"); text != "" {
		var ok bool
		if from, ok = stream.ParseCursor(text); !ok {
			return page.View{}, fault.Invalid("cursor", "malformed cursor, want one of an event")
		}
		from.Epoch = cmp.Or(from.Epoch, end.Epoch)
	}
	first, err := data.read(v, wanted, from)
	if err != nil {
		return page.View{}, err
	}
	older := ""
	if first.Position > 0 {
		older = first.String()
	}
	data.Pager = ui.PagerOf("events", filter, query.Get("cursor"), older)
	asked := page.Extended(filter, "limit", strconv.FormatInt(max(from.Position-first.Position, 1), 10), "after", first.String())
	return page.View{Title: "Events", JSON: ui.WithQuery("/v1/events", asked), Command: eventsCommand(filter), Content: data.content}, nil
}

// read adds the newest events up to a cursor that the filter selects. It returns the cursor
// before the first one, from which older events are read. Its position is 0 at the start of the stream.
func (d *eventsData) read(v *page.Visit, wanted events.Filter, end stream.Cursor) (stream.Cursor, error) {
	window, windows := int64(eventRows), 1
	if len(d.Filter) > 0 {
		window, windows = searchWindow, searchWindows
	}
	for at := end; ; windows-- {
		if windows == 0 || at.Position == 0 {
			return at, nil
		}
		found, oldest, err := eventsUpTo(v, at, window)
		if err != nil {
			return at, err
		}
		for _, row := range slices.Backward(found) {
			if d.Searched++; row.Unreadable && len(d.Filter) == 0 || !row.Unreadable && wanted.Matches(row.Event) {
				d.Events = append(d.Events, row)
			}
			at.Position = row.Cursor.Position - 1
			if len(d.Events) == eventRows {
				return at, nil
			}
		}
		if oldest {
			return stream.Cursor{Epoch: at.Epoch}, nil
		}
	}
}

// newestEvents returns at most count events, the newest first.
func newestEvents(v *page.Visit, count int64) ([]eventRow, error) {
	end, err := endOfStream(v)
	if err != nil {
		return nil, err
	}
	rows, _, err := eventsUpTo(v, end, count)
	slices.Reverse(rows)
	return rows, err
}

// eventPresets are the filters that people ask for most.
func eventPresets(filter url.Values) []ui.Preset {
	all := []ui.Preset{
		{Label: "All", Path: "events"},
		{Label: "Ends of runs", Path: ui.WithQuery("events", url.Values{"types": {"job.completed,job.failed,job.cancelled,job.skipped"}})},
		{Label: "Failures", Path: ui.WithQuery("events", url.Values{"types": {"job.failed,job.orphaned,job.retry_scheduled"}})},
		{Label: "Schedules", Path: ui.WithQuery("events", url.Values{"types": {"schedule.*"}})},
		{Label: "Changes", Path: ui.WithQuery("events", url.Values{"types": {string(eventtype.PolicyUpdated)}})},
	}
	for i := range all {
		all[i].Current = all[i].Path == ui.WithQuery("events", filter)
	}
	return all
}

func eventsCommand(filter url.Values) string {
	arguments := []string{"events", "tail"}
	for _, f := range [][2]string{{"types", "--type"}, {"jobId", "--job"}, {"taskId", "--run"}} {
		if value := filter.Get(f[0]); value != "" {
			arguments = append(arguments, f[1], value)
		}
	}
	return ui.Command(arguments...)
}

// eventRowOf returns an event as the list shows it.
func eventRowOf(at stream.Cursor, record []byte) eventRow {
	row := eventRow{Cursor: at}
	e, _, err := events.Unverified(record)
	if err != nil {
		row.Unreadable = true
		return row
	}
	row.Event = e
	switch {
	case e.Job != nil:
		row.About, row.Details, row.Path = e.Job.ID, e.Job.Message, ui.RunPath(cmp.Or(e.Job.ID, e.Job.RunID))
		if e.Job.DefinitionID != "" {
			row.About = e.Job.DefinitionID
		}
		if e.Job.Fault != nil {
			row.Details = e.Job.Fault.Code + ": " + e.Job.Fault.Message
		}
	case e.Schedule != nil:
		row.About, row.Details, row.Path = e.Schedule.DefinitionID, e.Schedule.Reason, ui.WithQuery("runs", url.Values{"jobId": {e.Schedule.DefinitionID}})
	case e.Policy != nil:
		row.About, row.Details = e.Policy.Resource+" "+e.Policy.ID, "by "+e.Actor.Subject
		if e.Policy.Resource == "webhook" {
			row.Path = ui.WebhookPath(e.Policy.ID)
		}
	}
	return row
}
