package console

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	limits "github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	labels "github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// selectionPage shows selected runs: before the action what it would do, afterwards a result for
// each run. The selection is a record, so the page can be opened again for SelectionLife, and the
// action changes no other runs.
var selectionPage = page.Page{
	Name: "selection", Path: "selections/{selection_id}", Scope: access.RunsRead, Query: []string{"from"}, Show: showSelection,
	Actions: []page.Action{{Path: "selections/{selection_id}/apply", Scope: access.RunsWrite, Do: applySelection}},
}

// SelectionLife is how long the page of a selection can be opened.
const SelectionLife = 7 * 24 * time.Hour

// kindSelection is the kind of the records.
const kindSelection = "console-selection"

// The actions for selected runs.
const (
	actionCancel = "cancel"
	actionRerun  = "rerun"
	actionLabel  = "label"
)

const (
	// selectionLimit is the largest number of runs that a selection changes. DynamoDB stores 400 KB
	// in a record.
	selectionLimit = 1000
	// A selection by a filter reads at most selectionPages pages of selectionStep runs of the API.
	selectionPages, selectionStep = 10, 200
	// refusedLimit is the number of runs in a selection that the action cannot change.
	refusedLimit = 100
	// selectionRows is the number of runs on a page.
	selectionRows = 100
	// applyTime ends a request early. The next one continues.
	applyTime = 15 * time.Second
)

