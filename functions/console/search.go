package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// searchPage finds a run, a job, an event or a webhook by its id or name.
var searchPage = page.Page{Name: "search", Path: "search", Query: []string{"q"}, Show: showSearch}

// searchData is the content of the page.
type searchData struct {
	Query   string
	Results []searchResult
	// Cut: there may be more jobs or webhooks with the text.
	Cut bool
}

// searchResult is something that was found. Path is below the console.
type searchResult struct{ Kind, Name, Details, Path string }

// foundJobs is the largest number of jobs that a search finds. searchLimit is the number of
// webhooks that are searched by name.
const (
	foundJobs   = 50
	searchLimit = 200
)

func showSearch(v *page.Visit) (page.View, error) {
	data := searchData{Query: strings.TrimSpace(v.Request.URL.Query().Get("q"))}
	shown := func() (page.View, error) {
		return page.View{
			Title: "Search", JSON: ui.WithQuery("/v1/jobs", url.Values{"text": {data.Query}}), Command: ui.Command("jobs", "list", "--text", data.Query), Content: data.content,
		}, nil
	}
	if data.Query == "" || len(data.Query) > 512 {
		return shown()
	}
	path, err := findByID(v, data.Query)
	if err != nil {
		return page.View{}, err
	}
	if path != "" {
		return page.View{}, page.SeeOther(path)
	}
	if err := findJobs(v, &data); err != nil {
		return page.View{}, err
	}
	if err := findWebhooks(v, &data); err != nil {
		return page.View{}, err
	}
	return shown()
}

// findByID returns the page of the run, webhook or event with an id; empty without one.
func findByID(v *page.Visit, id string) (string, error) {
	found := func(path string, query url.Values) (bool, error) {
		err := v.Get(path, query, nil)
		if p := page.ProblemOf(err); p != nil && (p.Body.Status == http.StatusNotFound || p.Body.Status == http.StatusBadRequest || p.Body.Status == http.StatusGone) {
			return false, nil
		}
		return err == nil, err
	}
	if v.May(access.RunsRead) && isArtifact(id) {
		if ok, err := found("/v1/artifacts/"+url.PathEscape(id), url.Values{"content": {"false"}}); ok || err != nil {
			return ui.ArtifactPath(id), err
		}
	}
	if v.May(access.RunsRead) {
		if ok, err := found("/v1/runs/"+url.PathEscape(id), nil); ok || err != nil {
			return ui.RunPath(id), err
		}
	}
	if !v.May(access.EventsRead) {
		return "", nil
	}
	if strings.HasPrefix(id, "whk_") {
		if ok, err := found("/v1/webhooks/"+url.PathEscape(id), nil); ok || err != nil {
			return ui.WebhookPath(id), err
		}
	}
	end, err := endOfStream(v)
	if err != nil {
		if page.Unknown(err) {
			err = nil
		}
		return "", err
	}
	if at, err := eventCursor(id, end); err == nil && at.Epoch == end.Epoch && at.Position <= end.Position {
		return ui.EventPath(id), nil
	}
	if !strings.HasPrefix(id, "urn:orch:event:") {
		return "", nil
	}
	rows, _, err := eventsUpTo(v, end, searchWindow*searchWindows)
	for _, row := range rows {
		if row.Event.EventID == id {
			return ui.EventPath(row.Cursor.String()), nil
		}
	}
	return "", err
}

// findJobs adds the jobs whose id or name has the text.
func findJobs(v *page.Visit, data *searchData) error {
	if !v.May(access.RunsRead) {
		return nil
	}
	var list contract.JobList
	if err := v.Get("/v1/jobs", url.Values{"limit": {strconv.Itoa(foundJobs)}, "text": {data.Query}}, &list); err != nil {
		if page.Unknown(err) {
			return nil
		}
		return err
	}
	data.Cut = data.Cut || list.NextCursor != ""
	for _, j := range list.Jobs {
		data.Results = append(data.Results, searchResult{Kind: "Job", Name: j.ID, Details: j.Name, Path: j.ID})
	}
	return nil
}

// findWebhooks adds the webhooks whose address, description or job has the text.
func findWebhooks(v *page.Visit, data *searchData) error {
	if !v.May(access.EventsRead) {
		return nil
	}
	var list contract.WebhookList
	if err := v.Get("/v1/webhooks", url.Values{"limit": {strconv.Itoa(searchLimit)}}, &list); err != nil {
		if page.Unknown(err) {
			return nil
		}
		return err
	}
	data.Cut = data.Cut || list.NextCursor != ""
	for _, w := range list.Webhooks {
		if contains(data.Query, w.ID, w.URL, w.Description, w.JobID) {
			data.Results = append(data.Results, searchResult{Kind: "Webhook", Name: w.URL, Details: w.Description, Path: ui.WebhookPath(w.ID)})
		}
	}
	return nil
}

// contains reports whether one of the texts has the wanted one, in any case.
func contains(wanted string, texts ...string) bool {
	for _, text := range texts {
		if strings.Contains(strings.ToLower(text), strings.ToLower(wanted)) {
			return true
		}
	}
	return false
}