// selection is the document of a record.
type selection struct {
	Action string `json:"action"`
	By     string `json:"by"`
	// Filter is the query of the list of runs; empty for runs that were selected one by one.
	Filter string     `json:"filter,omitempty"`
	Runs   []selected `json:"runs"`
	// Refused are runs that the action cannot change, at most refusedLimit of RefusedAll.
	Refused    []selected `json:"refused,omitempty"`
	RefusedAll int        `json:"refusedAll,omitempty"`
	// Next is the cursor of further runs that match, those created before Until.
	Next  string    `json:"next,omitempty"`
	Until time.Time `json:"until,omitzero"`
	// Applied is when the action began; zero before.
	Applied   time.Time `json:"applied,omitzero"`
	AppliedBy string    `json:"appliedBy,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	// Labels are changed by actionLabel.
	Labels labels.Change `json:"labels,omitempty"`
}

// selected is a run of a selection.
type selected struct {
	ID      string    `json:"id"`
	What    string    `json:"what,omitempty"`
	State   string    `json:"state,omitempty"`
	Created time.Time `json:"created,omitzero"`
	// Result is that of contract.BulkRun; empty before.
	Result string `json:"result,omitempty"`
	// Message is the reason of a refusal. New is the run that repeats this one.
	Message string `json:"message,omitempty"`
	New     string `json:"new,omitempty"`
}

// add adds a run to those that the action changes, or to those that it cannot change.
func (s *selection) add(t contract.Task) {
	what, _ := page.WhatOf(t)
	one := selected{ID: t.RunID, What: ui.Short(40, what), State: t.State, Created: t.CreatedAt}
	ended := run.State(t.State).Terminal()
	switch {
	case s.Action == actionRerun && !ended:
		one.Message = "has not ended"
	case s.Action == actionCancel && ended:
		one.Message = "has ended"
	case s.Action == actionCancel && t.Cancel != nil:
		one.Message = "is being cancelled"
	}
	if one.Message == "" {
		s.Runs = append(s.Runs, one)
		return
	}
	s.refuse(one)
}

func (s *selection) refuse(one selected) {
	if s.RefusedAll++; len(s.Refused) < refusedLimit {
		s.Refused = append(s.Refused, one)
	}
}

// open returns the runs without a result.
func (s *selection) open() (ids []string) {
	for _, r := range s.Runs {
		if r.Result == "" {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// selectRuns stores the runs of a form, or all that match a filter, and shows what an action would
// do.
func selectRuns(v *page.Visit) (string, error) {
	form := v.Request.PostForm
	s := selection{Action: form.Get("action"), By: v.Session.Token.Name}
	if !slices.Contains([]string{actionCancel, actionRerun, actionLabel}, s.Action) {
		return "", fault.Invalid("action", "unknown action, want cancel, rerun or label")
	}
	var err error
	if form.Get("all") != "" {
		err = selectAll(v, &s, form.Get("filter"), form.Get("cursor"))
	} else {
		err = selectThese(v, &s, form["run"])
	}
	if err != nil {
		return "", err
	}
	id, err := v.Config.Sessions.Secret(16)
	if err != nil {
		return "", err
	}
	now := v.Now()
	record := port.Resource{
		ResourceRef: port.ResourceRef{Tenant: v.Session.Token.Tenant, Kind: kindSelection, ID: hex.EncodeToString(id)},
		CreatedAt:   now, DueAt: now.Add(SelectionLife),
	}
	if err := saveSelection(v, &record, s); err != nil {
		return "", err
	}
	v.Config.Sessions.RemoveExpired(v.Request.Context(), kindSelection, now)
	return selectionPath(record.ID), nil
}

// selectThese reads runs by their ids.
func selectThese(v *page.Visit, s *selection, ids []string) error {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) == 0 || len(ids) > limits.BulkPage {
		return fault.Invalid("run", "%d selected runs, want 1 to %d; go back, and mark runs in the list", len(ids), limits.BulkPage)
	}
	tasks, reads := make([]contract.Task, len(ids)), make([]func() error, len(ids))
	for i, id := range ids {
		reads[i] = func() error {
			err := v.Get("/v1/runs/"+url.PathEscape(id), nil, &tasks[i])
			if page.Unknown(err) {
				return nil
			}
			return err
		}
	}
	if err := page.Together(reads...); err != nil {
		return err
	}
	for i, task := range tasks {
		if task.RunID == "" {
			s.refuse(selected{ID: ui.Short(100, ids[i]), Message: "is unknown, or has expired"})
			continue
		}
		s.add(task)
	}
	slices.SortStableFunc(s.Runs, func(a, b selected) int { return b.Created.Compare(a.Created) })
	return nil
}

// selectAll reads the runs that match a filter, newest first.
func selectAll(v *page.Visit, s *selection, query, cursor string) error {
	asked, err := url.ParseQuery(query)
	filter := runFilter(asked)
	if err != nil || len(filter) == 0 {
		return fault.Invalid("filter", "missing filter, want at least one; it would select every run")
	}
	s.Filter = filter.Encode()
	if asked, err = apiFilter(filter, v.Now()); err != nil {
		return err
	}
	asked.Set("limit", strconv.Itoa(selectionStep))
	s.Next = cursor
	for range selectionPages {
		if s.Next != "" {
			asked.Set("cursor", s.Next)
		}
		list, err := v.ListRuns(asked)
		if err != nil {
			return err
		}
		for _, task := range list.Tasks {
			s.add(task)
		}
		if s.Next, s.Until = list.NextCursor, list.SearchedUntil; s.Next == "" || len(s.Runs) > selectionLimit-selectionStep {
			break
		}
	}
	return nil
}

// selectionPath returns the address of a selection, below the console.
func selectionPath(id string) string { return "selections/" + url.PathEscape(id) }

// readSelection reads the selection in the path, of the reader's tenant.
func readSelection(v *page.Visit) (record port.Resource, s selection, err error) {
	ref := port.ResourceRef{Tenant: v.Session.Token.Tenant, Kind: kindSelection, ID: v.Request.PathValue("selection_id")}
	record, err = v.Config.Sessions.Records().LoadResource(v.Request.Context(), ref)
	if errors.Is(err, port.ErrNotFound) || err == nil && !v.Now().Before(record.DueAt) {
		return record, s, fault.New(fault.NotFound, "no such selection, or it has expired")
	}
	if err == nil {
		err = json.Unmarshal(record.Document, &s)
	}
	if err != nil {
		return record, s, fmt.Errorf("cannot read a selection: %w", err)
	}
	return record, s, nil
}

// saveSelection stores a selection and raises the version of its record.
func saveSelection(v *page.Visit, record *port.Resource, s selection) (err error) {
	if record.Document, err = json.Marshal(s); err != nil {
		return fmt.Errorf("cannot encode a selection: %w", err)
	}
	if err := v.Config.Sessions.Records().WriteResources(v.Request.Context(), []port.Resource{*record}, nil); err != nil {
		return fmt.Errorf("cannot store a selection: %w", err)
	}
	record.Version++
	return nil
}

// selectionData is the content of the page.
type selectionData struct {
	selection
	ID string
	// Shown are the runs of the page, from the number From.
	Shown []selected
	From  int
	Pager ui.Pager
	// Counts are the numbers of runs by result, and Open those without a result.
	Counts []count
	Open   int
}

// count is a number of runs with a result.
type count struct {
	Result string
	Runs   int
}

func showSelection(v *page.Visit) (page.View, error) {
	record, s, err := readSelection(v)
	if err != nil {
		return page.View{}, err
	}
	data := selectionData{selection: s, ID: record.ID, Open: len(s.open())}
	if from := v.Request.URL.Query().Get("from"); from != "" {
		if data.From, err = strconv.Atoi(from); err != nil || data.From < 0 || data.From > len(s.Runs) {
			return page.View{}, fault.Invalid("from", "malformed number, want 0 to %d", len(s.Runs))
		}
	}
	end := min(data.From+selectionRows, len(s.Runs))
	data.Shown = s.Runs[data.From:end]
	if data.From > 0 {
		data.Pager.Newest = selectionPath(record.ID)
	}
	if end < len(s.Runs) {
		data.Pager.Older = selectionPath(record.ID) + "?from=" + strconv.Itoa(end)
	}
	for _, r := range s.Runs {
		i := slices.IndexFunc(data.Counts, func(c count) bool { return c.Result == r.Result })
		if i < 0 && r.Result != "" {
			data.Counts = append(data.Counts, count{r.Result, 1})
		} else if i >= 0 {
			data.Counts[i].Runs++
		}
	}
	return page.View{Title: data.title(), JSON: "/" + selectionPath(data.ID), Command: data.command(v.Now()), Content: data.content}, nil
}

// selectionJSON serves the runs of a selection with their results.
func (c *console) selectionJSON(w http.ResponseWriter, r *http.Request) error {
	v, err := c.begin(r)
	if err != nil {
		return err
	}
	if err := v.Session.Identity().Need(access.RunsRead, ""); err != nil {
		return err
	}
	_, s, err := readSelection(v)
	if err != nil {
		return err
	}
	return httpkit.WriteJSON(w, http.StatusOK, s)
}

// title returns what the action does, or did.
func (d selectionData) title() string {
	verb := map[string]string{actionCancel: "Cancel", actionRerun: "Rerun", actionLabel: "Label"}[d.Action]
	return verb + " " + runsOf(len(d.Runs))
}

// runsOf returns a number of runs.
func runsOf(n int) string {
	if n == 1 {
		return "1 run"
	}
	return strconv.Itoa(n) + " runs"
}

// command returns the command for all runs that match the filter, or for those of a page.
func (d selectionData) command(now time.Time) string {
	verb := map[string][]string{
		actionCancel: {"cancel"}, actionRerun: {"retry"}, actionLabel: append([]string{"label"}, d.labelTexts()...),
	}[d.Action]
	if d.Filter == "" {
		ids := slices.Concat([]string{"runs"}, verb, []string{"--dry-run"})
		for _, r := range d.Runs {
			ids = append(ids, "--id", r.ID)
		}
		return ui.Command(ids...)
	}
	filter, _ := url.ParseQuery(d.Filter) //nolint:errcheck // selectAll has encoded it
	return ui.Command(slices.Concat([]string{"runs"}, verb, []string{"--dry-run"}, runFlags(filter, now))...)
}

// labelTexts returns the change of labels as arguments.
func (d selectionData) labelTexts() []string {
	if len(d.Labels) == 0 {
		return []string{"KEY=VALUE"}
	}
	return d.Labels.Texts()
}

// resultText returns a result as a phrase.
func resultText(result string) string {
	return cmp.Or(map[string]string{
		"": "not done yet", contract.CancelRequested: "cancel requested", contract.BulkCreated: "a new run", contract.BulkExisting: "a new run",
	}[result], strings.ReplaceAll(result, "_", " "))
}
